"""DuckDB: quantiles of a relation, whose rows stay in DuckDB; windows of order statistics are what is read.

>>> import duckdb, dpfrugal as dpf
>>> table = duckdb.sql("SELECT range % 1000 AS ms FROM range(400_000)")
>>> r = dpf.private_quantiles(table, 0.5, dpf.PureDP(epsilon=1.0), column="ms")
>>> abs(r.value - 500) <= 1
True
"""

import secrets
from functools import cached_property
from typing import Any

import numpy as np

from dpfrugal.engines import missing
from dpfrugal.engines.bracket_search import BracketedTable
from dpfrugal.estimators.table.rows.engine_tables import (
    HASHES,
    Assigned,
    Columns,
    EngineTable,
    TableSource,
    Tallies,
)
from dpfrugal.inputs import dataframes

try:
    import duckdb
except ModuleNotFoundError:
    raise missing("duckdb") from None

FLOATS = ("FLOAT", "DOUBLE")
ENDS = ("below", "upto")


def source_of(data: Any) -> TableSource | None:
    """A relation; None for anything else of DuckDB's."""
    return _Relation(data) if isinstance(data, duckdb.DuckDBPyRelation) else None


class _Relation(TableSource):
    groups_nulls = True

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def open(self, columns: Columns) -> EngineTable:
        dataframes.present(columns.names, dataframes.run(lambda: list(self._relation.columns)))
        return DuckDBTable(self._relation, columns)


