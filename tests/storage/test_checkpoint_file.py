"""Checkpoints: the stream goes on exactly as it would have, and no item is released twice, whoever restores what."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.estimators.segments import planner
from dpfrugal.estimators.walk import dp_frugal
from dpfrugal.privacy import noise
from dpfrugal.storage import checkpoint_file
from dpfrugal.storage.checkpoint_file import Contents
from tests.support.command_line import COMMAND, refused, run
from tests.support.repository import ROOT

ONE = dpf.PureDP(epsilon=1.0)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - each test makes a folder of its own there


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: a disk's own waiting is not what is tested."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


@pytest.fixture
def ledger(folder: Path) -> dpf.Ledger:
    return dpf.Ledger(folder / "budget.db", total=ONE)


def tape(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Noise from a tape, so that two runs can be compared."""
    draws = np.random.default_rng(seed)

    def from_tape(values: list[int], *_: object) -> list[int]:
        return [int(value) + int(draws.integers(-4, 5)) for value in values]

    monkeypatch.setattr(noise, "add_noise", from_tape)
    monkeypatch.setattr(planner, "add_noise", from_tape)


def test_save_and_load__keep_waiting_items_to_the_last_bit(folder: Path) -> None:
    estimator = dpf.PrivateQuantile(0.5, ONE, nan_policy="omit")
    waiting = [0.1, -0.0, float("inf"), float("nan"), 10**5000, -(10**400), 2**62 + 1, 5e-324, 2**64 - 1]
    for item in waiting:
        estimator.update(item)
    estimator.save(folder / "state")
    again = dpf.PrivateQuantile.load(folder / "state", accept_replay_risk=True)
    assert repr(again._pending[:4]) == repr(waiting[:4])
    assert again._pending[4:] == [float("inf"), -float("inf"), 2**62 + 1, 5e-324, 2**64 - 1]


def test_checkpoint__from_before_the_first_noise_spends_once(folder: Path, ledger: dpf.Ledger) -> None:
    original = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks")
    original.update_many(np.arange(100.0))
    original.save(folder / "state")
    copies = [dpf.DPFrugal1U.load(folder / "state", ledger=ledger) for _ in range(2)]
    copies[0].release()
    with pytest.raises(dpf.ReplayError):
        copies[1].release()
    assert len(ledger.dataset("clicks").spends) == 1


def twice_released(folder: Path, trials: int) -> tuple[int, int, int]:
    """Saving, restoring and releasing at random: how many items came out twice, of how many releases and refusals.

    Every object carries the numbers of the items it holds, and every release checks them off.
    """
    choose = np.random.default_rng(9)
    twice = releases = refusals = 0
    for trial in range(trials):
        ledger = dpf.Ledger(folder / f"budget{trial}.db", total=ONE)
        objects = [(dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks"), set[int]())]
        files: list[tuple[Path, set[int]]] = []
        released: set[int] = set()
        for number in range(50):
            estimator, held = objects[int(choose.integers(len(objects)))]
            action = choose.choice(["update", "release", "save", "load", "forget"])
            try:
                if action == "update":
                    estimator.update(float(number))
                    held.add(number)
                elif action == "release" and held:
                    estimator.release()
                    releases, twice = releases + 1, twice + len(held & released)
                    released |= held
                    held.clear()
                elif action == "save":
                    files.append((folder / f"state{trial}-{number}", set(held)))
                    estimator.save(files[-1][0])
                elif action in ("load", "forget") and files:
                    path, kept = files[int(choose.integers(len(files)))]
                    loaded = dpf.DPFrugal1U.load(path, ledger=ledger, forget_if_stale=action == "forget")
                    objects.append((loaded, set() if loaded.account.stale else set(kept)))
            except dpf.ReplayError:
                refusals += 1
        assert sum(len(dataset.spends) for dataset in ledger.datasets()) <= 1
    return twice, releases, refusals


def test_checkpoint__releases_no_item_twice_whatever_is_saved_and_restored(folder: Path) -> None:
    twice, releases, refusals = twice_released(folder, 8)
    assert twice == 0
    assert releases > 10
    assert refusals > 10


def test_checkpoint__would_release_items_twice_with_a_ledger_that_does_not_look(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpf.Ledger, "advance", lambda self, spend, lineage, holder: spend.generation + 1)
    monkeypatch.setattr(dpf.Ledger, "generation", lambda self, lineage: 0)
    monkeypatch.setattr("dpfrugal.budget.spending.Account.prove_fresh", lambda self, **_: None)
    assert twice_released(folder, 4)[0] > 0


def test_checkpoint_file__is_private_and_whole_and_says_what_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "state"
    walk = dpf.Frugal1U(0.5)
    os.umask(os.umask(0))  # whatever the mask is
    walk.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().startswith(b"dpfrugal checkpoint 2: RAW PRIVATE STATE, not for publication\n")
    before = path.read_bytes()
    walk.update_many(np.arange(100.0))
    for failing in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(dpf.CheckpointError, match="No space left on device"):
                walk.save(path)
        assert path.read_bytes() == before
        assert os.listdir(folder) == ["state"]
    dead = subprocess.Popen(["true"])
    dead.wait()
    (folder / f".state.00.{dead.pid}.unfinished").write_bytes(b"raw")
    (folder / f".state.00.{os.getppid()}.unfinished").write_bytes(b"raw")  # its writer lives
    walk.save(path)
    assert sorted(os.listdir(folder)) == [f".state.00.{os.getppid()}.unfinished", "state"]
    assert dpf.Frugal1U.load(path).items == 100


def test_checkpoint_file__notices_every_flipped_byte_and_every_cut(folder: Path) -> None:
    path, copy = folder / "state", folder / "copy"
    dpf.Frugal1U(0.5, coin_seed=1).save(path)
    whole = path.read_bytes()
    copy.touch(0o600)
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]):
            copy.write_bytes(damaged)
            with pytest.raises(dpf.CheckpointError):
                dpf.Frugal1U.load(copy)


