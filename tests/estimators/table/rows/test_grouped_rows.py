"""Rows by group: every source and type of column, any order and cut of rows, limits per person, discovered keys."""

import datetime
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal import ApproxDP, ItemError, ItemTypeError, ParameterError, ParameterTypeError, PureDP, TableError
from dpfrugal.estimators.table.base.codes import codes_of, doubles_of
from dpfrugal.estimators.table.rows import group_reading
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows, read_groups
from dpfrugal.estimators.table.rows.order_statistics import SortedRows
from tests.support.byte_shift import CSV_SOURCES, byte_shift_pair
from tests.support.naive_groups import by_group, chosen

TABLE = pa.table(
    {
        "key": ["a", "b", "c", "a", None, "b", "a", "d"],
        "size": [1, 1, 2, 2, 1, 1, 1, 1],
        "x": [3.5, -1.0, 2.0, None, 9.0, float("inf"), -0.0, 4.0],
        "who": [1, 2, 1, 1, 3, 2, 4, 4],
    }
)
LOOSE: Any = {"null_keys": "drop", "nan_policy": "omit"}
EASY = ApproxDP(epsilon=200.0, delta=0.01)  # the noise is 0 but for a chance of 10^-40, the threshold 2 rows


def contents(groups: GroupedRows) -> dict[Any, list[Any]]:
    """The public keys in their order, each with the values of its rows in ascending order."""
    keys = [tuple(key.values()) if isinstance(key, dict) else key for key in groups.keys.to_pylist()]
    assert groups.sizes.tolist() == [groups.codes(g).size for g in range(len(keys))]
    return {key: [groups.kind.answer(int(code)) for code in groups.codes(g)] for g, key in enumerate(keys)}


@pytest.mark.parametrize("memory", [None, 20 * 700])
def test_together__are_the_rows_of_all_public_keys_by_rank(memory: int | None) -> None:
    rng = np.random.default_rng(8)
    table = pa.table({"key": rng.integers(0, 9, 3_000), "x": np.round(rng.normal(size=3_000), 2)})
    found = read_groups(table, "x", "key", keys=[1, 2, 5, 7], memory=memory)
    if memory is not None:
        with pytest.raises(ParameterError, match="memory does not allow all rows at once"):
            found.codes(0)
    kept = table["x"].to_numpy()[np.isin(table["key"].to_numpy(), [1, 2, 5, 7])]
    for ends in ((None, None), codes_of(np.array([-0.5, 0.75])).tolist()):
        rows, expected = found.together(*ends), SortedRows(codes_of(kept), *ends)
        assert rows.rows == kept.size
        window, sorted_window = (each.window(300, 900, None, None) for each in (rows, expected))
        for name in ("codes", "below", "upto"):
            assert getattr(window, name).tolist() == getattr(sorted_window, name).tolist()


def csv(table: pa.Table, folder: Path) -> Path:
    pc.write_csv(table, folder / "table.csv")
    return folder / "table.csv"


