"""Known vulnerabilities of the pinned versions: pip-audit asks an advisory service, and this says what came of it.

    python -m reliability.advisories

Exit status 0: every version was looked up, and none has an advisory. 1: some have. 2: not all could be looked up, which
is no verdict. PyPI's own service is asked first, then OSV.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
SERVICES = ("pypi", "osv")
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 2


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
    for service in SERVICES:
        status, said = verdict(answer(service))
        if status != UNKNOWN:
            break
    print("\n".join(said))
    sys.exit(status)


if __name__ == "__main__":
    main()
