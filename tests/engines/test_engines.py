"""Every engine: its windows are those of the sorted rows, exactly, and the front doors are the same."""

import datetime
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.engines import bracket_search
from dpfrugal.engines.sql import table as sql_table
from dpfrugal.errors import ItemError, TableError
from dpfrugal.estimators.table.rows.engine_rows import EngineColumn, all_rows
from dpfrugal.estimators.table.rows.engine_tables import Assigned
from dpfrugal.estimators.table.rows.grouped_rows import groups_of, read_groups
from dpfrugal.estimators.table.rows.order_statistics import Reach, SortedRows
from tests.engines.holders import Holder, check, codes_by_key, flights, grouped, opened, typed
from tests.engines.sql.databases import clickhouse_table, duckdb_table, postgres_table, sqlite_table

GUARANTEE = dpf.PureDP(epsilon=1.0)


def polars_frame(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def polars_lazy_frame(table: pa.Table) -> Any:
    return polars_frame(table).lazy()


def duckdb_relation(table: pa.Table) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.register("rows", table)
    return connection.sql("SELECT * FROM rows")


IN_PROCESS = {"duckdb": duckdb_relation, "polars": polars_frame, "polars lazy": polars_lazy_frame}
DATABASES = {"sqlite": sqlite_table, "duckdb by sql": duckdb_table}


@pytest.mark.parametrize("name", IN_PROCESS)
def test_engine__says_that_decimals_are_beyond_64_bits(name: str) -> None:
    large = pa.array([Decimal(30_000_000_000 + row) for row in range(3_000)], pa.decimal128(38, 10))
    hold = IN_PROCESS[name]
    assert dpf.private_quantiles(hold(pa.table({"x": large})), 0.5, GUARANTEE, column="x").value == Decimal("Infinity")
    with mock.patch.multiple(bracket_search, WHOLE=100, FEW=100, LEAST_SAMPLE=32):
        data = hold(pa.table({"x": large, "k": ["a", "b"] * 1_500}))
        found = dpf.quantiles_by(data, "x", 0.5, GUARANTEE, by="k", keys=["a", "b"])
    assert found["value"].null_count == 2
    assert "beyond decimals" in found["reason"][0].as_py()


@pytest.fixture(
    params=[*IN_PROCESS, *DATABASES, "clickhouse", "postgres", pytest.param("spark", marks=pytest.mark.spark)]
)
def hold(request: pytest.FixtureRequest, tmp_path: Any) -> Holder:
    """An engine."""
    name: str = request.param
    if name == "spark":
        session = request.getfixturevalue("spark")
        return lambda table: session.createDataFrame(table).repartition(3)
    if name == "clickhouse":
        return lambda table: clickhouse_table(table, tmp_path)
    if name == "postgres":
        connection = request.getfixturevalue("postgres")
        return lambda table: postgres_table(table, connection)
    return {**IN_PROCESS, **DATABASES}[name]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are searched for in tables of a few thousand rows too, in several rounds."""
    for name, value in {"WHOLE": 50, "FEW": 50, "COLLECTED": 600, "TIMES_WANTED": 1, "LEAST_SAMPLE": 64}.items():
        monkeypatch.setattr(bracket_search, name, value)
    for name in ("LARGE", "LARGE_GROUPS"):
        monkeypatch.setattr(sql_table, name, 50)


def same_windows(hold: Holder, table: pa.Table, value: str, by: tuple[str, ...]) -> None:
    opened_ = opened(hold(table), value, by)
    names, _, tallies, found = grouped(opened_, by)
    check(found, names, tallies, codes_by_key(table, value, by))


def flights_for(hold: Holder) -> pa.Table:
    """All flights, or so many as go into a database in a second."""
    return flights() if hold in IN_PROCESS.values() else flights().slice(100_000, 30_000)


VALUES = ["double", "single", "integer", "small", "decimal", "date", "time"]
CASES = [*((value, ("name", "key")) for value in VALUES), ("double", ()), ("decimal", ()), ("small", ("key",))]


@pytest.mark.parametrize(("value", "by"), CASES)
def test_engines__windows_are_those_of_the_sorted_rows_for_every_type(
    hold: Holder, narrow: None, value: str, by: tuple[str, ...]
) -> None:
    if hold is sqlite_table and value in ("decimal", "date", "time"):
        return  # it has no such types: text is refused
    same_windows(hold, typed(), value, by)


FLOATS = st.one_of(st.floats(), st.floats(width=32), st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324]))
DAYS = datetime.datetime(1902, 1, 1), datetime.datetime(2200, 1, 1)
ANY_VALUES = {
    "double": (pa.float64(), FLOATS),
    "single": (pa.float32(), st.floats(width=32)),
    "integer": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2)),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "decimal": (pa.decimal128(16, 2), st.decimals(-(10**13), 10**13, places=2)),
    "date": (pa.date32(), st.dates(DAYS[0].date(), DAYS[1].date())),
    "time": (pa.timestamp("us"), st.datetimes(*DAYS)),
    "zoned": (pa.timestamp("us", "UTC"), st.datetimes(*DAYS, timezones=st.just(datetime.UTC))),
    "span": (pa.duration("us"), st.timedeltas(-datetime.timedelta(9999), datetime.timedelta(9999))),
}
# Types that a database has not, or that its driver does not describe; SQLite has numbers alone. Spark has its own test.
NOT_HELD = {
    "spark": set(ANY_VALUES),
    "sqlite": {"unsigned", "decimal", "date", "time", "zoned", "span", "single"},
    "duckdb by sql": {"span"},
    "postgres": {"unsigned", "span"},
    "clickhouse": {"span", "zoned", "date", "time"},  # dates before 1970 and after 2149 are not among its own
}


@pytest.mark.parametrize("value", ANY_VALUES)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_engines__windows_of_any_rows_are_those_of_the_sorted_rows(
    hold: Holder, request: pytest.FixtureRequest, value: str, data: st.DataObject
) -> None:
    if value in NOT_HELD.get(request.node.callspec.params["hold"], ()):
        return
    kind, values = ANY_VALUES[value]
    rows = data.draw(st.lists(st.tuples(st.none() | values, st.integers(1, 3)), min_size=1, max_size=60))
    times = data.draw(st.integers(1, 3))  # ties
    table = pa.table(
        {
            "value": pa.array([row[0] for row in rows] * times, kind),
            "key": pa.array([row[1] for row in rows] * times, pa.int64()),
        }
    )
    searched: dict[str, Any] = {"WHOLE": 4, "FEW": 4, "COLLECTED": 16, "TIMES_WANTED": 1, "LEAST_SAMPLE": 4}
    large: dict[str, Any] = {"LARGE": 4, "LARGE_GROUPS": 1}
    with ExitStack() as patched:
        if data.draw(st.booleans()):
            patched.enter_context(mock.patch.multiple(bracket_search, **searched))
            patched.enter_context(mock.patch.multiple(sql_table, **large))
        for by in ((), ("key",)):
            same_windows(hold, table, "value", by)


def test_engines__windows_through_adbc_are_exact(postgres: Any, postgres_address: str) -> None:
    from adbc_driver_postgresql import dbapi

    parts = dict(part.split("=") for part in postgres_address.split())
    with dbapi.connect(f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}") as other:
        for value in ("double", "integer", "time"):
            same_windows(lambda table: postgres_table(table, postgres, other), typed(), value, ("name", "key"))


@pytest.mark.parametrize(
    ("value", "by"), [("arr_delay", ()), ("distance", ("carrier",)), ("arr_delay", ("origin", "dest"))]
)
def test_engines__windows_of_real_tables_are_exact(hold: Holder, value: str, by: tuple[str, ...]) -> None:
    same_windows(hold, flights_for(hold), value, by)


def test_engines__brackets_that_miss_are_widened(hold: Holder, narrow: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bracket_search, "DEVIATIONS", 0.1)
    monkeypatch.setattr(bracket_search, "LEAST_SAMPLE", 8)
    monkeypatch.setattr(bracket_search, "SAMPLED", 8)
    same_windows(hold, typed(), "integer", ("key",))


def test_engines__a_column_is_answered_as_by_the_sorted_rows(hold: Holder, narrow: None) -> None:
    table = typed()
    column = EngineColumn(opened(hold(table), "small"), "omit")
    codes = codes_by_key(table, "small", ())[()]
    assert column.number == table.num_rows
    for least, most in ((None, None), (1, 3)):
        rows, naive = column.ordered(least, most), SortedRows(codes, least, most)
        rows.prepare([(100, 130), (4000, 4030)])
        for first, last, low, high in ((100, 130, None, None), (4001, 4020, 2, None), (2000, 3000, None, None)):
            one, other = rows.window(first, last, low, high), naive.window(first, last, low, high)
            assert np.array_equal(one.codes, other.codes)
            assert np.array_equal(one.below, other.below)
            assert np.array_equal(one.upto, other.upto)
        assert [rows.counts(code) for code in (-9, 0, 2, 9)] == [naive.counts(code) for code in (-9, 0, 2, 9)]


def test_engines__the_front_doors_answer_as_on_one_machine(hold: Holder) -> None:
    table = flights_for(hold)
    r = dpf.private_quantiles(hold(table), [0.5, 0.9], GUARANTEE, column="arr_delay", nan_policy="omit")
    there = np.sort(table.column("arr_delay").drop_null().to_numpy())
    for q, value in zip((0.5, 0.9), r.values, strict=True):
        off = np.searchsorted(there, [value, value], "left")[0], np.searchsorted(there, value, "right")
        assert off[0] - 300 <= q * there.size <= off[1] + 300
    assert r.items == table.num_rows
    keys = ["UA", "AA", "none of them"]
    shown = dpf.quantiles_by(hold(table), "distance", 0.5, GUARANTEE, by="carrier", keys=keys, other="others")
    assert shown.column("key").to_pylist() == [*keys, "others"]
    assert shown.schema.metadata[b"items"] == str(table.num_rows).encode()
    assert shown.column("reason").is_null().to_pylist() == [True, True, False, True]
    discovered = dpf.quantiles_by(
        hold(table), "distance", 0.5, GUARANTEE, by=["origin", "carrier"],
        discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6),
    )  # fmt: skip
    assert {"origin", "carrier"} < set(discovered.column_names)
    assert 20 <= discovered.num_rows <= 35
    assert discovered.select(["origin", "carrier"]).to_pylist() == sorted(
        discovered.select(["origin", "carrier"]).to_pylist(), key=lambda each: (each["origin"], each["carrier"])
    )


def all_windows(grouped_: Any) -> dict[tuple[Any, ...], list[int]]:
    """All rows of each group."""
    names = list(zip(*(column.to_pylist() for column in grouped_.key_columns.values()), strict=True))
    reach = all_rows(int(grouped_.sizes.max()))
    grouped_.prepare([reach])
    found = {}
    for here, part in grouped_.parts():
        windows = part.window(0, reach)
        for at, group in enumerate(np.arange(len(names))[here].tolist()):
            found[names[group]] = windows.codes[windows.starts[at] : windows.starts[at + 1]].tolist()
    return found


@pytest.mark.parametrize(
    ("by", "keys", "label"),
    [("name", ["k0'\"", "k2'\"", "nobody"], "rest"), (["key", "name"], [(1, "k1'\""), (2, "k0'\"")], (99, "rest"))],
)
def test_engines__null_and_other_keys_are_groups_as_on_one_machine(
    hold: Holder, by: Any, keys: list[Any], label: Any
) -> None:
    table = typed()
    options: Any
    for null_keys in ("drop", "group"):
        for other in (None, label):
            options = {"keys": keys, "null_keys": null_keys, "other": other}
            expected = all_windows(read_groups(table, "integer", by, **options))
            assert all_windows(groups_of(hold(table), "integer", by, **options)) == expected
            assert (null_keys == "group") == any(None in key for key in expected)


@pytest.mark.parametrize("by", [(), ("key",)])
@pytest.mark.parametrize("most_keys", [None, 2])
def test_engines__at_most_so_many_rows_of_a_person_count(
    hold: Holder, by: tuple[str, ...], most_keys: int | None
) -> None:
    """The rows that count are some of the person's, and as many as the limits allow; the same ones at each scan."""
    if most_keys is not None and not by:
        return
    random = np.random.default_rng(3)
    person, key = random.integers(0, 300, 4_000), random.integers(0, 5, 4_000)
    value = person * 1000 + key * 100 + random.integers(0, 3, 4_000)  # tells whose row it is, with ties
    table = pa.table({"value": value, "key": key, "person": person})
    limits = {"max_items_per_person": 3} | ({} if most_keys is None else {"max_keys_per_person": most_keys})
    opened_ = opened(hold(table), "value", by, "person", **limits)
    names, assigned, tallies, _ = grouped(opened_, by)
    sizes = tallies.sizes
    reach, chosen = all_rows(int(sizes.max())), []
    for part in opened_.find(assigned, tallies, [reach]):
        windows = part.stretches[0].windows(reach.ranks(sizes[part.groups]))
        for at, group in enumerate(part.groups.tolist()):
            codes = windows.codes[windows.starts[at] : windows.starts[at + 1]]
            assert codes.size == sizes[group]
            assert not by or set(codes // 100 % 10) <= {names[group][0]}
            chosen.append(codes)
    all_ = np.concatenate(chosen)
    every, times = np.unique(value, return_counts=True)
    kept, kept_times = np.unique(all_, return_counts=True)
    assert (kept_times <= times[np.searchsorted(every, kept)]).all()  # no row counts twice
    for who in range(300):
        theirs, has = all_[all_ // 1000 == who] // 100 % 10, key[person == who]
        if most_keys is None:
            assert theirs.size == min(3, has.size)
        else:
            assert np.unique(theirs).size == min(most_keys, np.unique(has).size)
            for each in np.unique(theirs):
                assert np.count_nonzero(theirs == each) == min(3, np.count_nonzero(has == each))
    again = [
        part.stretches[0].windows(reach.ranks(sizes[part.groups])) for part in opened_.find(assigned, tallies, [reach])
    ]
    assert np.array_equal(np.sort(np.concatenate([each.codes for each in again])), np.sort(all_))


@pytest.mark.parametrize("hold", [duckdb_relation, polars_frame, sqlite_table])  # all databases have its statement
def test_engines__person_is_chosen_by_chance_alone(hold: Holder) -> None:
    """Each of a person's 8 rows, two of them equal, counts in a quarter of 100 draws of two; 6 standard deviations.

    Draws are those of ten people in ten openings: none may depend on another person's or another opening's.
    """
    people = [name for name in "abcdefghij" for _ in range(8)]
    table = pa.table({"value": [0, 0, 1, 2, 3, 4, 5, 6] * 10, "person": people})
    times = np.zeros(7)
    data, reach, counted = hold(table), all_rows(20), np.array([20])
    for _ in range(10):
        opened_ = opened(data, "value", (), "person", max_items_per_person=2)
        assigned = Assigned(pa.table({"group": pa.array([0], pa.int32())}), 1)
        tallies = opened_.tallies(assigned, opened_.counts())
        (found,) = opened_.find(assigned, tallies, [reach])
        np.add.at(times, found.stretches[0].windows(reach.ranks(counted)).codes, 1)
    assert (np.abs(times - [50, 25, 25, 25, 25, 25, 25]) < 6 * np.sqrt(100 * 0.25 * 0.75)).all()
    assert times.sum() == 200


def test_engines__refusals_are_sentences_without_data(hold: Holder) -> None:
    data = hold(typed())
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TableError, "there is no column 'delay'|statement failed", {"column": "delay"}),
        (dpf.ItemTypeError, "data must be numbers", {"column": "name"}),
        (ItemError, "NaN or null", {"column": "double"}),
        (ItemError, "person has null ids", {"column": "integer", "person": "name"}),
        (TableError, "there is no column 'nobody'|statement failed", {"column": "integer", "person": "nobody"}),
    ]
    for kind, said, options in cases:
        with pytest.raises(kind, match=said) as caught:
            dpf.private_quantiles(data, 0.5, GUARANTEE, **options)
        assert caught.value.__context__ is None
    with pytest.raises(ItemError, match="null keys"):
        dpf.quantiles_by(data, "integer", 0.5, GUARANTEE, by="name", keys=["k1"])
    shown = dpf.quantiles_by(data, "integer", 0.5, GUARANTEE, by="name", keys=["k1'\""], null_keys="drop")
    assert shown.num_rows == 1


def test_engines__names_are_never_executed(hold: Holder) -> None:
    hostile = 'x"; DROP TABLE rows; --'
    table = pa.table({hostile: [1, 2, 3] * 100, "k'`\"{rows}": ["a", "b", "c"] * 100})
    data = hold(table)
    assert dpf.private_quantiles(data, 0.5, GUARANTEE, column=hostile).items == 300
    shown = dpf.quantiles_by(data, hostile, 0.5, GUARANTEE, by="k'`\"{rows}", keys=["a"])
    assert shown.num_rows == 1


def test_engines__empty_tables(hold: Holder) -> None:
    data = hold(typed().slice(0, 0))
    with pytest.raises(ItemError, match="no rows"):
        dpf.private_quantiles(data, 0.5, GUARANTEE, column="integer")
    r = dpf.private_quantiles(data, 0.5, GUARANTEE, column="integer", neighbours="add-remove")
    assert isinstance(r.value, int)
    shown = dpf.quantiles_by(data, "integer", 0.5, GUARANTEE, by="key", keys=[1, 2], neighbours="add-remove")
    assert shown.num_rows == 2


def test_engines__a_table_that_changes_between_scans_is_refused(hold: Holder, narrow: None) -> None:
    opened_ = opened(hold(typed()), "integer", ("key",))
    _, assigned, tallies, _ = grouped(opened_, ("key",))
    for more in (1, -1):  # as if that many rows had gone, or come, since they were counted
        with pytest.raises(TableError, match="changed while it was read"):
            opened_.find(assigned, replace(tallies, sizes=tallies.sizes + more), [Reach(0.5, 10.0, 0.0)])


def test_engines__the_ledger_is_charged_once_and_not_for_a_refusal(hold: Holder, tmp_path: Any) -> None:
    ledger, data = dpf.Ledger(tmp_path / "ledger", total=dpf.PureDP(epsilon=1.5)), hold(typed())
    with pytest.raises(ItemError, match="NaN or null"):
        dpf.private_quantiles(data, 0.5, GUARANTEE, column="double", ledger=ledger, dataset="typed")
    dpf.private_quantiles(data, 0.5, GUARANTEE, column="integer", ledger=ledger, dataset="typed")
    with pytest.raises(dpf.BudgetExceeded):
        dpf.quantiles_by(data, "integer", 0.5, GUARANTEE, by="key", keys=[1], ledger=ledger, dataset="typed")