def sealed(header: bytes, rest: bytes = b"", version: int = 2) -> bytes:
    body = checkpoint_file.TITLE % version + len(header).to_bytes(8, "little") + header + rest
    return body + hashlib.sha256(body).digest()


def test_checkpoint_file__refuses_files_that_are_not_this_checkpoint(folder: Path, ledger: dpf.Ledger) -> None:
    path = folder / "state"
    dpf.Frugal1U(0.5).save(path)
    with pytest.raises(dpf.CheckpointError, match="of Frugal1U, not of DPFrugal1U"):
        dpf.DPFrugal1U.load(path, ledger=ledger)
    path.write_bytes(path.read_bytes().replace(b"checkpoint 2:", b"checkpoint 3:"))
    with pytest.raises(dpf.CheckpointError, match="version 3"):
        dpf.Frugal1U.load(path)
    path.write_text("these are notes\n")
    path.chmod(0o644)
    with warnings.catch_warnings(action="error"), pytest.raises(dpf.CheckpointError, match="not a checkpoint"):
        dpf.Frugal1U.load(path)
    path.chmod(0o600)
    with pytest.raises(dpf.CheckpointError, match="directory"):
        dpf.Frugal1U.load(folder)
    with pytest.raises(dpf.CheckpointError, match="directory"):
        dpf.Frugal1U(0.5).save(folder)
    with pytest.raises(dpf.CheckpointError, match="No such file"):
        dpf.Frugal1U.load(folder / "none")
    with pytest.raises(dpf.CheckpointError, match="No such file"):
        dpf.Frugal1U(0.5).save(folder / "none" / "state")
    for header in (b"", b"[]", b"{}", b"[" * 100_000, b'{"arrays": NaN}', b"\xff", b'{"class": 1, "class": 2}'):
        path.write_bytes(sealed(header))
        with pytest.raises(dpf.CheckpointError, match="no state"):
            dpf.Frugal1U.load(path)


