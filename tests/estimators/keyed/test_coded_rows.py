"""What goes into a quantile per key: any batch, cut anywhere, all of it or nothing; whose rows; which keys."""

import datetime
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed import coded_rows, keyed_dp_frugal, walk
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.estimators.keyed.walk import walk_keys_plainly
from dpfrugal.kernels.threads import at_once
from dpfrugal.keys.index import KeyIndex

ONE = dpf.PureDP(epsilon=1.0)
NAMES = ["/home", "/search", "/pay"]
RNG = np.random.default_rng(5)
KEYS = [[*NAMES, "/else"][code] for code in RNG.integers(0, 4, 900)]
VALUES = RNG.normal(20, 8, 900)


def make(**options: Any) -> dpf.KeyedDPFrugal1U:
    return dpf.KeyedDPFrugal1U([0.25, 0.9], ONE, **{"keys": NAMES, "coin_seed": 11, "decimals": 1, **options})


def raw(k: dpf.KeyedDPFrugal1U) -> tuple[list[list[int]], int]:
    """The raw state and the number of rows, which only a test looks at."""
    return k._state.estimates[: k._index.size].tolist(), k.items


def after(batches: list[tuple[Any, Any]], **options: Any) -> tuple[list[list[int]], int]:
    k = make(**options)
    for keys, values in batches:
        k.update_many(keys, values)
    return raw(k)


def one_by_one(keys: list[Any], values: list[float], **options: Any) -> tuple[list[list[int]], int]:
    """Every key by itself: a Frugal1U that is shown NaN for the rows of other keys, so that it keeps their coins."""
    ends = []
    for name in NAMES:
        alone = dpf.Frugal1U([0.25, 0.9], decimals=1, coin_seed=11, nan_policy="omit", **options)
        for key, value in zip(keys, values, strict=True):
            alone.update(value if key == name else float("nan"))
        ends.append(alone._settled().tolist())
    return ends, len(keys)


def test_keyed_update_many__walks_each_key_on_its_own() -> None:
    assert after([(KEYS, VALUES)]) == one_by_one(KEYS, VALUES.tolist())


@pytest.mark.parametrize("discovered", [True, False])
def test_keyed_update_many__goes_on_from_the_released_values(discovered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several quantiles, steps of several sizes; the plain walk from what was released is the oracle."""
    options: dict[str, Any] = {"quantile": [0.9, 0.25, 0.5], "guarantee": ONE, "coin_seed": 11, "decimals": 1}
    options |= {"discover_keys": dpf.ApproxDP(epsilon=9, delta=0.1)} if discovered else {"keys": NAMES}
    k = dpf.KeyedDPFrugal1U(**options)
    for _ in range(4):
        k.update_many(KEYS, VALUES)
        k.release()
    before, steps = k._state.estimates.copy(), k._state.steps
    assert steps is not None
    assert before.flags.c_contiguous
    k.update_many(KEYS, VALUES)
    clock, codes = np.array([4 * 900]), k._index.codes(KEYS)
    walk_keys_plainly(before, steps, clock, codes, VALUES, k._state.path)
    assert k._state.estimates.tolist() == before.tolist()
    assert k.items == clock[0]


@pytest.mark.parametrize("piece", [1, 7, 64, 899])
@pytest.mark.parametrize("threads", [1, 2])
def test_keyed_update_many__leaves_no_trace_of_pieces(
    piece: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a batch of millions is cut into pieces; keys and values come in chunks of their own, besides."""
    whole = after([(KEYS, VALUES)])
    for module in (keyed_dp_frugal, coded_rows):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", piece)
    keys = pa.chunked_array([KEYS[:100], KEYS[100:101], [], KEYS[101:]], type=pa.string())
    values = pa.chunked_array([VALUES[:333], VALUES[333:]])
    assert after([(keys, values)], threads=threads) == whole


KEY_CONTAINERS: dict[str, Any] = {
    "list": KEYS,
    "generator": lambda: (key for key in KEYS),
    "numpy": np.array(KEYS),
    "objects": np.array(KEYS, dtype=object),
    "pandas": pd.Series(KEYS),
    "categorical": pd.Series(KEYS, dtype="category"),
    "polars": pl.Series(KEYS),
    "polars categorical": pl.Series(KEYS, dtype=pl.Categorical),
    "arrow": pa.array(KEYS),
    "large": pa.array(KEYS, type=pa.large_string()),
    "dictionary": pa.array(KEYS).dictionary_encode(),
}


@pytest.mark.parametrize("keys", KEY_CONTAINERS.values(), ids=KEY_CONTAINERS)
def test_keyed_update_many__gives_the_same_state_from_every_container_of_keys(keys: Any) -> None:
    assert after([(keys() if callable(keys) else keys, VALUES)]) == after([(KEYS, VALUES)])


@pytest.mark.parametrize(
    "keys",
    [
        [3, 1, 2**62],
        ["a", "ä", ""],
        [b"x", b"y"],
        [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)],
        [(1, 2), (3, 4)],
    ],
    ids=["integers", "strings", "bytes", "dates", "tuples"],
)
def test_keyed_update_many__takes_keys_of_many_kinds(keys: list[Any]) -> None:
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=keys)
    k.update_many([keys[0]] * 300, [9] * 300)
    assert raw(k)[0] == [[9]] + [[0]] * (len(keys) - 1)
    assert len(k.release()) == len(keys)


