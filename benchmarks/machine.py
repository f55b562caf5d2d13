"""What a figure was measured on: processor, cores and versions. No names of hosts, people or folders."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "dpfrugal",
    "numpy",
    "numba",
    "pyarrow",
    "opendp",
    "datasketches",
    "polars",
    "duckdb",
    "pyspark",
    "ddsketch",
    "river",
    "python-dp",
    "diffprivlib",
    "scikit-learn",
)

PLAIN = Path(__file__).parent / "plain"


def plain() -> dict[str, str]:
    """The environment of a process that is to start as a plain installation does, without scipy."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(PLAIN), os.environ.get("PYTHONPATH")]))}


def processor() -> str:
    """The processor's model as the operating system calls it."""
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def described() -> dict[str, object]:
    """The machine and the versions, for the JSON beside the figures."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def sentence() -> str:
    """The machine in one line, for the terminal."""
    here = described()
    return f"{here['processor']}, {here['cores']} cores, Python {here['python']}"


def seconds_worked() -> tuple[float, float]:
    """Seconds of processor time since the start: of the whole machine, and of this process and those it has started.

    The difference is what others have used: a figure that was measured beside them is not worth much (Linux only).
    """
    clock = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:8])
    parents, own = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        own[int(folder.name)] = sum(map(int, fields[11:15]))  # with the children that have ended
    below = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return (user + nice + system + sum(interrupts)) / clock, sum(own[process] for process in below) / clock
