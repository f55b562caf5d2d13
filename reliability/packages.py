"""``make dist``: build the wheel and the source distribution, and try them as a stranger would.

1. the wheel is built from the source distribution, which thereby builds itself; ``twine check`` reads both;
2. on every Python of 3.11 to 3.14 that can be found, the wheel goes into an empty environment, is imported with every
   warning an error, and runs the commands and the first example of the README;
3. type checkers know at least 95% of its types (``pyright --verifytypes``);
4. the source distribution, unpacked elsewhere, passes its unit tests (``--no-tests`` leaves that out).

Each line that is printed says what was tried and what came of it; the first failure ends it with exit status 1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TYPED = 0.95
# Nothing of this process's own environment may reach what is tried.
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(command: Sequence[str | Path], folder: Path, **more: str) -> str:
    """What a command prints; a failure ends everything, with what it said."""
    done = subprocess.run(
        [str(each) for each in command], cwd=folder, env=CLEAN | more, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def pythons() -> dict[str, Path]:
    """The interpreters that are here, by version: on the path, or among those of pyenv."""
    found = {}
    for version in PYTHONS:
        candidates = [shutil.which(f"python{version}"), *sorted(map(str, _of_pyenv().glob(f"{version}.*/bin/python")))]
        for candidate in filter(None, candidates):
            asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == version:
                found[version] = Path(candidate)
                break
    return found


def _of_pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel, which is built from the source distribution, and that."""
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", folder, ROOT], ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    run([sys.executable, "-m", "twine", "check", "--strict", wheel, source], ROOT)
    print(f"built and checked: {wheel.name}, {source.name}", flush=True)
    return wheel, source


def environment(python: Path, folder: Path, *packages: str) -> Path:
    """The Python of a new, empty environment into which the packages went."""
    run([python, "-m", "venv", folder], folder.parent)
    inside = folder / "bin" / "python"
    run([inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], folder.parent)
    return inside


def try_wheel(python: Path, version: str, wheel: Path) -> None:
    """Import it, run the README's first commands and its first example, in an empty folder."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="dpfrugal-wheel-") as name:
        folder = Path(name).resolve()
        inside = environment(python, folder / "environment", str(wheel))
        there = run([inside, "-W", "error", "-c", "import dpfrugal; print(dpfrugal.__file__)"], folder)
        if not Path(there.strip()).is_relative_to(folder):
            sys.exit(f"FAILED: another dpfrugal was imported, {there}")
        path = f"{inside.parent}{os.pathsep}{CLEAN['PATH']}"
        commands = first_commands(readme)
        for command in commands:
            if not run(["bash", "-ec", command], folder, PATH=path).strip() and "quantile" in command:
                sys.exit(f"FAILED: {command} printed nothing")
        (folder / "example.py").write_text(first_example(readme), encoding="utf-8")
        shown = run([inside, "-W", "error", "example.py"], folder)
        if not re.match(r"q=\S+: \S+ in \[", shown):
            sys.exit(f"FAILED: the first example printed {shown!r}")
    print(f"Python {version}: installed, imported without a warning, ran {'; '.join(commands)}", flush=True)


def first_commands(readme: str) -> list[str]:
    """The commands of the first block of the README that shows any, without those that install."""
    block = next(text for text in re.findall(r"```\w*\n(.*?)```", readme, re.DOTALL) if "dpfrugal quantile" in text)
    lines = [line.partition("  #")[0].removeprefix("$ ").strip() for line in block.splitlines()]
    return [line for line in lines if line.startswith("dpfrugal ")]


def first_example(readme: str) -> str:
    """The first Python of the README."""
    return str(re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0])


def try_types(wheel: Path) -> None:
    """What type checkers know of it: the share of its public symbols that have a type."""
    with tempfile.TemporaryDirectory(prefix="dpfrugal-types-") as name:
        folder = Path(name).resolve()
        inside = environment(Path(sys.executable), folder / "environment", str(wheel), "matplotlib")
        command = [sys.executable, "-m", "pyright", "--verifytypes", "dpfrugal", "--ignoreexternal", "--outputjson"]
        there = {"PATH": f"{inside.parent}{os.pathsep}{CLEAN['PATH']}"}  # pyright looks for packages of this Python
        done = subprocess.run(command, cwd=folder, env=CLEAN | there, capture_output=True, text=True, check=False)
        score = json.loads(done.stdout)["typeCompleteness"]["completenessScore"]
    if score < TYPED:
        sys.exit(f"FAILED: types are {score:.1%} complete; {TYPED:.0%} are asked for")
    print(f"types: {score:.1%} complete", flush=True)


def try_source(source: Path) -> None:
    """Unpack it, install it with what its tests need, and run them."""
    with tempfile.TemporaryDirectory(prefix="dpfrugal-source-") as name:
        folder = Path(name).resolve()
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        (unpacked,) = (each for each in folder.iterdir() if each.is_dir())
        constraints = ["--constraint", str(unpacked / "constraints.txt")]
        inside = environment(Path(sys.executable), folder / "environment", *constraints, f"{unpacked}[examples,test]")
        tests = ["-q", "-n", "2", "--dist", "worksteal", "-m", "not spark and not cluster", "tests"]
        said = run([inside, "-m", "pytest", *tests], unpacked).strip().splitlines()[-1]
    print(f"source distribution: {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the distributions go")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests of the source distribution")
    arguments = parser.parse_args()
    wheel, source = build(arguments.output.resolve())
    found = pythons()
    for version, python in found.items():
        try_wheel(python, version, wheel)
    for version in sorted(set(PYTHONS) - set(found)):
        print(f"Python {version}: not found here, NOT TRIED", flush=True)
    try_types(wheel)
    if not arguments.no_tests:
        try_source(source)


if __name__ == "__main__":
    main()