HOLES: list[Any] = [None if i % 7 == 0 else value for i, value in enumerate(VALUES.tolist())]
HOLED: dict[str, Any] = {
    "numpy": np.array(HOLES, dtype=np.float64),
    "list": HOLES,
    "arrow": pa.array(HOLES),
    "polars": pl.Series(HOLES),
    "pandas": pd.Series(HOLES, dtype="Float64"),
    "masked": np.ma.masked_array(VALUES, mask=[hole is None for hole in HOLES]),
}


@pytest.mark.parametrize("values", HOLED.values(), ids=HOLED)
def test_keyed_update_many__keeps_the_coin_of_an_omitted_value(values: Any) -> None:
    expected = one_by_one(KEYS, [float("nan") if hole is None else hole for hole in HOLES])
    assert after([(KEYS, values)], nan_policy="omit") == expected


def test_keyed_update_many__omits_null_integers_on_the_grid() -> None:
    """Integers with nulls and a decimal go through grid points, where a null would be a zero."""
    values = [None if i % 5 == 0 else 50 for i in range(900)]
    expected = one_by_one(KEYS, [float("nan") if value is None else 50.0 for value in values])
    assert after([(KEYS, pa.array(values, type=pa.int32()))], nan_policy="omit") == expected


def test_keyed_update_many__refuses_or_drops_a_null_key_and_keeps_its_coin() -> None:
    holed = [None if i % 5 == 0 else key for i, key in enumerate(KEYS)]
    with pytest.raises(dpf.ItemError, match="null_keys"):
        make().update_many(holed, VALUES)
    elsewhere = ["/else" if key is None else key for key in holed]
    assert after([(holed, VALUES)], null_keys="drop") == after([(elsewhere, VALUES)])


def test_keyed_update_many__changes_nothing_for_an_empty_batch() -> None:
    k = make()
    k.update_many([], [])
    k.update_many(np.array([], dtype=np.int64).astype(str), pa.array([], type=pa.float64()))
    assert raw(k) == ([[0, 0]] * 3, 0)


def late(values: list[Any]) -> Iterator[Any]:
    yield from values[:-1]
    raise dpf.ItemError("late")


BAD: dict[str, tuple[Any, Any]] = {
    "lengths": (KEYS, VALUES[:-1]),
    "more values": (KEYS[:-1], VALUES),
    "nan": (KEYS, np.append(VALUES[:-1], np.nan)),
    "null": (KEYS, [*VALUES[:-1].tolist(), None]),
    "null key": ([*KEYS[:-1], None], VALUES),
    "integer keys": (np.arange(900), VALUES),
    "float keys": (np.arange(900) / 2, VALUES),
    "bytes keys": ([key.encode() for key in KEYS], VALUES),
    "unhashable keys": ([[key] for key in KEYS], VALUES),
    "one unhashable key": ([*KEYS[:-1], {}], VALUES),
    "a string": ("/home", VALUES[:5]),
    "no batch": (5, VALUES),
    "two-dimensional keys": (np.array(KEYS).reshape(300, 3), VALUES[:300]),
    "a table": (pa.table({"a": KEYS}), VALUES),
    "string values": (KEYS, KEYS),
    "a number": (KEYS[:1], 4242.0),
    "zero-dimensional": (KEYS[:1], np.array(4242.0)),
    "two-dimensional": (KEYS[:300], VALUES.reshape(300, 3)),
    "bools": (KEYS, VALUES > 20),
    "a mapping": (KEYS[:1], {4242.0: 1}),
    "no values": (KEYS, None),
    "failing values": (KEYS, lambda: late(VALUES.tolist())),
    "failing keys": (lambda: late(KEYS), VALUES),
}


