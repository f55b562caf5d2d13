"""What a run will need and what there is; and the machine it ran on, without names of hosts, people or folders."""

import os
import platform
import resource
import shutil
import sys
from pathlib import Path
from typing import Final

from dpfrugal.errors import ParameterError

MIB: Final = 1 << 20
# Measured: the interpreter with the compiler, OpenDP and matplotlib; and what a job holds of any stream.
PROGRAM_MIB: Final = 350
JOB_MIB: Final = 60
# The exact quantiles: a twentieth of the items of the default length for four of them, in three copies while sorting.
BYTES_PER_ITEM: Final = 1.3
# The report with its pictures, and the results.
REPORT_MIB: Final = 16
ROW_BYTES: Final = 256


def check_resources(output: Path, jobs: int, rows: int, items: int) -> None:
    """Refuse to start what cannot end: too little memory or disk."""
    wanted, there = PROGRAM_MIB + jobs * (JOB_MIB + int(BYTES_PER_ITEM * items / MIB)), free_memory_mib()
    if there is not None and there < wanted:
        raise ParameterError(
            f"About {wanted:,} MiB of memory are needed with --jobs {jobs}, and {there:,} MiB are free. "
            "Nothing was started; use fewer --jobs, or free some memory."
        )
    wanted, there = REPORT_MIB + rows * ROW_BYTES // MIB, shutil.disk_usage(output).free // MIB
    if there < wanted:
        raise ParameterError(
            f"About {wanted:,} MiB of disk are needed, and {there:,} MiB are free in {output}. "
            "Nothing was started; use another --output, or free some space."
        )


def free_memory_mib(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a new process may use, by the kernel and by the limits of its control group; None where nobody says."""
    free: list[int] = []
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="utf-8").splitlines() if ":" in line)
        if "MemAvailable" in lines:
            free.append(int(lines["MemAvailable"].split()[0]) // 1024)
    limit, used = group / "memory.max", group / "memory.current"
    if limit.exists() and used.exists() and (text := limit.read_text(encoding="utf-8").strip()).isdigit():
        free.append((int(text) - int(used.read_text(encoding="utf-8"))) // MIB)
    return min(free) if free else None


def peak_memory_mib() -> int:
    """The most this process has held resident so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // MIB if sys.platform == "darwin" else peak // 1024


def machine() -> str:
    """Processor, cores and system."""
    model = platform.processor() or platform.machine()
    description = Path("/proc/cpuinfo")
    if description.exists():
        for line in description.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