SOURCES: dict[str, Any] = {
    "table": lambda table, folder: table,
    "batch": lambda table, folder: table.combine_chunks().to_batches()[0],
    "reader": lambda table, folder: table.to_reader(max_chunksize=3),
    "dataset": lambda table, folder: ds.dataset(table),
    "dictionary": lambda table, folder: table.set_column(0, "key", table["key"].dictionary_encode()),
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas objects": lambda table, folder: table.to_pandas().astype({"key": object, "x": object}),
    "pandas arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas category": lambda table, folder: table.to_pandas().astype({"key": "category"}),
    "polars": lambda table, folder: pl.from_arrow(table),
    "polars categorical": lambda table, folder: pl.from_arrow(table).with_columns(pl.col("key").cast(pl.Categorical)),
    "polars lazy": lambda table, folder: pl.from_arrow(table).lazy(),
    "duckdb": lambda table, folder: duckdb.from_arrow(table),
    "parquet": lambda table, folder: pq.write_table(table, folder / "t.parquet") or folder / "t.parquet",
    "csv": csv,
    "glob": lambda table, folder: csv(table, folder) and str(folder / "*.csv"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_read_groups__reads_every_source(source: str, tmp_path: Path) -> None:
    data = SOURCES[source](TABLE, tmp_path)
    groups = read_groups(data, "x", "key", keys=["b", "a", "none"], other="rest", **LOOSE)
    assert contents(groups) == {"b": [-1.0, float("inf")], "a": [0.0, 3.5], "none": [], "rest": [2.0, 4.0]}
    assert groups.rows == 8
    assert groups.statistics(1).rows == 2
    assert groups.discover() is groups


@pytest.mark.parametrize("source", [source for source in SOURCES if source not in ("csv", "glob")])
def test_read_groups__takes_several_columns_as_the_key(source: str, tmp_path: Path) -> None:
    data = SOURCES[source](TABLE, tmp_path)
    groups = read_groups(data, "x", ["key", "size"], keys=[("a", 1), ("c", 2)], other=("rest", None), **LOOSE)
    assert contents(groups) == {("a", 1): [0.0, 3.5], ("c", 2): [2.0], ("rest", None): [-1.0, 4.0, float("inf")]}
    assert list(groups.key_columns) == ["key", "size"]


def columns_of_types() -> dict[str, Any]:
    day, hour = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12)
    return {
        "integers": (pa.array([2**63 - 1, None, -5]), [-5, 2**63 - 1]),
        "unsigned": (pa.array([2**64 - 1, None, 0], pa.uint64()), [0, 2**64 - 1]),
        "half floats": (pa.array(np.array([2.5, np.nan, -1.0], dtype=np.float16)), [-1.0, 2.5]),
        "floats with NaN": (pa.array([2.5, float("nan"), -1.0]), [-1.0, 2.5]),
        "decimals": (pa.array([Decimal("9.99"), None, Decimal("0.01")]), [Decimal("0.01"), Decimal("9.99")]),
        "dates": (pa.array([day, None, day.replace(year=1960)]), [np.datetime64("1960-02-29"), np.datetime64(day)]),
        "times": (pa.array([hour, None, hour]), [np.datetime64(hour, "us")] * 2),
        "dictionary": (pa.array([7, None, 5]).dictionary_encode(), [5, 7]),
    }


@pytest.mark.parametrize("kind", columns_of_types())
def test_read_groups__keeps_the_type_of_a_column(kind: str) -> None:
    column, expected = columns_of_types()[kind]
    table = pa.table({"key": ["a"] * 3, "x": column})
    assert contents(read_groups(table, "x", "key", keys=["a"], nan_policy="omit")) == {"a": expected}
    empty = read_groups(table.slice(0, 0), "x", "key", keys=["a"])  # a type is public without rows
    assert (empty.kind.name, empty.rows) == (read_groups(table, "x", "key", keys=["a"], **LOOSE).kind.name, 0)


def test_read_groups__does_not_let_objects_choose_the_type_of_a_column() -> None:
    for item in (Decimal("0.5"), Decimal("0.5000"), 0.5):
        frame = pd.DataFrame({"key": ["a"], "x": pd.Series([item], dtype=object)})
        groups = read_groups(frame, "x", "key", keys=["a"])
        assert (groups.kind.name, contents(groups)) == ("float", {"a": [0.5]})


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-3, 3)), max_size=40)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.integers(1, 3), st.none() | st.integers(1, 3), st.booleans(), st.randoms(use_true_random=False))
def test_read_groups__equals_what_one_would_write_down(
    rows: list[tuple[int, int, int]], most_items: int, most_keys: int | None, other: bool, random: Any
) -> None:
    """In any order, cut anywhere, given the priorities of rows."""
    declared = [4, 1, 3]
    priorities = random.sample(range(1000), len(rows))  # of two that are equal the first row would come first
    codes = [declared.index(key) if key in declared else 3 if other else -1 for _, key, _ in rows]
    counted = chosen(priorities, [who for who, _, _ in rows], codes, most_items, most_keys)
    kept = [code if taken else -1 for code, taken in zip(codes, counted, strict=True)]
    expected = by_group(kept, [value for _, _, value in rows], 3 + other)
    order = random.sample(range(len(rows)), len(rows))
    schema = pa.schema([("who", pa.int64()), ("key", pa.int64()), ("x", pa.int64())])
    table = pa.Table.from_pylist([dict(zip(schema.names, rows[row], strict=True)) for row in order], schema)
    cuts = sorted(random.randint(0, len(rows)) for _ in range(4))
    parts = [table.slice(a, b - a).to_batches() for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    reader = pa.RecordBatchReader.from_batches(schema, [batch for part in parts for batch in part])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_reading, "ROWS_AT_ONCE", 7)
        patch.setattr(group_reading, "RowPriorities", lambda: _Given([priorities[row] for row in order]))
        groups = read_groups(
            reader, "x", "key", keys=declared, other=9 if other else None, person="who",
            max_items_per_person=most_items, max_keys_per_person=most_keys,
        )  # fmt: skip
    assert list(contents(groups).values()) == expected


class _Given:
    def __init__(self, priorities: list[int]) -> None:
        self._left = priorities

    def next(self, rows: int) -> Any:
        now, self._left = self._left[:rows], self._left[rows:]
        return np.array(now, dtype=np.uint64)


