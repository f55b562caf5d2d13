"""``make test-oldest``: the tests with the oldest versions of everything that ``pyproject.toml`` allows.

A lower bound is a promise like any other. Into an environment of its own goes the first version of each dependency that
its bound allows (of the package and of the extras that users install; tools that only run tests are those of
``constraints.txt``), and in it runs the suite.
"""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
EXAMPLES = ["--ignore", "tests/system/test_document_examples.py"]  # they are run beside packages of other people
NOT_FOR_USERS = {"bench", "dev", "dist", "docs", "examples", "soak", "test"}


def oldest(requirements: list[str]) -> dict[str, str]:
    """Each package with the lowest version that its bound allows; what has no bound is refused."""
    found: dict[str, str] = {}
    for text in requirements:
        requirement = Requirement(text)
        if requirement.name == "dpfrugal":
            continue
        lower = [each.version for each in requirement.specifier if each.operator in (">=", "==", "~=")]
        if len(lower) != 1:
            raise SystemExit(f"{text} has no lower bound")
        name = canonicalize_name(requirement.name)
        if found.setdefault(name, lower[0]) != lower[0]:
            raise SystemExit(f"{name} has two lower bounds: {found[name]} and {lower[0]}")
    return found


def constraints() -> list[str]:
    """Oldest versions of what users install, and the known ones of everything that these do not decide."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for_users = [each for name, extra in extras.items() if name not in NOT_FOR_USERS for each in extra]
    old = oldest(project["dependencies"] + for_users)
    tools = {canonicalize_name(Requirement(each).name) for each in extras["test"]} - {"dpfrugal"}
    known = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tools = {name for name in tools - set(old) if not name.startswith("opentelemetry")}  # these come in one version
    kept = [line for line in known if canonicalize_name(line.partition("==")[0]) in tools]
    return [f"{name}=={version}" for name, version in sorted(old.items())] + kept


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="the Python to test (default: this one)")
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv-oldest", help="where to install")
    arguments, of_pytest = parser.parse_known_args()  # the rest goes to pytest
    environment = arguments.environment.resolve()
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([arguments.python, "-m", "venv", str(environment)], check=True)
    wanted = environment / "oldest.txt"
    wanted.write_text("\n".join(constraints()) + "\n", encoding="utf-8")
    print(wanted.read_text(encoding="utf-8"))
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--constraint", str(wanted), "--editable", ".[test]"], cwd=ROOT, check=True)
    ran = subprocess.run(
        [str(python), "-m", "pytest", *(of_pytest or ["-q", "-n", "2"]), *EXAMPLES], cwd=ROOT, check=False
    )
    sys.exit(ran.returncode)


if __name__ == "__main__":
    main()
