"""The disk cache of machine code: used while no source changes, never afterwards, and never needed."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpfrugal

compiled_only = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")

PACKAGE = Path(dpfrugal.__file__).parent
WALK = """
import json, numpy as np
from dpfrugal.kernels.walk_stream import walk_singly
estimates, thresholds = np.zeros(1, np.int64), np.full(1, 2**31, np.uint32)
walk_singly(np.full(99, 50), None, None, estimates, thresholds, thresholds, np.uint64(1), 0)
stats = walk_singly.stats
print(json.dumps([int(estimates[0]), sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""


def walked(folder: Path) -> tuple[int, int, int]:
    """The estimate, the cache hits and the cache misses of a process that uses the package in ``folder``."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error", "-c", WALK]
    estimate, hits, misses = json.loads(
        subprocess.run(command, check=True, capture_output=True, env=environment).stdout
    )
    return estimate, hits, misses


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "dpfrugal", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@compiled_only
def test_code_cache__a_change_of_an_imported_source_recompiles(copy: Path) -> None:
    kernel, coins = (copy / "dpfrugal" / "kernels" / name for name in ("walk_stream.py", "coins.py"))
    before, age = walked(copy), kernel.stat().st_mtime_ns
    assert before[1:] == (0, 1)
    assert walked(copy) == (before[0], 1, 0)
    text = coins.read_text(encoding="utf-8")
    coins.write_text(text.replace("0x9E3779B97F4A7C15", "0xD1B54A32D192ED03"), encoding="utf-8")
    assert kernel.stat().st_mtime_ns == age
    after = walked(copy)
    assert after[1:] == (0, 1)
    assert after[0] != before[0]
    assert walked(copy) == (after[0], 1, 0)


@compiled_only
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"damaged"])
def test_code_cache__a_damaged_file_recompiles(copy: Path, ending: str, content: bytes) -> None:
    before = walked(copy)
    [file] = (copy / "dpfrugal" / "kernels" / "__pycache__").glob(f"walk_stream.walk_singly*.{ending}")
    file.write_bytes(content)
    assert walked(copy) == before
    assert walked(copy) == (before[0], 1, 0)


def test_code_cache__cached_functions_are_made_of_sources_that_the_digest_covers() -> None:
    """Kernels import only kernels and checks of arguments; a cached function elsewhere, kernels and its own package."""
    for file in PACKAGE.rglob("*.py"):
        text, package = file.read_text(encoding="utf-8"), ".".join(file.relative_to(PACKAGE.parent).parent.parts)
        if "@cached\n" in text or package == "dpfrugal.kernels":
            imported = [node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
            own = {name for name in imported if name.startswith("dpfrugal")}
            allowed = ("dpfrugal.kernels", package)
            assert {name for name in own if not name.startswith(allowed)} <= {"dpfrugal.parameters"}, file
