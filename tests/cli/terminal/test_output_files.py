"""Files that a command writes: whole or not at all; and a paid release is kept where it cannot be shown."""

import io
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.cli.terminal.output_files import draft, kept_if_unwritten, usable_output
from dpfrugal.errors import ParameterError

ONE = dpf.PureDP(epsilon=1.0)


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=ONE)
    ledger.spend("clicks", dpf.PureDP(epsilon=0.5))
    return ledger


def test_draft__becomes_the_file_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    target.chmod(0o640)
    with draft(target) as made:
        made.write_text("new")
        assert target.read_text() == "old", "nobody sees half of a file"
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()], ids=repr)
def test_draft__that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(type(error)), draft(target) as made:  # noqa: PT012 - the error is that of the block
        made.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_draft__that_fails_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space") as found, draft(tmp_path / "table.csv") as made:
        raise OSError(28, "No space left on device", str(made))
    assert found.value.filename == str(tmp_path / "table.csv")


def test_draft__of_a_link_replaces_what_it_points_to(tmp_path: Path) -> None:
    target, link = tmp_path / "there.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    with draft(link) as made:
        made.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_draft__of_what_is_no_file_is_itself(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with draft(pipe) as made:
        assert made == pipe


def test_release__that_cannot_be_printed_is_kept_in_the_ledger(
    ledger: dpf.Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="full"), kept_if_unwritten(lambda: ["a", "b"], ledger, "clicks"):
        raise OSError(28, "full")
    assert ledger.kept("clicks") == ("a\nb",)
    said = capsys.readouterr().err
    assert "dpfrugal ledger kept" in said
    assert "a\nb" not in said


def test_release__without_a_ledger_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="full"), kept_if_unwritten(lambda: ["a", "b"], None, None):
        raise OSError(28, "full")
    assert capsys.readouterr().err == "a\nb\n"


def test_release__that_is_printed_is_not_kept(ledger: dpf.Ledger) -> None:
    def never() -> list[str]:
        raise AssertionError("it was written")

    with kept_if_unwritten(never, ledger, "clicks"):
        pass
    assert ledger.kept("clicks") == ()


def test_standard_output__of_this_process_is_usable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    usable_output()
    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        usable_output()


def test_standard_output__that_nobody_reads_is_a_broken_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        usable_output()
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            usable_output()


@given(st.integers(0, 3), st.integers(0, 3))
def test_standard_output__on_a_full_disk_is_refused(blocks: int, free: int) -> None:
    """A file system that counts no blocks, such as a memory one without a limit, is never full."""
    with pytest.MonkeyPatch.context() as patch, open(os.devnull) as null:
        patch.setattr(sys, "stdout", null)
        regular = os.stat_result((stat.S_IFREG | 0o644, *[0] * 9))
        patch.setattr(os, "fstat", lambda _: regular)
        room = type("Room", (), {"f_blocks": blocks, "f_bavail": free})
        patch.setattr(os, "fstatvfs", lambda _: room)
        if blocks and not free:
            with pytest.raises(ParameterError, match="nothing was read or spent"):
                usable_output()
        else:
            usable_output()