def test_read_groups__sorts_large_tables_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    monkeypatch.setattr(group_reading, "available", lambda: 3)
    for keys, rows in ((3, 500_000), (10_000, 500_000)):
        ids, values = rng.integers(0, keys, rows), rng.normal(size=rows)
        groups = read_groups(pa.table({"key": ids, "x": values}), "x", "key", keys=np.arange(keys))
        order = np.lexsort([values, ids])
        assert np.array_equal(groups.sorted_codes, table_codes(values[order]))
        assert np.array_equal(groups.sizes, np.bincount(ids, minlength=keys))


def table_codes(values: Any) -> Any:
    from dpfrugal.estimators.table.base.codes import codes_of

    return codes_of(values)


@pytest.mark.parametrize("source", [source for source in SOURCES if source not in ("csv", "glob")])
def test_read_groups__shows_keys_only_once_they_are_discovered(source: str, tmp_path: Path) -> None:
    data = SOURCES[source](TABLE, tmp_path)
    hidden = read_groups(data, "x", "key", discover_keys=EASY, other="rest", **LOOSE)
    assert hidden.keys.equals(pa.nulls(0))
    assert hidden.sizes.size == hidden.sorted_codes.size == 0
    assert not any(f'"{key}"' in repr(hidden) for key in "abcd")
    found = hidden.discover()
    assert contents(found) == {"a": [0.0, 3.5], "b": [-1.0, float("inf")], "rest": [2.0, 4.0]}
    assert hidden.discover() is found  # no second draw
    alone = read_groups(TABLE, "x", ["size", "key"], discover_keys=EASY, **LOOSE).discover()
    assert contents(alone) == {(1, "a"): [0.0, 3.5], (1, "b"): [-1.0, float("inf")]}


def test_read_groups__discovers_nothing_without_a_type() -> None:
    strict = ApproxDP(epsilon=1.0, delta=1e-9)
    for table in (TABLE, TABLE.slice(0, 0)):
        groups = read_groups(table, "x", "key", discover_keys=strict, **LOOSE).discover()
        assert (groups.keys.type, len(groups.keys)) == (pa.null(), 0)
        labelled = read_groups(table, "x", "key", discover_keys=strict, other="rest", **LOOSE).discover()
        assert labelled.keys.to_pylist() == ["rest"]


def test_read_groups__counts_rows_that_have_the_label_as_their_key_with_the_others() -> None:
    table = pa.table({"key": ["rest"] * 5 + ["a"] * 3, "x": range(8)})
    found = read_groups(table, "x", "key", discover_keys=EASY, other="rest").discover()
    assert contents(found) == {"a": [5, 6, 7], "rest": [0, 1, 2, 3, 4]}


def test_read_groups__discovers_among_the_rows_that_count() -> None:
    """One person has 50 rows: they make no key public that others have not."""
    table = pa.table({"key": ["own"] * 50 + ["all"] * 50, "x": range(100), "who": [0] * 50 + list(range(50))})
    options: Any = {"person": "who", "discover_keys": ApproxDP(epsilon=50.0, delta=1e-9)}
    found = read_groups(table, "x", "key", **options).discover()
    assert found.keys.to_pylist() == ["all"]
    assert found.sizes[0] in (49, 50)  # person 0 has a row of either key


def test_byte_shift_pair__moves_the_cuts_of_a_reader(tmp_path: Path) -> None:
    sizes = [[batch.num_rows for batch in CSV_SOURCES["pyarrow reader"](path)] for path in byte_shift_pair(tmp_path)]
    assert len(sizes[0]) > 5
    assert sizes[0] != sizes[1]


@pytest.mark.parametrize("max_keys_per_person", [None, 2])
@pytest.mark.parametrize("source", CSV_SOURCES)
def test_read_groups__lets_no_cell_decide_which_rows_of_others_count(
    source: str, max_keys_per_person: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpfrugal.keys.person_limits.secrets.randbits", lambda bits: 7)
    counted = []
    for path in byte_shift_pair(tmp_path):
        options: Any = {"keys": ["a", "b", "c"], "other": "rest", "max_keys_per_person": max_keys_per_person}
        groups = read_groups(CSV_SOURCES[source](path), "x", "key", person="who", max_items_per_person=2, **options)
        counted.append(contents(groups))
    assert 0 in counted[0]["b"]
    assert counted[1]["rest"] == [0]
    counted[0]["b"].remove(0)
    counted[1]["rest"].remove(0)
    assert counted[0] == counted[1]
    monkeypatch.setattr("dpfrugal.keys.person_limits.secrets.randbits", lambda bits: 8)
    groups = read_groups(CSV_SOURCES[source](path), "x", "key", person="who", max_items_per_person=2, **options)
    assert contents(groups) != counted[1] | {"rest": [0]}  # chance decides


def test_read_groups__sets_the_limits_per_person() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"key": rng.integers(0, 5, 3000), "x": np.arange(3000), "who": rng.integers(0, 50, 3000)})
    groups = read_groups(
        table, "x", "key", keys=[0, 1, 2, 3, 4], person="who", max_items_per_person=2, max_keys_per_person=3
    )
    had: dict[int, list[int]] = defaultdict(list)
    for key, values in contents(groups).items():
        for value in values:
            had[table["who"][value].as_py()].append(key)
    assert all(len(keys) == 6 and len(set(keys)) == 3 for keys in had.values())  # everybody has enough of each


