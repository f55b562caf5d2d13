"""The cache of machine code: what is damaged is compiled anew, as it is after a change of any kernel."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpfrugal.kernels.code_cache import is_own_folder
from tests.support.repository import ROOT

# The smallest kernel: the answer, and how many compiled functions came out of the cache.
COUNT = """
import numpy as np
from dpfrugal.kernels.find_keys import count_codes
counts = np.zeros(1, dtype=np.int64)
count_codes(np.zeros(5, dtype=np.int32), counts)
print(counts[0], sum(count_codes.stats.cache_hits.values()))
"""

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


def counted(cache: Path, limit: Callable[[], None] | None = None, sources: Path | None = None) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    if sources is not None:
        environment |= {"PYTHONPATH": os.pathsep.join([str(sources), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=False, preexec_fn=limit
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def full() -> None:
    """In a new process: files may grow to a few bytes only, as on a disk that is nearly full."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_code_cache__that_is_damaged_or_on_a_full_disk_is_compiled_anew(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    assert counted(whole, full) == "5 0\n"
    assert counted(whole) == "5 0\n"
    assert counted(whole) == "5 1\n"
    for ending in ("*.nbi", "*.nbc"):
        copy = tmp_path / ending[2:]
        shutil.copytree(whole, copy)
        (damaged,) = (path for path in copy.rglob(ending) if "count_codes-" in path.name)
        content = damaged.read_bytes()
        middle = len(content) // 2
        damaged.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        assert counted(copy, full) == "5 0\n"  # and it cannot be mended there
        damaged.write_bytes(content[:middle])
        assert counted(copy) == "5 0\n"


def test_code_cache__is_of_no_use_after_a_change_of_any_kernel(tmp_path: Path) -> None:
    """Even of one that the function does not call, and when the file's time does not show it."""
    sources, cache = tmp_path / "sources", tmp_path / "cache"
    shutil.copytree(ROOT / "src" / "dpfrugal", sources / "dpfrugal", ignore=shutil.ignore_patterns("__pycache__"))
    assert counted(cache, sources=sources) == "5 0\n"
    assert counted(cache, sources=sources) == "5 1\n"
    for changed in ("coins.py", "choices/sum_walks.py"):
        file = sources / "dpfrugal" / "kernels" / changed
        written = file.stat()
        file.write_bytes(file.read_bytes() + b"\n")
        os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
        assert counted(cache, sources=sources) == "5 0\n"


def test_code_cache__in_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    assert is_own_folder(str(tmp_path))
    assert is_own_folder(str(tmp_path / "none yet"))
    tmp_path.chmod(0o777)
    assert not is_own_folder(str(tmp_path))