@pytest.mark.parametrize(
    "options", [{}, {"threads": 2}, {"keys": None, "discover_keys": dpf.ApproxDP(epsilon=1, delta=1e-6)}]
)
@pytest.mark.parametrize("piece", [1 << 20, 100])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_keyed_update_many__leaves_everything_as_it_was_when_it_refuses_a_batch(
    bad: Any, piece: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (keyed_dp_frugal, coded_rows):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", piece)
    k, keys, values = make(**options), *(part() if callable(part) else part for part in bad)
    k.update_many(KEYS, VALUES)
    before = raw(k)
    counts = None if k._discovery is None else k._discovery.counts().tolist()
    with pytest.raises(dpf.DPFrugalError) as refusal:
        k.update_many(keys, values)
    assert isinstance(refusal.value, TypeError | ValueError)
    assert "4242" not in str(refusal.value)
    assert "/home" not in str(refusal.value)
    assert raw(k) == before
    assert counts == (None if k._discovery is None else k._discovery.counts().tolist())


@pytest.mark.parametrize("threads", [1, 2])
def test_keyed_update_many__changes_nothing_when_it_is_interrupted(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (keyed_dp_frugal, coded_rows):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 100)
    k = make(threads=threads)
    k.update_many(KEYS, VALUES)
    before, walk = raw(k), KeyedState.walk

    def interrupted(self: KeyedState, *arguments: Any, **options: Any) -> None:
        if self.items > 1_200:
            raise KeyboardInterrupt
        walk(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(KeyedState, "walk", interrupted)
        with pytest.raises(KeyboardInterrupt):
            k.update_many(KEYS, VALUES)
    assert raw(k) == before
    k.update_many(KEYS, VALUES)
    assert raw(k) == after([(KEYS * 2, np.tile(VALUES, 2))])


def test_keyed_update_many__changes_nothing_when_it_is_interrupted_without_the_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python code can be cut in two anywhere; compiled code cannot, and walks on the state itself."""
    from dpfrugal.kernels import walk_keys

    k = make()
    k.update_many(KEYS, VALUES)
    before, whole_walk = raw(k), walk_keys.walk_keys

    def cut_short(*arguments: Any) -> None:
        whole_walk(arguments[0][:500], *arguments[1:])
        raise KeyboardInterrupt

    monkeypatch.setattr(walk_keys, "walk_keys", cut_short)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(KeyboardInterrupt):
        k.update_many(KEYS, VALUES)
    assert raw(k) == before
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    with pytest.raises(KeyboardInterrupt):
        k.update_many(KEYS, VALUES)
    assert raw(k) != before, "this is what the copy is for"


KINDS_OF_KEYS: dict[str, Callable[[Any], Any]] = {
    "plain": pa.array,
    "with nulls": lambda keys: pa.array([key if i % 7 else None for i, key in enumerate(keys)]),
    "encoded": lambda keys: pa.array(keys).dictionary_encode(),
    "in chunks": lambda keys: pa.chunked_array([keys[:1], keys[1:500], [], keys[500:]]),
    "objects": lambda keys: [(key,) for key in keys],
}


@pytest.mark.parametrize("kind", KINDS_OF_KEYS)
def test_keyed_update_many__looks_up_with_threads_what_one_looks_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, names = KINDS_OF_KEYS[kind](KEYS), NAMES if kind != "objects" else [(name,) for name in NAMES]
    options = {"keys": names, "null_keys": "drop"}
    expected = after([(keys, VALUES), (keys, VALUES)], **options)
    shares = []

    def counting(work: Any, threads: int) -> None:
        shares.append(threads)
        at_once(work, threads)

    for module in (coded_rows, walk):
        monkeypatch.setattr(module, "WORTH_A_THREAD", 2)
    monkeypatch.setattr(coded_rows, "at_once", counting)
    assert after([(keys, VALUES), (keys, VALUES)], threads=4, **options) == expected
    assert bool(shares) is (kind != "objects")


def test_keyed_update_many__refuses_with_threads_what_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_rows, "WORTH_A_THREAD", 1)
    k = make(threads=2)
    k.update_many(KEYS, VALUES)
    before = raw(k)
    for bad in (pa.array([*KEYS[:-1], None]), np.arange(900)):
        with pytest.raises(dpf.DPFrugalError):
            k.update_many(bad, VALUES)
        assert raw(k) == before


def test_keyed_release__that_is_interrupted_releases_nothing() -> None:
    k = make()
    k.update_many(KEYS, VALUES)
    before = raw(k)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        k.release(progress=interrupt)
    assert raw(k) == before
    assert k._last is None


def test_keyed_release__reports_its_progress() -> None:
    seen: list[tuple[int, int]] = []
    dpf.KeyedDPFrugal1U(0.5, ONE, keys=range(20_000)).release(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (20_000, 20_000)
    assert len(seen) > 1
    assert seen == sorted(set(seen))


def test_person__has_no_more_rows_than_allowed() -> None:
    """Ann has five hundred rows and may have three; Bob has two and keeps them."""
    k = dpf.KeyedDPFrugal1U(0.99, ONE, keys=["x"], max_items_per_person=3, coin_seed=1)
    person = ["ann"] * 500 + ["bob"] * 2
    k.update_many(["x"] * 502, [100] * 502, person=person)
    assert 1 <= raw(k)[0][0][0] <= 5
    assert (k.items, k.set_aside) == (502, 497)
    k.update_many(["x"] * 502, [100] * 502, person=person)
    assert k.set_aside == 2 * 497 + 3 + 1 + 0
    with pytest.raises(dpf.ItemError, match="every batch"):
        k.update_many(["x"], [1.0])
    without = make()
    without.update_many(KEYS, VALUES)
    with pytest.raises(dpf.ItemError, match="every batch"):
        without.update_many(KEYS, VALUES, person=KEYS)
    assert b"set_aside" not in k.release().schema.metadata


def test_person__has_no_more_keys_than_allowed() -> None:
    k = dpf.KeyedDPFrugal1U(0.99, ONE, keys=range(20), max_items_per_person=2, max_keys_per_person=3, coin_seed=1)
    k.update_many(np.arange(200) % 20, np.full(200, 9), person=np.zeros(200, dtype=np.int64))
    assert sum(point > 0 for (point,) in raw(k)[0]) <= 3
    assert max(point for (point,) in raw(k)[0]) <= 2
    assert k.set_aside == 200 - 6
    assert k.release().schema.metadata[b"unit"].decode() == "person of ≤ 2 items in each of ≤ 3 keys"


def test_person__loses_no_rows_to_a_refused_batch() -> None:
    k = make(max_items_per_person=1)
    with pytest.raises(dpf.ItemError):
        k.update_many(["/pay"], [float("nan")], person=["ann"])
    with pytest.raises(dpf.ItemError):
        k.update_many(["/pay"], [1.0], person=["ann", "bob"])
    k.update_many(["/pay"], [10.0**9], person=["ann"])
    assert (k.items, k.set_aside) == (1, 0)


@pytest.mark.parametrize("cut_short", ["settle", "undo"])
def test_person__has_no_row_returned_that_counts_after_an_interrupt(
    cut_short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann may have two rows. An interrupt comes when a batch was applied or refused, before that is written down."""
    k = dpf.KeyedDPFrugal1U(0.99, ONE, keys=["x"], max_items_per_person=2, coin_seed=1)
    k.update_many(["x"], [100], person=["ann"])
    people = k._person_limits
    assert people is not None

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if cut_short == "settle":
            patch.setattr(people, "settle", interrupted)
        else:  # ann's row was returned, and ids are about to be forgotten
            patch.setattr(people.people, "forget", interrupted)
        with pytest.raises(KeyboardInterrupt):
            k.update_many(["x"], [100 if cut_short == "settle" else math.nan], person=["ann"])
    with pytest.raises(dpf.ItemError, match="null keys"):
        k.update_many([None], [100], person=["ann"])
    k.update_many(["x"] * 100, [100] * 100, person=["ann"] * 100)
    assert raw(k)[0][0][0] <= 2


def test_discover_keys__releases_frequent_keys_and_not_rare_ones() -> None:
    """One of the three keys of one row passes with probability 3e-12 at most; a key of 500 rows fails with e^-200."""
    k = make(keys=None, discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-12))
    assert len(k.release()) == 0
    k.update_many(["zoo"] * 500 + ["ant"] * 500 + ["rare", "odd", "one"], np.full(1_003, 30.0))
    assert len(k.keys) == 0
    table = k.release()
    assert table["key"].to_pylist() == ["ant", "ant", "zoo", "zoo"]
    assert k.keys.to_pylist() == ["ant", "zoo"]
    assert "keys=2" in repr(k)
    assert table.schema.metadata[b"discover_keys"].decode() == "ε=1, δ=1e-12"
    before = k._state.estimates[2:5].tolist()
    k.update_many(["rare"] * 500, np.full(500, 30.0))
    assert k.release()["key"].to_pylist() == [name for name in ["ant", "rare", "zoo"] for _ in range(2)]
    assert k._state.estimates[3:5].tolist() == before[1:], "a hidden key must not be re-anchored"
    for code in (0, 1, 2):
        assert k._state.estimates[code, 1] / 10 in k.release()["value"].to_pylist()


def test_discover_keys__walks_as_declared_keys_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for keys grows many times on the way."""
    rng = np.random.default_rng(2)
    keys, values = rng.integers(0, 3_000, 20_000), rng.normal(0, 9, 20_000)
    found = make(keys=None, discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6), start=5.0)
    for part in np.split(np.arange(20_000), 10):
        found.update_many(keys[part], values[part])
    order = found._index.keys.to_numpy()
    declared = make(keys=order, start=5.0)
    declared.update_many(keys, values)
    assert raw(found) == raw(declared)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"keys": None}, "discover_keys"),
        ({"discover_keys": dpf.ApproxDP(epsilon=1, delta=0.1)}, "exclude each other"),
        ({"keys": None, "discover_keys": ONE}, "discover_keys"),
        ({"keys": []}, "keys"),
        ({"keys": ["a", "a"]}, "twice"),
        ({"keys": ["a", None]}, "null"),
        ({"keys": [[1], [2]]}, "hashable"),
        ({"max_keys": 2}, "max_keys"),
        ({"start": [1.0, 2.0]}, "start"),
        ({"start": float("nan")}, "start"),
        ({"start": "0"}, "start"),
        ({"start": ["0"] * 3}, "start"),
        ({"decimals": -1}, "decimals"),
        ({"nan_policy": "drop"}, "nan_policy"),
        ({"null_keys": "omit"}, "null_keys"),
        ({"threads": 3}, "threads"),
        ({"threads": 0}, "threads"),
        ({"threads": True}, "threads"),
        ({"max_items_per_person": 0}, "max_items_per_person"),
        ({"max_keys_per_person": 0}, "max_keys_per_person"),
        ({"max_keys_per_person": 1.5}, "max_keys_per_person"),
        ({"adaptive_steps": "yes"}, "adaptive_steps"),
        ({"coin_seed": -1}, "coin_seed"),
    ],
)
def test_keyed_dp_frugal__names_bad_parameters(options: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name) as refusal:
        make(**options)
    assert isinstance(refusal.value, dpf.DPFrugalError)


def test_discover_keys__counts_no_row_of_a_refused_batch_after_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second Ctrl-C: keys may stay known, but their rows must not be counted, for they may come again."""
    many = dpf.ApproxDP(epsilon=20.0, delta=1e-9)
    k = dpf.KeyedDPFrugal1U(0.5, ONE, discover_keys=many)
    k.update_many(["a"] * 500, np.ones(500))
    for module in (keyed_dp_frugal, coded_rows):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 100)

    def interrupted(self: KeyIndex, size: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeyIndex, "forget", interrupted)
        with pytest.raises(KeyboardInterrupt):
            k.update_many(["refused"] * 500, [1.0] * 499 + [math.nan])
    assert k.items == 500
    assert k._discovery is not None
    assert k._discovery.counts().sum() == 500
    k.save(tmp_path / "state")
    k = dpf.KeyedDPFrugal1U.load(tmp_path / "state", accept_replay_risk=True)
    k.update_many(["b"] * 500, np.ones(500))
    assert k.release()["key"].to_pylist() == ["a", "b"]  # with ε = 20 no count of 500 is ever missed
    assert k.items == 1000
