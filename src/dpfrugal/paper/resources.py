"""The memory and disk that a run needs and finds; and the machine, without names of hosts, people or folders."""

import os
import platform
import resource
import shutil
import sys
from pathlib import Path
from typing import Final

from dpfrugal.errors import ParameterError

MIB: Final = 1 << 20
# Measured: the interpreter with the compiler, OpenDP and matplotlib; and what a job needs for any stream.
PROGRAM_MIB: Final = 350
JOB_MIB: Final = 60
# The exact quantiles: a twentieth of the items of the default length for four of them, in three copies while sorting.
BYTES_PER_ITEM: Final = 1.3
# The report with its pictures, and the results.
REPORT_MIB: Final = 16
ROW_BYTES: Final = 256


def check_resources(output: Path, jobs: int, rows: int, items: int) -> None:
    """Refuse to start a run with too little memory or disk."""
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
    """Memory for a new process, by the kernel and by the limits of the control group; None if neither is known."""
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
    """The largest resident memory of this process so far."""
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
