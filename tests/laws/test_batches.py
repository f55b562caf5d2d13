"""Batches: any container, cut anywhere, all of it or nothing."""

import decimal
import fractions
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import laws
from tests.laws.kinds import KINDS, SINGLE, WITH_COINS, Kind
from tests.support.noise_tape import no_noise, replace_noise

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
with_single_items = pytest.mark.parametrize("kind", SINGLE.values(), ids=SINGLE)
on_a_grid = pytest.mark.parametrize("kind", WITH_COINS.values(), ids=WITH_COINS)
STREAM = np.random.default_rng(3).normal(20, 8, 5_000)


@pytest.fixture(scope="module", autouse=True)
def _without_noise() -> Iterator[None]:
    """Two estimators that are fed the same items are then in the same state."""
    with pytest.MonkeyPatch.context() as patch:
        replace_noise(patch, no_noise)
        yield


@every_kind
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 700, 3_000])
def test_update_many__equals_the_same_items_one_by_one(kind: Kind, size: int) -> None:
    laws.same_state_as_one_batch(kind, STREAM[:size])
    laws.same_state_as_one_batch(kind, STREAM[:size].astype(np.int64))


@every_kind
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 5_000), max_size=6))
def test_update_many__may_cut_a_stream_anywhere(kind: Kind, cuts: list[int]) -> None:
    laws.cuts_leave_no_trace(kind, STREAM, cuts)


@every_kind
@pytest.mark.parametrize("cuts", [[1], [159, 160, 161], list(range(0, 5_000, 7))], ids=["one", "at segments", "many"])
def test_update_many__may_cut_a_stream_where_segments_end_and_very_often(kind: Kind, cuts: list[int]) -> None:
    laws.cuts_leave_no_trace(kind, STREAM, cuts)


def failing_generator() -> Iterator[float]:
    yield from np.full(100_000, 9.0).tolist()
    yield "4242"  # type: ignore[misc]


BAD_BATCHES: dict[str, Any] = {
    "nan": [1.0, float("nan"), 4242.0],
    "nan array": np.array([4242.0, np.nan]),
    "nan float32": np.array([4242.0, np.nan], dtype=np.float32),
    "nan late": np.append(np.full(200_000, 4242.0), np.nan),
    "nan decimal": [decimal.Decimal("NaN")],
    "null": pa.array([4242, None]),
    "null chunked": pa.chunked_array([[4242.0], [None]]),
    "null polars": pl.Series([4242, None]),
    "null pandas": pd.Series([4242, None], dtype="Int64"),
    "masked": np.ma.masked_array([4242.0, 1.0], mask=[False, True]),
    "strings": ["4242", "1"],
    "string": "4242",
    "bytes": b"4242",
    "string array": np.array(["4242"]),
    "arrow strings": pa.array(["4242"]),
    "polars strings": pl.Series(["4242"]),
    "pandas strings": pd.Series(["4242"]),
    "mixed": [1.0, 4242, "x"],
    "none": [4242.0, None],
    "none alone": None,
    "complex": [4242j],
    "complex array": np.array([4242j]),
    "objects": np.array([object()]),
    "object numbers": np.array([4242, 1], dtype=object),
    "bools": [True, False],
    "bool array": np.array([True]),
    "arrow bools": pa.array([True]),
    "dates": np.array(["2026-01-01"], dtype="datetime64[D]"),
    "arrow dates": pa.array([1], type=pa.timestamp("s")),
    "two-dimensional": np.full((2, 2), 4242.0),
    "zero-dimensional": np.array(4242.0),
    "lists": [[4242.0]],
    "structured": np.zeros(2, dtype=[("a", "f8")]),
    "scalar": 4242.0,
    "mapping": {4242.0: 1},
    "table": pa.table({"a": [4242.0]}),
    "pandas frame": pd.DataFrame({"a": [4242.0]}),
    "polars frame": pl.DataFrame({"a": [4242.0]}),
    "generator that fails late": failing_generator,
}


