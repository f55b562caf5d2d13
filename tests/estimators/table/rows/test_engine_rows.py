"""Rows in an engine by rank, in all and per key, as sorting them has it; and which keys are public."""

from collections import defaultdict

import numpy as np
import polars as pl
import pytest

import dpfrugal as dpf
from dpfrugal.errors import ItemError
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.rows.engine_rows import EngineColumn, EngineGroups, WholeTable, read_engine_groups
from dpfrugal.estimators.table.rows.engine_tables import Columns, EngineTable, engine_of
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach, SortedRows
from dpfrugal.keys.discovery import KeyDiscovery

RANDOM = np.random.default_rng(4)
VALUES = np.round(RANDOM.normal(size=6_000), 1)
KEYS = RANDOM.choice(["a", "b", "c", "d"], 6_000, p=[0.6, 0.3, 0.099, 0.001])
FRAME = pl.DataFrame({"key": KEYS, "ms": VALUES})
REACHES = [Reach(0.1, 3.0, 0.0), Reach(0.9, 3.0, 0.0)]


def table(frame: pl.DataFrame = FRAME, by: tuple[str, ...] = ("key",)) -> EngineTable:
    source = engine_of(frame)
    assert source is not None
    return source.open(Columns("ms", by))


def groups(frame: pl.DataFrame = FRAME, **options: object) -> EngineGroups:
    asked: dict[str, object] = {"keys": None, "discovery": None, "label": None, "null_keys": "raise"}
    found = asked | {"nan_policy": "raise", "max_keys": 100} | options
    whole = WholeTable(lambda: EngineColumn(table(frame, ()), "omit"))
    return read_engine_groups(table(frame), ["key"], whole, **found)  # type: ignore[arg-type]


def same(one: OrderStatistics, other: OrderStatistics, ranks: tuple[int, int]) -> None:
    found, expected = one.window(*ranks, None, None), other.window(*ranks, None, None)
    for name in ("codes", "below", "upto"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()


@pytest.mark.parametrize("clips", [(None, None), (-1.0, 1.0)])
def test_engine_column__rows_by_rank_are_the_sorted_ones(clips: tuple[float | None, float | None]) -> None:
    column = EngineColumn(table(by=()), "raise")
    assert column.number == VALUES.size
    ends = [None if end is None else int(codes_of(np.array([end]))[0]) for end in clips]
    rows, expected = column.ordered(*ends), SortedRows(codes_of(VALUES), *ends)
    rows.prepare([(595, 605), (5390, 5410)])
    for ranks in ((595, 605), (5390, 5410), (0, 20), (5990, 7000)):  # the last two were not prepared
        same(rows, expected, ranks)


@pytest.mark.parametrize("clips", [(None, None), (-1.0, 1.0)])
@pytest.mark.parametrize("prepared", [True, False])
def test_engine_groups__together_they_are_the_rows_of_the_whole_table(
    clips: tuple[float | None, float | None], prepared: bool
) -> None:
    found = groups(keys=["b", "a"])
    found.prepare(REACHES, Reach(0.35, 700.0, 0.0) if prepared else None)
    ends = [None if end is None else int(codes_of(np.array([end]))[0]) for end in clips]
    codes = codes_of(VALUES)
    rows = found.together(*ends)
    assert rows.rows == codes.size
    middle = codes.size * 35 // 100
    for ranks in ((middle - 700, middle + 700), (0, 9)):  # the latter was not prepared
        same(rows, SortedRows(codes, *ends), ranks)
    nobody = groups(FRAME.head(0), keys=["z"])
    nobody.prepare(REACHES, Reach(0.35, 700.0, 0.0))
    assert nobody.together().rows == 0
    assert nobody.together().window(0, 5, None, None).codes.size == 0


def test_engine_groups__each_key_has_its_own_rows_and_the_label_those_of_the_others() -> None:
    found = groups(keys=["b", "a"], label=("others",))
    assert found.key_columns["key"].to_pylist() == ["b", "a", "others"]
    of_key = defaultdict(list, {"b": VALUES[KEYS == "b"], "a": VALUES[KEYS == "a"]})
    of_key["others"] = VALUES[(KEYS == "c") | (KEYS == "d")]
    assert found.sizes.tolist() == [len(of_key[key]) for key in ("b", "a", "others")]
    found.prepare(REACHES)
    seen = []
    for numbers, part in found.parts():
        for at, number in enumerate(numbers.tolist()):
            seen.append(number)
            expected = SortedRows(codes_of(of_key[["b", "a", "others"][number]]))
            for reach in REACHES:
                first, last = (int(each[0]) for each in reach.ranks(np.array([expected.rows])))
                same(part.statistics(at), expected, (first, last))
            same(part.statistics(at), expected, (0, expected.rows - 1))  # beyond what was found
    assert sorted(seen) == [0, 1, 2]


def test_engine_groups__undeclared_keys_without_a_label_are_left_out() -> None:
    found = groups(keys=["c", "never"])
    assert found.sizes.tolist() == [int((KEYS == "c").sum()), 0]
    assert found.rows == VALUES.size


def test_engine_groups__discovered_keys_are_in_the_order_of_keys() -> None:
    discovery = KeyDiscovery(dpf.ApproxDP(epsilon=1.0, delta=1e-9), 1)
    hidden = groups(discovery=discovery)
    assert hidden.sizes.size == 0
    shown = hidden.discover()
    assert shown.key_columns["key"].to_pylist() == ["a", "b", "c"]  # d has some six rows, of 42
    assert shown.discover() is shown


def test_engine_groups__null_keys_are_refused_or_dropped() -> None:
    frame = pl.concat([FRAME, pl.DataFrame({"key": [None], "ms": [1.0]}, schema=FRAME.schema)])
    with pytest.raises(ItemError, match="null"):
        groups(frame, keys=["a"])
    assert groups(frame, keys=["a"], null_keys="drop").sizes.tolist() == [int((KEYS == "a").sum())]