def quoted(name: str) -> str:
    """A name in SQL, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _checksum(hashed: str, present: str = "TRUE") -> str:
    """The sum of the hashes of values."""
    hashes = f"sum(CAST({hashed} % {HASHES} AS BIGINT)) FILTER ({present})"
    return f"CAST(coalesce({hashes}, 0) AS BIGINT) AS checksum"


def _with_spans(table: Any, kind: str) -> Any:
    """The columns of values and bounds as this type: of spans of time, or of integers."""
    import pyarrow as pa

    names = [name for name in table.column_names if name == "value" or name.startswith(("low_", "high_"))]
    for name in names:
        column = table.column(name).cast(pa.duration("us") if kind == "duration[us]" else pa.int64())
        table = table.set_column(table.column_names.index(name), name, column)
    return table


class DuckDBTable(BracketedTable):
    """Columns of a relation: ``value``, ``key_0``, ``key_1``, …, and ``person``."""

    def __init__(self, relation: Any, columns: Columns) -> None:
        self._columns, self._salt = columns, secrets.token_hex(16)
        self._view = f"dpfrugal_{secrets.token_hex(8)}"
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        value = quoted(columns.value)
        self._present = f"{value} IS NOT NULL" + (f" AND NOT isnan({value})" if kinds[columns.value] in FLOATS else "")
        self._relation, self._everyone = relation, None
        self._keys = [f"key_{k}" for k in range(len(columns.by))]
        self._own, self._equal = [f"own_{k}" for k in range(len(columns.by))], "="
        self._spans = kinds[columns.value] == "INTERVAL"  # in microseconds, a month of 30 days: as DuckDB orders them
        self._value = f"epoch_us({value})" if self._spans else value
        # Sums of floats in another order differ in their last bits, so floats are hashed in single precision.
        self._hashed = "hash(TRY_CAST({} AS FLOAT))" if kinds[columns.value] in FLOATS else "hash({})"
        named = [
            f"{self._value} AS value",
            *(f"{quoted(name)} AS key_{k}" for k, name in enumerate(columns.by)),
        ]
        if columns.person is not None:
            named.append(f"{quoted(columns.person)} AS person")
        self._named = ", ".join(named)

    @cached_property
    def value_type(self) -> Any:
        """The Arrow type of the values."""
        import pyarrow as pa

        if self._spans:
            return pa.duration("us")
        return dataframes.run(
            lambda: self._relation.project(quoted(self._columns.value)).limit(0).to_arrow_table().schema.types[0]
        )

    def counts(self) -> Any:
        """The rows of each key."""
        persons = "0" if self._columns.person is None else f"count(*) FILTER ({quoted(self._columns.person)} IS NULL)"
        by = ", ".join(quoted(name) for name in self._columns.by)
        sums = f"count(*) AS rows, count(*) FILTER ({self._present}) AS present, {persons} AS nobodies"
        sums += f", {_checksum(self._hashed.format(self._value), self._present)}"
        found = self._queried(
            f"SELECT {by + ', ' if by else ''}{sums} FROM {self._view}" + (f" GROUP BY {by}" if by else "")
        )
        return found.rename_columns([*self._columns.by, "rows", "present", "nobodies", "checksum"])

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        """The rows of each group that count."""
        if any(column.null_count for column in assigned.keys.columns):
            self._equal = "IS NOT DISTINCT FROM"
        if self._columns.person is None:
            return Tallies.of(assigned, counts)
        self._everyone = assigned.keys.rename_columns([*self._own, "group"])
        rows = self._queried(self._counting(0), assigned.keys.rename_columns([*self._own, "number"]))
        return Tallies.placed(assigned.groups, rows, "number")

    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        """Counts and rows from one statement, and so from one state of the table."""
        table = brackets.rename_columns([*self._own, *brackets.column_names[len(self._own) :]])
        inside = " OR ".join(
            f"(value >= low_{k} OR low_{k} IS NULL) AND (value <= high_{k} OR high_{k} IS NULL)"
            for k in range(quantiles)
        ) or "TRUE"  # fmt: skip
        if self._spans:
            table = _with_spans(table, "int64")
        share = float(np.max(table.column("share").to_numpy(), initial=0.0))
        most = f"random() < {share!r}" if share < 1 else "TRUE"
        chosen = f"({inside}) AND (share >= 1 OR random() * {share!r} < share)"
        empty = ", ".join(
            [
                "NULL::BIGINT AS rows",
                "NULL::BIGINT AS checksum",
                *(f"NULL::BIGINT AS {e}_{k}" for k in range(quantiles) for e in ENDS),
            ]
        )
        times = "count(*)" if by_value else "NULL::BIGINT"
        rows = f"SELECT number, value, {times} AS times, {empty} FROM {self._joined(most)} WHERE {chosen}"
        rows += " GROUP BY number, value" if by_value else ""
        if not counted:
            found = self._queried(rows, table)
            return None, self._typed(found.select(["number", "value", "times"]))
        nothing = "NULL AS value, NULL::BIGINT AS times"
        found = self._queried(f"{rows} UNION ALL BY NAME SELECT {nothing}, * FROM ({self._counting(quantiles)})", table)
        are_counts = found.column("rows").is_valid()
        return found.filter(are_counts), self._typed(found.filter(found.column("rows").is_null()))

    def _typed(self, rows: Any) -> Any:
        return _with_spans(rows, "duration[us]") if self._spans else rows

    def _counting(self, quantiles: int) -> str:
        ends = "".join(
            f", count(*) FILTER (value < low_{k}) AS below_{k}, "
            f"count(*) FILTER (value <= high_{k} OR high_{k} IS NULL) AS upto_{k}"
            for k in range(quantiles)
        )
        sums = f"count(*) AS rows, {_checksum(self._hashed.format('value'))}{ends}"
        if quantiles or self._columns.person is not None or not self._keys:
            return f"SELECT number, {sums} FROM {self._joined('TRUE')} GROUP BY number"
        keys = ", ".join(self._keys)  # rows of a key are added up before it is joined
        rows = (
            f"SELECT {keys}, {sums} FROM (SELECT {self._named} FROM {self._view} WHERE {self._present}) GROUP BY {keys}"
        )
        added = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in ("rows", "checksum"))
        return f"SELECT number, {added} FROM ({rows}) {self._join('dpfrugal_brackets')} GROUP BY number"

    def _joined(self, most: str) -> str:
        """The rows that count, with the brackets of their group."""
        using = self._join("dpfrugal_brackets")
        if self._columns.person is None:
            return f"(SELECT {self._named} FROM {self._view} WHERE ({self._present}) AND {most}) {using}"
        return f"(SELECT * FROM ({self._chosen()}) WHERE {most}) {using}"

    def _join(self, table: str) -> str:
        """A join with a table that has the keys as ``own_0`` and so on."""
        same = (f"{key} {self._equal} own_{k}" for k, key in enumerate(self._keys))
        return f"JOIN {table} ON {' AND '.join(same)}" if self._keys else f"CROSS JOIN {table}"

    def _chosen(self) -> str:
        """Of each person so many rows, those with the smallest priorities; which they are depends on these rows only.

        Equal rows of a person are numbered, and a row's priority is a hash of it with its number and a secret salt: the
        same in every scan, whatever the order of rows.
        """
        limits, keys = self._columns, ", ".join(self._keys)
        using = self._join("dpfrugal_everyone")
        own = f"{keys}, " if keys else ""
        numbered = (
            f'SELECT {own}value, person, "group", row_number() OVER (PARTITION BY person, {own}value) AS copy '
            f"FROM (SELECT {self._named} FROM {self._view} WHERE {self._present}) {using}"
        )
        # A hash of several values differs too little between two salts; that of one text with the salt in it does not.
        text = f"concat_ws('|', '{self._salt}', person, {own}value, copy)"
        drawn = f"SELECT *, hash({text}) AS priority FROM ({numbered})"
        order = 'ORDER BY priority, "group", value'
        if limits.max_keys_per_person is None:
            place = f"row_number() OVER (PARTITION BY person {order}) <= {limits.max_items_per_person}"
            return f"SELECT {own}value FROM ({drawn}) QUALIFY {place}"
        first = f'SELECT *, min(priority) OVER (PARTITION BY person, "group") AS earliest FROM ({drawn})'
        place = f'row_number() OVER (PARTITION BY person, "group" {order}) <= {limits.max_items_per_person}'
        key = f'dense_rank() OVER (PARTITION BY person ORDER BY earliest, "group") <= {limits.max_keys_per_person}'
        return f"SELECT {own}value FROM ({first}) QUALIFY {place} AND {key}"

    def _queried(self, sql: str, brackets: Any = None) -> Any:
        """An Arrow table; DuckDB finds the two that it is given among the variables of the function that asks."""

        def ask(dpfrugal_brackets: Any, dpfrugal_everyone: Any) -> Any:
            return self._relation.query(self._view, sql).to_arrow_table()

        return dataframes.run(lambda: ask(brackets, self._everyone))