@every_kind
@pytest.mark.parametrize("bad", BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_update_many__refuses_a_whole_batch_and_changes_nothing(kind: Kind, bad: Any) -> None:
    count = sum(1 for _ in bad()) if callable(bad) else None
    laws.refused_batch_changes_nothing(kind, bad if callable(bad) else lambda: bad, count)


BAD_ITEMS = [float("nan"), np.float32("nan"), "4242", None, pd.NA, 4242j, True, [4242.0], np.array([4242.0])]


@with_single_items
@pytest.mark.parametrize("bad", BAD_ITEMS, ids=repr)
def test_update__refuses_an_item_and_changes_nothing(kind: Kind, bad: Any) -> None:
    laws.refused_item_changes_nothing(kind, bad)


NUMBERS = [3, 250, 17, 99, 8, 8, 120] * 40
SAME_BATCHES: dict[str, Any] = {
    "tuple": tuple(NUMBERS),
    "generator": lambda: (number for number in NUMBERS),
    "range-like": lambda: map(int, NUMBERS),
    "floats": [float(number) for number in NUMBERS],
    "fractions": [fractions.Fraction(number) for number in NUMBERS],
    "decimals": [decimal.Decimal(number) for number in NUMBERS],
    "numpy scalars": [np.int16(number) for number in NUMBERS],
    "mixed": [number if number % 2 else float(number) for number in NUMBERS],
    **{
        np.dtype(name).name: np.array(NUMBERS, dtype=name)
        for name in ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "longdouble"]
    },
    "big-endian": np.array(NUMBERS, dtype=">f8"),
    "big-endian integers": np.array(NUMBERS, dtype=">i4"),
    "strided": np.repeat(np.array(NUMBERS), 3)[::3],
    "reversed": np.array(NUMBERS[::-1])[::-1],
    "read-only": np.frombuffer(np.array(NUMBERS).tobytes(), dtype=np.int64),
    "unaligned": np.frombuffer(b"x" + np.array(NUMBERS).tobytes(), dtype=np.int64, offset=1),
    "memoryview": memoryview(np.array(NUMBERS)),  # type: ignore[arg-type]
    "pandas": pd.Series(NUMBERS),
    "pandas nullable": pd.Series(NUMBERS, dtype="Int32"),
    "pandas arrow": pd.Series(NUMBERS, dtype="int64[pyarrow]"),
    "pandas index": pd.Index(NUMBERS),
    "polars": pl.Series(NUMBERS),
    "polars float32": pl.Series(NUMBERS, dtype=pl.Float32),
    "arrow": pa.array(NUMBERS),
    "arrow half": pa.array(np.array(NUMBERS, dtype=np.float16)),
    "arrow sliced": pa.array([1, *NUMBERS, 1]).slice(1, len(NUMBERS)),
    "arrow chunked": pa.chunked_array([NUMBERS[:100], [], NUMBERS[100:]], type=pa.int64()),
    "arrow dictionary": pa.array(NUMBERS).dictionary_encode(),
    "arrow decimal": pa.array([decimal.Decimal(number) for number in NUMBERS], type=pa.decimal128(10, 2)),
    "masked without a mask": np.ma.masked_array(NUMBERS),
}


@every_kind
@pytest.mark.parametrize("batch", SAME_BATCHES.values(), ids=SAME_BATCHES)
def test_update_many__gives_the_same_state_from_every_container(kind: Kind, batch: Any) -> None:
    laws.containers_leave_no_trace(kind, batch if callable(batch) else lambda: batch, NUMBERS)


HOLES: list[Any] = [3.0, None, 250.0, None, None, 99.0] * 30
OMITTED_BATCHES: dict[str, Any] = {
    "numpy": np.array(HOLES, dtype=np.float64),
    "float32": np.array(HOLES, dtype=np.float32),
    "list": [float("nan") if item is None else item for item in HOLES],
    "list of None": HOLES,
    "list of NA": [pd.NA if item is None else item for item in HOLES],
    "arrow": pa.array(HOLES),
    "arrow integers": pa.array([None if item is None else int(item) for item in HOLES]),
    "arrow chunked": pa.chunked_array([HOLES[:7], HOLES[7:]]),
    "arrow dictionary": pa.array(HOLES).dictionary_encode(),
    "polars": pl.Series(HOLES),
    "pandas": pd.Series(HOLES),
    "pandas nullable": pd.Series(HOLES, dtype="Int64"),
    "masked": np.ma.masked_array([item or 0.0 for item in HOLES], mask=[item is None for item in HOLES]),
}


@every_kind
@pytest.mark.parametrize("batch", OMITTED_BATCHES.values(), ids=OMITTED_BATCHES)
def test_nan_policy__omits_an_item_and_keeps_its_position(kind: Kind, batch: Any) -> None:
    laws.missing_items_keep_their_positions(kind, batch, [float("nan") if hole is None else hole for hole in HOLES])


@on_a_grid
def test_nan_policy__uses_up_the_coin_of_an_omitted_item(kind: Kind) -> None:
    laws.omitting_is_not_dropping(kind)


@every_kind
def test_nan_policy__omits_arrays_of_nulls_only(kind: Kind) -> None:
    estimator, nans = kind.make(nan_policy="omit"), kind.make(nan_policy="omit")
    kind.feed(estimator, pa.nulls(5))
    kind.feed(nans, [float("nan")] * 5)
    assert estimator.items == 5
    assert kind.raw(estimator) == kind.raw(nans)
    if kind.tosses_coins:
        assert not any(kind.points(estimator))


@every_kind
def test_update_many__puts_infinities_above_and_below_everything(kind: Kind) -> None:
    for sign in (1, -1):
        infinite, large = (kind.fed(np.full(1_000, sign * item)) for item in (np.inf, 1e306))
        assert kind.raw(infinite) == kind.raw(large)
        if kind.tosses_coins:
            assert all(sign * point >= 0 for point in kind.points(infinite))
            assert any(kind.points(infinite))


@on_a_grid
@pytest.mark.parametrize("huge", [2**63, 2**64 - 1, 10**30, -(10**30), 1e300, -1e300])
def test_grid__saturates_items_beyond_its_ends(kind: Kind, huge: float) -> None:
    for batch in ([huge] * 200, [huge, float(huge)] * 100, np.full(200, huge, dtype=np.float64)):
        estimator = kind.make(decimals=15)
        kind.feed(estimator, batch)
        assert all((point > 0) == (huge > 0) for point in kind.points(estimator))


@on_a_grid
@pytest.mark.parametrize("start", [4.6e3, -4.6e3])
def test_grid__does_not_wrap_an_estimate_at_its_ends(kind: Kind, start: float) -> None:
    """At 15 decimals the grid's ends, ±2^62, are near ±4,611."""
    estimator = kind.make(decimals=15, start=start)
    kind.feed(estimator, np.full(300, np.copysign(np.inf, start)))
    points = kind.points(estimator)
    assert all(abs(point) > abs(start) * 1e15 * 0.999 and (point > 0) == (start > 0) for point in points)
