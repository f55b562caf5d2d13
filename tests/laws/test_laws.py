"""The laws of laws.py over every estimator."""

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

every_kind = pytest.mark.parametrize("kind", laws.KINDS.values(), ids=laws.KINDS)
STREAM = np.random.default_rng(3).normal(20, 8, 700)


@every_kind
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 700])
def test_batch_equals_one_by_one(kind: laws.Kind, size: int) -> None:
    laws.batch_equals_one_by_one(kind, STREAM[:size])
    laws.batch_equals_one_by_one(kind, STREAM[:size].astype(np.int64))


@every_kind
@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 700), max_size=6))
def test_cut_anywhere(kind: laws.Kind, cuts: list[int]) -> None:
    laws.cut_anywhere(kind, STREAM, cuts)


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
def test_refusal_changes_nothing(kind: laws.Kind, bad: Any) -> None:
    laws.refusal_changes_nothing(kind, bad() if callable(bad) else bad)


@every_kind
@pytest.mark.parametrize("bad", [float("nan"), np.float32("nan"), "1", None, pd.NA, 1j, True, [1.0], np.array([1.0])])
def test_a_refused_item_changes_nothing(kind: laws.Kind, bad: Any) -> None:
    estimator = kind.make()
    with pytest.raises((TypeError, ValueError)):
        estimator.update(bad)
    assert estimator.items == 0


@every_kind
def test_repr_shows_no_raw_state(kind: laws.Kind) -> None:
    laws.repr_shows_no_raw_state(kind)


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
def test_every_container_gives_the_same_state(kind: laws.Kind, batch: Any) -> None:
    assert laws.after(kind, [batch() if callable(batch) else batch]) == laws.after(kind, [NUMBERS])


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
def test_an_omitted_item_keeps_its_coin_and_is_counted(kind: laws.Kind, batch: Any) -> None:
    expected = kind.make(nan_policy="omit")
    for item in HOLES:
        expected.update(float("nan") if item is None else item)
    assert laws.after(kind, [batch], nan_policy="omit") == (kind.raw(expected), len(HOLES))


@every_kind
def test_omitting_is_not_dropping(kind: laws.Kind) -> None:
    """If an omitted item lost its coin, all later items would meet other coins."""
    whole = np.random.default_rng(8).normal(20, 8, 2_000)
    holed = np.insert(whole, 0, [np.nan] * 7)
    assert laws.after(kind, [holed], nan_policy="omit", decimals=1)[0] != laws.after(kind, [whole], decimals=1)[0]


@every_kind
def test_all_null_arrays_follow_the_policy(kind: laws.Kind) -> None:
    assert laws.after(kind, [pa.nulls(5)], nan_policy="omit") == ([0, 0], 5)


@every_kind
def test_infinities_are_above_and_below_everything(kind: laws.Kind) -> None:
    high, _ = laws.after(kind, [np.full(1_000, np.inf)])
    low, _ = laws.after(kind, [np.full(1_000, -np.inf)])
    assert high == laws.after(kind, [np.full(1_000, 10**9)])[0]
    assert low == laws.after(kind, [np.full(1_000, -(10**9))])[0]


@every_kind
@pytest.mark.parametrize("huge", [2**63, 2**64 - 1, 10**30, -(10**30), 1e300, -1e300])
def test_items_beyond_the_grid_saturate(kind: laws.Kind, huge: float) -> None:
    for batch in ([huge] * 200, [huge, float(huge)] * 100, np.full(200, huge, dtype=np.float64)):
        raw, _ = laws.after(kind, [batch], decimals=15)
        assert all((point > 0) == (huge > 0) for point in raw)


@every_kind
@pytest.mark.parametrize("start", [4.6e3, -4.6e3])
def test_estimates_at_the_end_of_the_grid_do_not_wrap(kind: laws.Kind, start: float) -> None:
    """At 15 decimals the grid's ends, ±2^62, are near ±4,611."""
    raw, _ = laws.after(kind, [np.full(300, np.copysign(np.inf, start))], decimals=15, start=start)
    assert all(abs(point) > abs(start) * 1e15 * 0.999 and (point > 0) == (start > 0) for point in raw)


@every_kind
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"decimals": -1}, "decimals"),
        ({"decimals": 400}, "decimals"),
        ({"start": float("nan")}, "start"),
        ({"start": "0"}, "start"),
        ({"nan_policy": "drop"}, "nan_policy"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_bad_parameters_are_named(kind: laws.Kind, options: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        kind.make(**options)
