"""Commands on small machines: a gigabyte of address space is enough for what is small, and a refusal is a sentence."""

import resource
from pathlib import Path

from tests.support.command_line import run

GIGABYTE = 1 << 30


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
