"""Windows of a Spark stream: the rows of each are those that came for it, many or few, however often a value came."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpfrugal.engines.spark import stream_windows
from dpfrugal.engines.spark.stream_windows import VALUE, Span, between, checked_length, windows_of
from dpfrugal.errors import ParameterError
from tests.engines.spark.streams import Stream

pytestmark = pytest.mark.spark
MINUTE = 60 * 10**6


@pytest.mark.parametrize("few", [0, 1 << 17])
def test_windows__have_the_rows_that_came_for_them(
    few: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many rows they are frames, with few they are collected; one value comes more often than a step."""
    monkeypatch.setattr(stream_windows, "FEW", few)
    monkeypatch.setattr(stream_windows, "STEP", 100)
    monkeypatch.setattr(stream_windows, "AT_ONCE", 1000)
    random = np.random.default_rng(5)
    rows = 2_000
    minute = random.integers(0, 5, rows)
    value = np.where(random.random(rows) < 0.5, 7, random.integers(0, 50, rows))
    table = pa.table(
        {"x": value, "at": pa.array(minute * MINUTE, pa.timestamp("us", "UTC")), "key": [f"k{v % 2}" for v in value]}
    )
    stream = Stream(spark, tmp_path, [table])
    windows = windows_of(stream.frame, "x", ("key",), None, "at", "1 minute", None)
    found: dict[int, list[tuple[int, str]]] = {}

    def take(batch: Any, _: int) -> None:
        with windows.ended(batch) as ended:
            for each in ended:
                data = each.data.toArrow() if hasattr(each.data, "toArrow") else each.data
                assert data.column_names == [VALUE, "key"]
                assert data.num_rows == each.rows
                assert isinstance(each.data, pa.Table) == (few > 0)
                pairs = zip(data.column(VALUE).to_pylist(), data.column("key").to_pylist(), strict=True)
                assert each.span.start is not None
                found[each.span.start // MINUTE] = sorted(pairs)

    query = windows.of(stream.frame).writeStream.foreachBatch(take).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    assert sorted(found) == [0, 1, 2, 3]
    for k, pairs in found.items():
        assert pairs == sorted((int(v), f"k{v % 2}") for v in value[minute == k])


def test_between__is_every_window_between_two() -> None:
    before, after = Span(0, MINUTE), Span(3 * MINUTE, 4 * MINUTE)
    assert list(between(before, after)) == [Span(MINUTE, 2 * MINUTE), Span(2 * MINUTE, 3 * MINUTE)]
    assert list(between(Span(), after)) == list(between(before, Span())) == []
    with pytest.raises(ParameterError, match="more than 10,000 windows without rows"):
        list(between(before, Span(10**6 * MINUTE, (10**6 + 1) * MINUTE)))


@pytest.mark.parametrize("text", ["1 minute", "90 seconds", "1 hour 30 minutes", " 2 days "])
def test_checked_length__takes_lengths_of_time(text: str) -> None:
    assert checked_length("window", text) == text


@pytest.mark.parametrize("text", ["", "minute", "1m", "1 month", "-1 minute", "1.5 hours", "1 minute ago"])
def test_checked_length__refuses_what_is_none(text: str) -> None:
    with pytest.raises(ParameterError, match="length of time"):
        checked_length("window", text)