def test_read_groups__refuses_in_one_sentence() -> None:
    def refused(error: type[Exception], match: str, data: Any = TABLE, by: Any = "key", **options: Any) -> None:
        with pytest.raises(error, match=match) as caught:
            read_groups(data, options.pop("column", "x"), by, **({"keys": ["a"]} | LOOSE | options))
        assert caught.value.__context__ is None or caught.value.__suppress_context__

    refused(ParameterError, "exclude each other", discover_keys=EASY)
    refused(ParameterError, "Either keys or discover_keys", keys=None)
    refused(ParameterTypeError, "discover_keys must be an ApproxDP", keys=None, discover_keys=PureDP(epsilon=1.0))
    refused(ParameterError, "same key twice", keys=["a", "a"])
    refused(ParameterError, "other must not be one of keys", other="a")
    refused(ParameterTypeError, "other must be a key of the type", other=7)
    refused(ParameterTypeError, "other must be a key of the type", by="size", keys=[1], other="rest")
    refused(ParameterTypeError, "tuple of 2", by=["key", "size"], keys=[("a", 1)], other="rest")
    refused(ParameterError, "none of them twice", by=["key", "key"])
    refused(ParameterError, "at least one column", by=[])
    refused(ParameterTypeError, "by must be the name", by=7)
    refused(ParameterTypeError, "person must be the name", person=7)
    refused(TableError, "no column 'nix'; there are 'key', 'size', 'x', 'who'", column="nix")
    refused(TableError, "no column 'nix'", by="nix")
    refused(TableError, "no column 'nix'", data=pl.from_arrow(TABLE).lazy(), person="nix")
    refused(
        TableError,
        "its plan fails",
        data=pl.from_arrow(TABLE).lazy().with_columns(pl.col("key").cast(pl.Int64).alias("x")),
    )
    refused(ItemError, "null keys", null_keys="raise")
    refused(ItemError, "NaN or null rows", nan_policy="raise")
    refused(ParameterError, "nan_policy", nan_policy="skip")
    refused(ItemTypeError, "must be numbers, dates", column="key")
    refused(ItemTypeError, "must be strings, as declared; these are integers", by="size")
    refused(ItemError, "person has null ids", person="key")
    refused(ParameterTypeError, "data must be", data=[1, 2, 3])


