"""Commands on small machines: a gigabyte of address space is enough for what is small, and a refusal is a sentence."""

import gzip
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.command_line import COMMAND, run

GIGABYTE = 1 << 30
MEASURED = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def limited() -> None:
    """In a new process: a gigabyte of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))


def test_watch__continues_from_a_checkpoint_in_a_gigabyte_of_address_space(tmp_path: Path) -> None:
    numbers, state = "".join(f"{number}\n" for number in range(3000)), tmp_path / "state"
    command = ("watch", "-q", 0.5, "--epsilon", 1, "--every", 2000, "--checkpoint", state, "--accept-replay-risk")
    for _ in range(2):
        done = run(*command, text=numbers, preexec_fn=limited)
        assert done.returncode == 0, done.stderr
    assert "Continuing from" in done.stderr


@pytest.mark.parametrize("name", ["line.csv.gz", "line.jsonl.gz", "keys.parquet"])
def test_quantile__refuses_a_small_file_that_stands_for_gigabytes_in_little_memory(tmp_path: Path, name: str) -> None:
    """A line without an end, and keys of ten megabytes each; what is held stays below 500 MB."""
    path = tmp_path / name
    command = [*COMMAND, "quantile", str(path), "--column", "ms", "-q", "0.5", "--epsilon", "1"]
    if name == "keys.parquet":
        rows = {"k": [chr(97 + row % 26) * 10_000_000 for row in range(40)], "ms": [1.0] * 40}
        pq.write_table(pa.table(rows), path, compression="zstd", use_dictionary=False)
        (tmp_path / "keys.txt").write_text("a\nb\n")
        command += ["--by", "k", "--keys", str(tmp_path / "keys.txt")]
    else:
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b"ms\n" if "csv" in name else b'{"ms": 1}\n{"ms": "')
            for _ in range(600):
                file.write(b"1" * (1 << 20))
    assert path.stat().st_size < 10_000_000
    # Through a small process: what a child had at most includes what its parent had when it was made.
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=False)
    status, kilobytes = map(int, done.stdout.split())
    assert status == 2
    assert "1,048,576 bytes, which is the limit" in done.stderr
    assert kilobytes < 500_000