def test_checkpoint__is_charged_for_the_noise_that_will_be_taken(
    folder: Path, ledger: dpf.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that calibrates otherwise must not spend what the version before wrote down."""
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=0.5), ledger=ledger, dataset="d")
    p.update_many([1, 2, 3])
    p.save(folder / "p")
    other = dp_frugal.walk_exposure(dpf.PureDP(epsilon=0.5), 2, 1)
    monkeypatch.setattr(dp_frugal, "walk_exposure", lambda *given: other)
    with pytest.raises(dpf.CheckpointError, match="other noise"):
        dpf.DPFrugal1U.load(folder / "p", ledger=ledger)


def test_checkpoint_file__warns_where_others_may_read_it(folder: Path) -> None:
    path = folder / "state"
    dpf.Frugal1U(0.5).save(path)
    path.chmod(0o640)
    with pytest.warns(dpf.CheckpointWarning, match="chmod 600"):
        dpf.Frugal1U.load(path)


def test_checkpoint__is_not_proved_fresh_by_another_ledger_an_older_one_or_none(
    folder: Path, ledger: dpf.Ledger
) -> None:
    path, older = folder / "state", folder / "older.db"
    estimator = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks")
    older.write_bytes((folder / "budget.db").read_bytes())
    estimator.update(1.0)
    estimator.release()
    estimator.save(path)
    with pytest.raises(dpf.LedgerError, match="another ledger"):
        dpf.DPFrugal1U.load(path, ledger=dpf.Ledger(folder / "other.db", total=ONE))
    with pytest.raises(dpf.LedgerError, match="older"):
        dpf.DPFrugal1U.load(path, ledger=dpf.Ledger(older))
    dpf.DPFrugal1U(0.5, ONE).save(path)
    with pytest.raises(dpf.LedgerError, match="never charged"):
        dpf.DPFrugal1U.load(path, ledger=ledger)


@lru_cache
def header_after(items: int) -> str:
    """The header of a checkpoint after so many items, with noise from a tape: the same for every example."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        tape(patch, 1)
        estimator = dpf.PrivateQuantile([0.5, 0.9], ONE)
        estimator.update_many(np.arange(items, dtype=float))
        estimator.save(Path(folder) / "state")
        whole = (Path(folder) / "state").read_bytes()
        return whole[whole.index(b"\n") + 9 : -32].decode()


@settings(max_examples=80)
@given(data=st.data())
def test_checkpoint_file__with_nonsense_under_a_right_checksum_is_refused_or_works(data: st.DataObject) -> None:
    """One value of the header is replaced by another; what is accepted can go on."""
    header = json.loads(header_after(data.draw(st.sampled_from([0, 200, 3000]))))
    node, key = header, data.draw(st.sampled_from(["parameters", "state", "account", "arrays", "class"]))
    while isinstance(node[key], dict | list) and node[key] and data.draw(st.integers(0, 5)):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    numbers = st.one_of(st.integers(), st.floats().map(float.hex))
    node[key] = data.draw(st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=3), st.just([])))
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "state"
        path.touch(0o600)
        path.write_bytes(sealed(json.dumps(header).encode()))
        try:
            again = dpf.PrivateQuantile.load(path, accept_replay_risk=True)
        except dpf.CheckpointError:
            return
        again._contents()


def test_checkpoint_file__gives_arrays_back_as_they_were(folder: Path) -> None:
    arrays = {
        "eight megabytes": np.arange(1 << 20, dtype=np.int64),
        "floats": np.array([[0.1, np.nan], [-0.0, np.inf]]),
        "none": np.zeros((0, 3), dtype=np.uint8),
        "big-endian": np.arange(5, dtype=">u4"),
        "strided": np.arange(10, dtype=np.int32)[::3],
    }
    checkpoint_file.write(folder / "state", Contents("Kind", {"a": 1}, {"b": [2]}, None, {"c": None}, arrays))
    found = checkpoint_file.read(folder / "state", "Kind")
    assert replace(found, arrays={}) == Contents("Kind", {"a": 1}, {"b": [2]}, None, {"c": None})
    for name, array in arrays.items():
        assert np.array_equal(found.arrays[name], array, equal_nan=array.dtype.kind == "f")
        assert found.arrays[name].shape == array.shape
    with pytest.raises(dpf.CheckpointError, match="cannot be saved"):
        checkpoint_file.write(folder / "state", Contents("Kind", {}, {}, arrays={"objects": np.array([object()])}))


def test_source__pickles_nothing() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(
            r"^\s*(import|from) (pickle|shelve|marshal|dill)|allow_pickle", path.read_text(), re.MULTILINE
        )


WATCH = ("watch", "-q", "0.5", "--epsilon", "1", "--every", "500", "--algorithm", "dp-frugal-1u")


