"""Faults on purpose, the short form of ``make soak``: kills, bad disks, flipped bytes, generated inputs, threads."""

import ast
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.inputs.number_lines import LineParser
from reliability import advisories, disks, kills
from reliability.fuzz import fuzz
from reliability.targets import BATCHES, LINES, MEMORY, TARGETS
from tests.support.repository import ROOT

WHERE = MEMORY if os.access(MEMORY, os.W_OK) else None
QUIET = dpf.PureDP(epsilon=1e6)  # needs no noise


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_faults__of_killed_processes_lose_and_double_nothing() -> None:
    steps = kills.kills(24, seed=2, where=WHERE)
    assert steps.total() - steps["ended"] >= 24


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_faults__of_a_worker_without_a_ledger_are_caught_by_the_harness() -> None:
    """Killed between noise and the next checkpoint, it takes noise for the same items again."""
    with pytest.raises(AssertionError, match="taken twice"):
        kills.kills(24, seed=1, careless=True, wanted="publish", where=WHERE)


def test_faults__of_a_full_disk_are_refused_and_lose_nothing(tmp_path: Path) -> None:
    """Files that may not grow stand for a full disk, which only root may make: ``make soak`` mounts one."""
    disks.full_disk(tmp_path, lambda: disks.limited(0))


def test_faults__of_a_flipped_or_cut_checkpoint_are_refused(tmp_path: Path) -> None:
    assert disks.flipped_checkpoint(tmp_path, step=3) > 300


def test_faults__of_a_flipped_or_cut_ledger_are_refused_or_change_nothing(tmp_path: Path) -> None:
    tried, refused = disks.flipped_ledger(tmp_path, step=211)
    assert tried > 100
    assert refused > 10


@pytest.mark.parametrize("name", TARGETS)
def test_fuzzer__crashes_nothing_with_generated_inputs(name: str) -> None:
    fuzz(name, 20_000 if name == "lines" else 500, seed=7)


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        ([], advisories.UNKNOWN, "could be reached"),
        ([{"name": "a", "skip_reason": "not found"}], advisories.UNKNOWN, "could be reached"),
        (
            [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}],
            advisories.UNKNOWN,
            "could not be looked up: b",
        ),
        ([{"name": "a", "version": "1", "vulns": []}], advisories.CLEAN, "None of 1"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}],
            advisories.VULNERABLE,
            "a 1: X-1, fixed in 2",
        ),
    ],
)
def test_advisories__that_are_silent_are_no_verdict(found: list[dict[str, Any]], status: int, said: str) -> None:
    given, sentences = advisories.verdict(found)
    assert given == status
    assert said in sentences[0]


class Mirror:
    """Records of projects, none of versions."""

    def get(self, url: str, timeout: int | None) -> Any:
        known = url == "https://index.example/pypi/a/json"
        record = SimpleNamespace(status_code=200 if known else 404, ok=known)
        record.json = lambda: {"info": {"version": "2.0"}, "vulnerabilities": []}
        return record


@pytest.mark.parametrize(("name", "version", "status"), [("a", "2.0", 200), ("a", "1.9", 404), ("b", "2.0", 404)])
def test_advisories__speak_of_the_newest_release_only(name: str, version: str, status: int) -> None:
    session = advisories.NewestReleases(Mirror())
    assert session.get(f"https://index.example/pypi/{name}/{version}/json", None).status_code == status


@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINES) | st.binary(max_size=40), max_size=6).map(b"".join))
def test_fuzzer__finds_any_bytes_to_be_lines_or_refused(data: bytes) -> None:
    TARGETS["lines"].check(data)


@settings(max_examples=300)
@given(st.sampled_from(BATCHES).flatmap(lambda seed: st.binary(max_size=80).map(lambda more: seed[:1] + more)))
def test_fuzzer__finds_any_batch_to_be_taken_or_to_change_nothing(data: bytes) -> None:
    TARGETS["update_many"].check(data)


def test_fuzzer__has_checks_that_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is half applied, and a parser that loses what lies before a cut, are found."""

    def half_applied(self: Frugal1U, batch: Iterator[Any]) -> None:
        for chunk in batch:
            self._position += chunk.values.size
            if self._nan_policy == "raise" and np.isnan(chunk.values).any():
                raise dpf.ItemError("There is a NaN.")

    feed = LineParser.feed

    def forgetful(self: LineParser, block: bytes) -> list[float]:
        self._rest = b""
        return feed(self, block)

    monkeypatch.setattr(Frugal1U, "_take", half_applied)
    with pytest.raises(AssertionError):
        fuzz("update_many", 3_000, seed=1)
    monkeypatch.setattr(LineParser, "feed", forgetful)
    with pytest.raises(AssertionError):
        fuzz("lines", 3_000, seed=1)


BATCH = np.full(3_000, 1e6)
THREADS, TIMES = 4, 10


def _walk() -> dpf.DPFrugal1U:
    return dpf.DPFrugal1U(0.5, QUIET, coin_seed=1)


def _keyed() -> dpf.KeyedDPFrugal1U:
    return dpf.KeyedDPFrugal1U(0.5, QUIET, keys=["a"], coin_seed=1, adaptive_steps=False)


THREADED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "DPFrugal1U": (_walk, lambda p: p.update_many(BATCH), lambda p: p.release().value),
    "PrivateQuantile": (
        lambda: dpf.PrivateQuantile(0.5, QUIET),
        lambda p: p.update_many(BATCH),
        lambda p: p.release(close=False).value,
    ),
    "KeyedDPFrugal1U": (
        _keyed,
        lambda p: p.update_many(["a"] * BATCH.size, BATCH),
        lambda p: p.release()["value"][0].as_py(),
    ),
}


@pytest.mark.parametrize("name", THREADED)
def test_threads__that_update_and_release_end_where_one_thread_ends(name: str) -> None:
    """All batches are alike and there is no noise: whatever the order, the last release is that of one thread."""
    make, update, release = THREADED[name]
    shared, alone, errors = make(), make(), []

    def work() -> None:
        try:
            for _ in range(TIMES):
                update(shared)
                release(shared)
        except BaseException as error:  # told to the test below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(THREADS * TIMES):
        update(alone)
        release(alone)
    assert errors == []
    assert shared.items == alone.items == THREADS * TIMES * BATCH.size
    assert release(shared) == release(alone)


FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
DANGEROUS = {"eval", "exec", "compile", "__import__"}


def test_source__pickles_and_evaluates_nothing() -> None:
    """A checkpoint, a ledger or a table is read as data, never run."""
    seen = 0
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & FORBIDDEN, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in DANGEROUS, path
            if isinstance(node, ast.Call) and any(keyword.arg == "allow_pickle" for keyword in node.keywords):
                pytest.fail(f"{path} allows pickle")
            seen += 1
    assert seen > 10_000


def test_fuzzer__instruments_no_module_that_numba_compiles() -> None:
    """The instrument takes names of modules one by one: that of a package covers none of its modules."""
    from reliability.fuzz import compiled

    folder = Path(dpf.__file__).parent / "kernels"
    assert {"dpfrugal.kernels.find_keys", "dpfrugal.kernels.choices.sum_walks"} <= set(compiled())
    assert len(compiled()) == len(list(folder.rglob("*.py")))
