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