def many(rows: int = 2000) -> pa.Table:
    rng = np.random.default_rng(6)
    keys = rng.choice(["a", "b", "c", "d", "e"], rows, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    return pa.table({"key": keys, "x": rng.integers(-50, 50, rows), "who": np.arange(rows)})


@pytest.mark.parametrize("memory", [1, 20 * 250, 20 * 600, 20 * 1999, 20 * 2000])
@pytest.mark.parametrize("discovers", [False, True])
@pytest.mark.parametrize("other", [None, "rest"])
def test_read_groups__reads_again_what_may_not_be_held_at_once(
    memory: int, discovers: bool, other: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_reading, "ROWS_AT_ONCE", 70)
    table = many()
    options: Any = {"discover_keys": EASY} if discovers else {"keys": ["e", "a", "d"]}
    pq.write_table(table, tmp_path / "table.parquet")
    expected = contents(read_groups(table, "x", "key", other=other, **options).discover())
    for data in (table, tmp_path / "table.parquet", ds.dataset(table), table.to_pandas()):
        groups = read_groups(data, "x", "key", other=other, memory=memory, **options).discover()
        found: dict[Any, Any] = {}
        held = []
        for here, part in groups.parts():
            assert here.start == len(found)
            found |= contents(part)
            held.append(part.sizes)
        assert list(found.items()) == [(key, [int(value) for value in values]) for key, values in expected.items()]
        assert groups.sizes.tolist() == [len(values) for values in expected.values()]
        assert all(sizes.size == 1 or sizes.sum() * 20 <= memory for sizes in held)
        if memory < 20 * 2000:
            with pytest.raises(ParameterError, match="by parts"):
                _ = groups.sorted_codes
        else:
            assert len(held) == 1


def test_read_groups__refuses_what_memory_does_not_allow() -> None:
    options: Any = {"keys": ["a"], "memory": 20 * 1999}
    with pytest.raises(ParameterError, match="can be read once only"):
        read_groups(many().to_reader(), "x", "key", **options)
    with pytest.raises(ParameterError, match="too small for person"):
        read_groups(many(), "x", "key", person="who", **options)
    read_groups(many(), "x", "key", person="who", keys=["a"], memory=66 * 2000)
    for wrong in (0, -1):
        with pytest.raises(ParameterError, match="memory must be at least 1"):
            read_groups(many(), "x", "key", keys=["a"], memory=wrong)


@pytest.mark.parametrize("discovers", [False, True])
def test_read_groups__refuses_a_table_that_changes_between_two_readings(discovers: bool, tmp_path: Path) -> None:
    table, path = many(), tmp_path / "table.parquet"
    changes = {
        "a row less": table.slice(1),
        "another key": table.set_column(0, "key", pa.array(["new", *table["key"].to_pylist()[1:]])),
        "a key of the same part": table.set_column(0, "key", pa.array([*["b"] * 9, *table["key"].to_pylist()[9:]])),
    }
    for changed in changes.values():
        pq.write_table(table, path)
        options: Any = {"discover_keys": EASY} if discovers else {"keys": list("abcde")}
        groups = read_groups(path, "x", "key", memory=20 * 1200, **options).discover()
        assert len(list(groups.parts())) == 2
        pq.write_table(changed, path)
        with pytest.raises(TableError, match="changed between two readings"):
            list(groups.parts())


@pytest.mark.spark
def test_read_groups__reads_spark(spark: Any) -> None:
    frame = spark.createDataFrame([("a", 1, 1.5), ("b", 2, None), ("a", 3, 0.5)], "key string, `w.ho` int, x double")
    groups = read_groups(frame, "x", "key", keys=["b", "a"], person="w.ho", **LOOSE)
    assert contents(groups) == {"b": [], "a": [0.5, 1.5]}
    with pytest.raises(TableError, match=r"no column 'nix'; there are 'key', 'w\.ho', 'x'"):
        read_groups(frame, "nix", "key", keys=["b", "a"])


def test_read_groups__rows_without_a_key_may_be_a_group_of_their_own() -> None:
    """The last one, after that of other keys; its key is null, in every column of it."""
    table = pa.table({"k": ["a", None, "b", None, "c"], "l": [1, 1, 1, None, None], "x": [1.0, 2.0, 3.0, 4.0, 5.0]})
    one = read_groups(table, "x", "k", keys=["b", "a"], other="rest", null_keys="group")
    assert one.keys.to_pylist() == ["b", "a", "rest", None]
    assert [doubles_of(one.codes(group)).tolist() for group in range(4)] == [[3.0], [1.0], [5.0], [2.0, 4.0]]
    two = read_groups(table, "x", ["k", "l"], keys=[("a", 1)], null_keys="group")
    assert two.keys.to_pylist() == [{"k": "a", "l": 1}, {"k": None, "l": None}]
    assert doubles_of(two.codes(1)).tolist() == [2.0, 4.0, 5.0]
    small = read_groups(table, "x", "k", keys=["a"], null_keys="group", memory=1)
    parts = [doubles_of(part.codes(0)).tolist() for _, part in small.parts()]
    assert parts == [[1.0], [2.0, 4.0]]
    with pytest.raises(ParameterError, match='"group" is for declared keys'):
        read_groups(table, "x", "k", discover_keys=ApproxDP(epsilon=1.0, delta=1e-6), null_keys="group")
    with pytest.raises(ParameterError, match='"drop" or "group"; \'keep\' is none of them'):
        read_groups(table, "x", "k", keys=["a"], null_keys="keep")  # type: ignore[arg-type]


def test_read_groups__header_says_whether_files_have_one(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("k,x\na,1\na,2\n")
    found = read_groups(tmp_path / "rows.csv", "x", "k", keys=["a"], header=True)
    assert doubles_of(found.codes(0)).tolist() == [1.0, 2.0]
    with pytest.raises(TableError, match="without a header"):
        read_groups(tmp_path / "rows.csv", "x", "k", keys=["a"], header=False)
    with pytest.raises(ParameterError, match="header is for files of text"):
        read_groups(TABLE, "x", "key", keys=["a"], header=True)
