"""The search for windows by scans: exact on any rows, whatever the sample says, and no scan collects too much.

The engine here is a list of rows in this process, which answers a scan by the definition of one.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.engines import bracket_search
from dpfrugal.engines.bracket_search import BracketedTable
from dpfrugal.errors import TableError
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.rows.engine_tables import Assigned, Tallies
from dpfrugal.estimators.table.rows.order_statistics import Reach

SMALL = {"WHOLE": 8, "FEW": 8, "COLLECTED": 40, "TIMES_WANTED": 1, "LEAST_SAMPLE": 8}


class Listed(BracketedTable):
    """Rows of groups in this process; ``collected`` has how many rows each scan has returned."""

    def __init__(self, groups: np.ndarray, values: np.ndarray, seed: int = 0, misleading: bool = False) -> None:
        self.groups, self.values = groups, values
        self._random, self._misleading = np.random.default_rng(seed), misleading
        self.collected: list[int] = []
        self.counted: list[bool] = []

    @property
    def value_type(self) -> Any:
        return pa.float64()

    def counts(self) -> Any:
        raise AssertionError("the search is given them")

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        sizes = np.bincount(self.groups, minlength=assigned.groups).astype(np.int64)
        return Tallies(sizes, np.bincount(self.groups, self.hashes(), assigned.groups).astype(np.int64))

    def hashes(self) -> np.ndarray:
        return self.values.view(np.uint64) % 1_000_003

    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        counts: dict[str, list[int]] = {"number": [], "rows": [], "checksum": []}
        numbers: list[int] = []
        found: list[float] = []
        for row in brackets.to_pylist():
            mine = self.values[self.groups == row["key"]]
            counts["number"].append(row["number"])
            counts["rows"].append(mine.size)
            counts["checksum"].append(int(self.hashes()[self.groups == row["key"]].sum()))
            inside = np.full(mine.size, not quantiles)
            for k in range(quantiles):
                low, high = (row[f"{end}_{k}"] for end in ("low", "high"))
                least, most = -np.inf if low is None else low, np.inf if high is None else high
                counts.setdefault(f"below_{k}", []).append(int((mine < least).sum()))
                counts.setdefault(f"upto_{k}", []).append(int((mine <= most).sum()))
                inside |= (mine >= least) & (mine <= most)
            kept = mine[inside]
            if row["share"] < 1 and not by_value:
                kept = kept[self._random.random(kept.size) < row["share"]]
                if self._misleading:
                    kept = kept[kept > np.median(mine)]
            numbers += [row["number"]] * kept.size
            found += kept.tolist()
        rows = pa.table({"number": pa.array(numbers, pa.int32()), "value": pa.array(found, pa.float64())})
        if by_value:
            rows = rows.group_by(["number", "value"]).aggregate([([], "count_all")]).rename_columns(
                ["number", "value", "times"]
            )  # fmt: skip
        self.collected.append(rows.num_rows)
        self.counted.append(counted)
        return (pa.table(counts) if counted else None), rows


def assigned_to(groups: int) -> Assigned:
    keys = pa.table({"key": pa.array(range(groups), pa.int64()), "group": pa.array(range(groups), pa.int32())})
    return Assigned(keys, groups)


def found_and_true(table: Listed, groups: int, reaches: list[Reach]) -> None:
    """Every group is found once, and its stretches are those of its sorted rows."""
    assigned = assigned_to(groups)
    tallies = table.tallies(assigned, None)
    sizes, found = tallies.sizes, table.find(assigned, tallies, reaches)
    assert sorted(np.concatenate([each.groups for each in found]).tolist()) == list(range(groups))
    for part in found:
        for reach, stretches in zip(reaches, part.stretches, strict=True):
            first, last = reach.ranks(sizes[part.groups])
            windows = stretches.windows((first, last))
            for at, group in enumerate(part.groups.tolist()):
                rows = np.sort(codes_of(table.values[table.groups == group]))
                window = windows.codes[windows.starts[at] : windows.starts[at + 1]]
                assert np.array_equal(window, rows[first[at] : last[at] + 1])
                assert not window.size or windows.before[at] == first[at]


def narrow(patch: pytest.MonkeyPatch, **others: float) -> None:
    for name, value in (SMALL | others).items():
        patch.setattr(bracket_search, name, value)


values = st.sampled_from([0.0, 1.0, 2.5, 1e9]) | st.floats(-1e6, 1e6)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), values), min_size=1, max_size=120),
    times=st.integers(1, 6),
    misleading=st.booleans(),
    deviations=st.sampled_from([0.0, 0.5, 4.0]),
)
def test_search__finds_the_windows_of_any_rows(
    rows: list[tuple[int, float]], times: int, misleading: bool, deviations: float
) -> None:
    """Also where samples have the upper half of the rows only: a bracket that has missed is widened."""
    groups, numbers = (np.array(column * times) for column in zip(*rows, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        narrow(patch, DEVIATIONS=deviations)
        table = Listed(groups.astype(np.int64), numbers.astype(np.float64), misleading=misleading)
        found_and_true(table, 4, [Reach(q, 1, 0.2) for q in (0.1, 0.5, 0.9)])


def test_search__of_a_large_group_collects_a_few_per_cent_of_its_rows() -> None:
    """The sample and the bracket of one median of 300,000 rows."""
    numbers = np.random.default_rng(3).normal(size=300_000)
    table = Listed(np.zeros(numbers.size, dtype=np.int64), numbers)
    found_and_true(table, 1, [Reach(0.5, 20, 0.5)])
    assert table.counted == [False, True]
    assert sum(table.collected) < 0.1 * numbers.size


def test_search__of_small_groups_is_one_scan_of_their_rows() -> None:
    groups = np.repeat(np.arange(5), [1, 0, 30, 200, 3])
    table = Listed(groups, np.arange(groups.size, dtype=np.float64))
    found_and_true(table, 5, [Reach(0.5, 20, 0.5), Reach(0.9, 20, 0.5)])
    assert table.collected == [groups.size]


def test_search__of_ties_counts_them_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million equal rows are one value and a number."""
    narrow(monkeypatch)
    numbers = np.repeat([1.0, 2.0, 3.0], 20_000)
    table = Listed(np.zeros(numbers.size, dtype=np.int64), numbers)
    found_and_true(table, 1, [Reach(0.5, 20, 0.5)])
    assert table.collected[-1] <= 3


@pytest.mark.parametrize("where", ["a small group", "a large group", "a value", "within a bracket"])
def test_search__refuses_rows_that_change_between_scans(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where != "a small group":
        narrow(monkeypatch)
    numbers = np.arange(2_000, dtype=np.float64)
    table = Listed(np.zeros(numbers.size, dtype=np.int64), numbers)
    tallies = table.tallies(assigned_to(1), None)
    scan = table.scan

    def changed(*arguments: Any, **options: Any) -> tuple[Any, Any]:
        counts, rows = scan(*arguments, **options)
        if where == "within a bracket" and counts is not None:
            rows = rows.slice(1)
        return counts, rows

    if where == "a value":  # as many rows, one of which is another
        table.values = np.where(numbers == 3, 1_500.5, numbers)
    elif where != "within a bracket":
        table.groups, table.values = table.groups[:-1], table.values[:-1]
    monkeypatch.setattr(table, "scan", changed)
    with pytest.raises(TableError, match="changed while it was read"):
        table.find(assigned_to(1), tallies, [Reach(0.5, 20, 0.5)])