def test_watch__survives_a_kill(tmp_path: Path) -> None:
    books = ("--ledger", tmp_path / "b.db", "--dataset", "clicks", "--checkpoint", tmp_path / "c.private")
    ledger = dpf.Ledger(tmp_path / "b.db", total=ONE)
    ledger.open("clicks", ONE)
    assert "accept-replay-risk" in refused(*WATCH, "--checkpoint", tmp_path / "c.private", text="1\n")
    process = subprocess.Popen(
        [*COMMAND, *WATCH, *map(str, books)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("7\n" * 1200)
    process.stdin.flush()
    lines = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    lines += process.communicate()[0].splitlines(keepends=True)
    again = run(*WATCH, *books, text="7\n" * 1000)
    assert again.returncode == 0, again.stderr
    more = again.stdout.splitlines(keepends=True)
    if "printed before" in again.stderr:
        assert more.pop(0) == lines[-1]
    shown_items = [int(line.split("\t")[0]) for line in [*lines, *more]]
    assert shown_items == sorted(set(shown_items))
    assert shown_items[:2] == [500, 1000]
    assert 2000 <= shown_items[-1] <= 2200  # what came after the last checkpoint may be lost, and nothing else
    (spend,) = ledger.dataset("clicks").spends
    assert spend.generation == len(shown_items)
    assert "other options" in refused(*WATCH, "--decimals", 2, *books, text="1\n")


@pytest.mark.parametrize("stale", [False, True])
def test_watch__survives_a_kill_between_noise_and_print(tmp_path: Path, stale: bool) -> None:
    """The checkpoint as a kill leaves it: before the state was saved, or before the release was printed."""
    ledger, path = dpf.Ledger(tmp_path / "b.db", total=ONE), tmp_path / "c.private"
    walk = dpf.DPFrugal1U([0.5], ONE, ledger=ledger, dataset="clicks")
    walk.update_many(np.full(500, 9.0))
    first = walk.release()
    walk.update_many(np.full(300, 9.0))
    if stale:
        walk.save_with_notes(path, {"shown_items": 500, "printed": True, "items": 800})
        walk.release()
    else:
        second = walk.release()
        walk.save_with_notes(path, {"shown_items": 800, "printed": False, "items": 800})
    done = run(*WATCH, "--ledger", tmp_path / "b.db", "--dataset", "clicks", "--checkpoint", path, text="9\n" * 600)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    if stale:
        assert "300 items in it are dropped" in done.stderr
        assert [row[0] for row in rows] == ["1000", "1100"]
        assert first.items == 500
    else:
        assert "printed before" in done.stderr
        assert rows[0] == ["800", f"{second.value:.0f}"]
        assert [row[0] for row in rows] == ["800", "1300", "1400"]
    assert len(ledger.dataset("clicks").spends) == 1


LOAD_IN_ONE_GIGABYTE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
import dpfrugal as dpf
from dpfrugal.storage import checkpoint_file
print(checkpoint_file.read(sys.argv[1], "DPFrugal1U").kind)
"""


def test_read__asks_for_no_more_memory_than_the_file_has(folder: Path) -> None:
    dpf.DPFrugal1U(0.5, ONE).save(folder / "state")
    done = subprocess.run(
        [sys.executable, "-c", LOAD_IN_ONE_GIGABYTE, str(folder / "state")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "DPFrugal1U\n"), done.stderr


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a directory", "a socket"])
def test_read__refuses_what_is_no_regular_file_without_waiting(folder: Path, kind: str) -> None:
    path = folder / "state"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a directory":
        path.mkdir()
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    else:
        path = Path("/dev/zero")
    estimator = dpf.DPFrugal1U(0.5, ONE)
    said = r"^The checkpoint .* could not be read" if kind == "a socket" else f"is {kind}; a checkpoint is a file"
    with pytest.raises(dpf.CheckpointError, match=said):
        dpf.DPFrugal1U.load(path, accept_replay_risk=True)
    with pytest.raises(dpf.CheckpointError, match=f"is {kind}; a checkpoint is a file"):
        estimator.save(path)


def test_read__reads_no_more_than_the_first_line_of_what_is_no_checkpoint(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)  # a sparse file
    with pytest.raises(dpf.CheckpointError, match="is not a checkpoint"):
        dpf.DPFrugal1U.load(folder / "huge", accept_replay_risk=True)
    with (folder / "huge").open("r+b") as file:
        file.write(checkpoint_file.TITLE % checkpoint_file.VERSION)
    with pytest.raises(dpf.CheckpointError, match="damaged or cut off"):
        dpf.DPFrugal1U.load(folder / "huge", accept_replay_risk=True)


def test_save__never_overwrites_the_checkpoint_of_a_copy_that_has_gone_on(folder: Path, ledger: dpf.Ledger) -> None:
    first = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks")
    first.update_many(np.arange(100.0))
    first.save(folder / "state")
    second = dpf.DPFrugal1U.load(folder / "state", ledger=ledger)
    second.update_many(np.arange(5_000.0))
    second.release()
    second.save(folder / "state")
    newest = (folder / "state").read_bytes()
    first.update_many(np.arange(10.0))
    with pytest.raises(dpf.ReplayError, match="Another process has continued from this checkpoint"):
        first.save(folder / "state")
    assert (folder / "state").read_bytes() == newest
    assert not list(folder.glob(".state*"))
    second.save(folder / "state")  # and may go on doing so
