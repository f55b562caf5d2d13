"""Order statistics by selection are those of sorting: windows, counts and clips, also where brackets miss."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.errors import TableError
from dpfrugal.estimators.table.rows import brackets, scanning, selected_rows
from dpfrugal.estimators.table.rows.native_rows import TYPES, codes_of_rows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.estimators.table.rows.selected_rows import SelectedRows

SPECIAL = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1e308, -1e308, 1.0, np.nextafter(1, 2)]


@dataclass
class Held:
    """A source of arrays in memory that counts its scans."""

    parts: list[NDArray[Any]]
    sample: NDArray[Any] | None = None
    scans: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.parts[0].dtype

    @property
    def present(self) -> int:
        return sum(part.size for part in self.parts)

    def arrays(self) -> Iterator[NDArray[Any]]:
        self.scans += 1
        yield from self.parts


def same(one: OrderStatistics, other: OrderStatistics, ask: tuple[int, int, int | None, int | None]) -> None:
    found, expected = one.window(*ask), other.window(*ask)
    for name in ("codes", "below", "upto"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), (name, ask)


@st.composite
def columns(draw: st.DrawFn) -> NDArray[Any]:
    """Adversarial rows: few or many ties, heavy atoms, ends of the type, sorted or not."""
    dtype = draw(st.sampled_from(TYPES))
    size, seed = draw(st.integers(1, 400)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    few = draw(st.sampled_from([1, 2, 5, 1000]))
    rows = rng.integers(0, few, size).astype(dtype)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            rows *= dtype.type(draw(st.sampled_from([1.0, 1e-40, 3e37])))
            special = np.array(SPECIAL).astype(dtype)
    else:
        special = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype=dtype)
    chosen = rng.random(size) < draw(st.sampled_from([0.0, 0.1, 0.9]))
    rows[chosen] = rng.choice(special, int(chosen.sum()))
    order = draw(st.sampled_from(["as is", "sorted", "reversed"]))
    return rows if order == "as is" else np.sort(rows)[:: 1 if order == "sorted" else -1].copy()


@pytest.fixture(params=["compiled", "numpy"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either way of scanning, with samples so small that brackets miss and atoms are wrong."""
    monkeypatch.setattr(scanning, "worth_loading", lambda *_: request.param == "compiled")
    monkeypatch.setattr(selected_rows, "SAMPLE", 12)
    monkeypatch.setattr(selected_rows, "MOST_SAMPLE", 12)
    monkeypatch.setattr(brackets, "FEW", 2)
    monkeypatch.setattr(scanning, "ROOM", 8)


@settings(max_examples=150, deadline=None)
@given(columns(), st.data())
def test_selected_rows__equal_sorted_rows(rows: NDArray[Any], data: st.DataObject) -> None:
    codes = codes_of_rows(rows)
    near = st.sampled_from(codes.tolist()).flatmap(
        lambda code: st.integers(max(code - 2, -(2**63)), min(code + 2, 2**63 - 1))
    )
    end = st.none() | near | st.integers(-(2**63), 2**63 - 1)
    least, most = data.draw(end), data.draw(end)
    if least is not None and most is not None and least > most:
        least, most = most, least
    clipped = codes if least is None and most is None else np.clip(codes, least, most)
    cuts = sorted(data.draw(st.lists(st.integers(0, rows.size), max_size=3)))
    selected = SelectedRows(Held(np.split(rows, cuts)), least, most)
    oracle, clipping = SortedRows(clipped), SortedRows(codes, least, most)
    assert selected.rows == oracle.rows == rows.size
    ranks = st.integers(-5, rows.size + 5)
    ranges = data.draw(st.lists(st.tuples(ranks, ranks), max_size=3))
    selected.prepare(ranges)
    for first, last in ranges:
        low, high = data.draw(end), data.draw(end)
        same(selected, oracle, (first, last, low, high))
        same(clipping, oracle, (first, last, low, high))
    code = data.draw(near)
    assert selected.counts(code) == oracle.counts(code) == clipping.counts(code)


def test_selected_rows__prepared_windows_take_one_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets of four standard deviations miss with a chance of 6 in 100,000 each; of twelve, practically never."""
    monkeypatch.undo()
    monkeypatch.setattr(selected_rows, "DEVIATIONS", 12)
    source = Held([np.random.default_rng(3).normal(0, 1, 400_000)])
    rows = SelectedRows(source)
    ranges = [(at - 100, at + 100) for at in (40_000, 200_000, 399_000)]
    rows.prepare(ranges)
    for first, last in ranges:
        same(rows, SortedRows(codes_of_rows(source.parts[0])), (first, last, None, None))
    assert source.scans == 2, "one is the sample's"


@pytest.mark.parametrize("share", [0.3, 0.9, 1.0])
def test_selected_rows__a_frequent_value_is_counted_and_not_collected(share: float, monkeypatch: Any) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(selected_rows, "SAMPLE", 1 << 12)
    most = 0
    read = scanning.Scan.read

    def watching(self: scanning.Scan, arrays: Any) -> None:
        nonlocal most
        read(self, arrays)
        most = max(most, self.found.size)

    monkeypatch.setattr(scanning.Scan, "read", watching)
    rng = np.random.default_rng(5)
    values = np.where(rng.random(200_000) < share, 0.0, rng.normal(0, 1, 200_000))
    same(SelectedRows(Held([values])), SortedRows(codes_of_rows(values)), (99_900, 100_100, None, None))
    assert most < 0.2 * values.size


def test_selected_rows__a_table_that_changes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selected_rows, "MOST_SAMPLE", 200)
    source = Held([np.arange(1000.0)])
    rows = SelectedRows(source)
    rows.window(500, 510, None, None)
    source.parts = [np.arange(1000.0) - 3]
    with pytest.raises(TableError, match="changed while it was read"):
        rows.window(10, 20, None, None)
    shrinking = SelectedRows(Held([np.arange(1000.0)], sample=np.arange(1000.0)))
    shrinking.rows  # noqa: B018 - known before
    object.__setattr__(shrinking, "_source", _Lying([np.arange(999.0)], sample=np.arange(1000.0)))
    with pytest.raises(TableError, match="changed while it was read"):
        shrinking.window(10, 20, None, None)


class _Lying(Held):
    """A source that has fewer rows than it said."""

    @property
    def present(self) -> int:
        return 1000


def test_selected_rows__show_no_row() -> None:
    rows = SelectedRows(Held([np.array([123456, 123457] * 500)]))
    rows.window(400, 600, None, None)
    assert "12345" not in repr(rows) + repr(rows._known)
