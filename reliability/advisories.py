"""Known vulnerabilities of the pinned versions: pip-audit asks an advisory service, and this says what came of it.

    python -m reliability.advisories

Exit status 0: every version was looked up, and none has an advisory. 1: some have. 2: not all could be looked up, which
is no verdict. PyPI's own service is asked first, then OSV. Where neither answers for versions, as behind a mirror of
packages, PyPI's record of the project serves for what is pinned to its newest release: the advisories that it lists are
that release's.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
SERVICES = ("pypi", "osv")
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 2
NOT_FOUND = 404


def answer(service: str) -> list[dict[str, Any]]:
    """What the service says of each pinned version; nothing where it cannot be reached."""
    command = ["-m", "pip_audit", "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--vulnerability-service", service]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, LookupError, TypeError):
        return []
    return found


class NewestReleases:
    """A session that answers for a version with the project's record, where that speaks of this version."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def get(self, url: str, timeout: int | None) -> Any:
        """The version's own record, or else the project's, or else the refusal."""
        own = self._session.get(url=url, timeout=timeout)
        if own.status_code != NOT_FOUND:
            return own
        project, version = re.fullmatch(r"(.*)/([^/]+)/json", url).groups()  # type: ignore[union-attr]
        record = self._session.get(url=f"{project}/json", timeout=timeout)
        return record if record.ok and record.json()["info"]["version"] == version else own


def newest() -> list[dict[str, Any]]:
    """What PyPI's records of projects say, through pip-audit's own reader of them."""
    from packaging.requirements import Requirement
    from packaging.version import Version
    from pip_audit._service.interface import ResolvedDependency
    from pip_audit._service.pypi import PyPIService

    service = PyPIService(timeout=60)
    service.session = NewestReleases(service.session)
    found = []
    for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name, version = line.split("==")
        try:
            package, advisories = service.query(ResolvedDependency(Requirement(name).name, Version(version)))
        except OSError:  # no connection, or one that broke
            return []
        record: dict[str, Any] = {"name": name, "version": version}
        if not package.is_skipped():
            record["vulns"] = [{"id": a.id, "fix_versions": [str(fix) for fix in a.fix_versions]} for a in advisories]
        found.append(record)
    return found


def verdict(found: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """The exit status, and what to say."""
    looked_up = [package for package in found if "vulns" in package]
    bad = [package for package in looked_up if package["vulns"]]
    said = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version yet'}"
        for package in bad
        for vulnerability in package["vulns"]
    ]
    if bad:
        return VULNERABLE, said
    if not looked_up:
        return UNKNOWN, ["No advisory service could be reached, so nothing is known about the pinned versions."]
    if missing := [package["name"] for package in found if "vulns" not in package]:
        return UNKNOWN, [f"No advisory is known, but {len(missing)} could not be looked up: {', '.join(missing)}."]
    return CLEAN, [f"None of {len(found)} pinned versions has a known vulnerability."]


def main() -> None:
    """The command."""
    asked: list[Callable[[], list[dict[str, Any]]]] = [*(partial(answer, service) for service in SERVICES), newest]
    for ask in asked:
        status, said = verdict(ask())
        if status != UNKNOWN:
            break
    print("\n".join(said))
    sys.exit(status)


if __name__ == "__main__":
    main()
