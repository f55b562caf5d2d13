"""A table of a database: its rows are counted and ranked there."""

import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import numpy as np

from dpfrugal.engines.bracket_search import BracketedTable
from dpfrugal.engines.sql.connections import Connection, value_type_of
from dpfrugal.engines.sql.statements import MARK, MOST_KEYS, NO_HASH, SCANNED, Listed, Statements, quoted
from dpfrugal.errors import ItemTypeError, ParameterError, TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.engine_tables import (
    Assigned,
    Columns,
    EngineTable,
    Found,
    TableSource,
    Tallies,
    changed,
)
from dpfrugal.estimators.table.rows.keyed_rows import coded
from dpfrugal.estimators.table.rows.order_statistics import Reach
from dpfrugal.estimators.table.rows.stretches import LEAST, MOST, GroupStretches, places_from
from dpfrugal.inputs import dataframes
from dpfrugal.keys.columns import KeyColumns

LARGE: Final = 1 << 18  # so many rows are scanned rather than sorted, in groups of so many
LARGE_GROUPS: Final = 1 << 14
CHANGES: Final = 'SELECT TOTAL_CHANGES() AS "own", "data_version" AS "others" FROM pragma_data_version()'  # of SQLite


class DatabaseTable(TableSource):
    """A table, or a view, and a public condition on its rows."""

    groups_nulls = True

    def __init__(self, connection: Any, dialect: str, table: str, where: str | None) -> None:
        self._connection, self.name = Connection(connection, dialect), table
        self._dialect, self._where = dialect, where

    def one_state(self) -> AbstractContextManager[None]:
        """Within it all statements see one state of the database, where that can be had."""
        return self._connection.one_state()

    def open(self, columns: Columns) -> EngineTable:
        """Some of its columns."""
        statements = Statements(self._dialect, self.name, columns, self._where)
        return DatabaseColumns(self._connection, statements, columns, self.name)


class DatabaseColumns(BracketedTable):
    """Columns of a table in a database."""

    def __init__(self, connection: Connection, statements: Statements, columns: Columns, table: str) -> None:
        self._connection, self._statements, self._columns = connection, statements, columns
        self._salt, self._misfits, self._hash = secrets.token_hex(16), "0", True
        dialect = connection.dialect
        told = self._described(table)
        if dialect == "sqlite":
            told = self._declared(table)
        self._type = value_type_of(told, dialect)
        compared = not connection.steady or dialect == "duckdb"  # a view of files is none of its transactions'
        self._statements.of(self._values, self._cast, compared=compared)
        if dialect == "postgres" and self._values in ("zoned", "others"):
            self._misfits = f"COUNT(CASE WHEN NOT ISFINITE({quoted(columns.value)}) THEN 1 END)"
        if columns.person is not None and dialect in NO_HASH:
            self._give_hash()

    def _described(self, table: str) -> Any:
        """The type of the values. What is not there is named: the table, a column, the connection, or one of where."""
        connection, statements = self._connection, self._statements
        careful = connection.adbc and connection.dialect == "postgres"  # where a failure ends the transaction
        there: list[str] | None = None
        if careful:
            there = connection.queried(statements.listed_columns(), (), [None]).column(0).to_pylist() or None
        else:
            with suppress(TableError):
                return self._types(where=True)
            with suppress(TableError):
                there = list(connection.described(statements.no_rows()))
        if there is None:
            connection.described(statements.one())
            raise TableError(f"table: there is no table {table!r} that this connection may read.")
        dataframes.present(self._columns.names, there)
        found = self._types(where=careful)
        if careful:
            return found
        raise ParameterError("where must be a condition on columns of the table; the database refuses this one.")

    def _types(self, *, where: bool) -> Any:
        return next(iter(self._connection.described(self._statements.nothing(where=where)).values()))

    def _declared(self, table: str) -> str:
        """The declared type of a column of SQLite's, which keeps what it is given: other types are counted."""
        parts = table.split(".")
        sql = "SELECT name, type FROM pragma_table_info(?" + (", ?)" if len(parts) > 1 else ")")
        found = self._connection.queried(sql, parts[::-1], [None, None]).to_pylist()
        types = {row["name"]: str(row["type"]).upper() for row in found}
        dataframes.present(self._columns.names, list(types))  # a name in quotes that is no column is a text there
        told = types[self._columns.value]
        kind = "INTEGER" if "INT" in told else "REAL" if any(each in told for each in ("REAL", "FLOA", "DOUB")) else ""
        kind = kind or ("REAL" if not told or any(each in told for each in ("DEC", "NUM")) else "")
        if not kind:
            times = "; of times take a view with unixepoch() or julianday()" if "DATE" in told or "TIME" in told else ""
            raise ItemTypeError(f"data must be numbers; the column is declared as {told}{times}.")
        allowed = "'integer', 'null'" if kind == "INTEGER" else "'integer', 'real', 'null'"
        value = quoted(self._columns.value)
        self._misfits = f"COUNT(CASE WHEN NOT TYPEOF({value}) IN ({allowed}) THEN 1 END)"
        return "BIGINT" if kind == "INTEGER" else "DOUBLE"

    def _give_hash(self) -> None:
        """SQLite has no hash of texts; the driver of Python's lets one be added to the connection."""
        import hashlib

        if not hasattr(self._connection.raw, "create_function"):
            raise ParameterError("person needs a hash of texts, which this database has not; use Python's sqlite3.")
        self._connection.raw.create_function(
            "MD5",
            1,
            lambda text: hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest(),
            deterministic=True,
        )

    @property
    def value_type(self) -> Any:
        """The Arrow type of the values."""
        return self._type

    @property
    def _floats(self) -> bool:
        import pyarrow as pa

        return bool(pa.types.is_floating(self._type))

    @property
    def _values(self) -> str:
        """What the values are, as statements take it."""
        import pyarrow.types as types

        kinds = {
            "floats": types.is_floating, "integers": types.is_integer, "decimals": types.is_decimal,
            "spans": types.is_duration, "zoned": lambda kind: types.is_timestamp(kind) and kind.tz is not None,
        }  # fmt: skip
        return next((name for name, check in kinds.items() if check(self._type)), "others")

    @property
    def _cast(self) -> str:
        return "DOUBLE" if self._floats else ""

    def counts(self) -> Any:
        """The rows of each key."""
        import pyarrow as pa

        sql = self._statements.counts(self._floats, self._misfits)
        types = [*[None] * len(self._columns.by), *[pa.int64()] * 5]
        self._changes = self._changed()
        found = self._connection.queried(sql, (), types)
        found = found.rename_columns([*self._columns.by, "rows", "present", "nobodies", "misfits", "checksum"])
        if int(np.sum(found.column("misfits").to_numpy())):
            raise ItemTypeError(
                "data must be numbers or finite times, of the type that the column declares; some rows hold something "
                "else."
            )
        return found.drop_columns(["misfits"])

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        """The rows of each group that count."""
        import pyarrow as pa

        if self._columns.person is None:
            return Tallies.of(assigned, counts)
        self._everyone = self._listed(assigned)
        sql = self._statements.sizes(self._floats, self._cast, self._everyone, self._salt)
        rows = self._bound(sql, self._everyone, [pa.int32(), pa.int64(), pa.int64()])
        return Tallies.placed(assigned.groups, rows.rename_columns(["group", "rows", "checksum"]), "group")

    def _listed(self, assigned: Assigned) -> Listed | None:
        """The groups as a statement lists them; None where every key is one of its own and persons do not count."""
        groups, null = assigned.keys.column("group").to_numpy(), np.zeros(assigned.keys.num_rows, dtype=np.bool_)
        for name in self._columns.by:
            null |= assigned.keys.column(name).is_null().to_numpy()
        nulls = int(groups[null][0]) if null.any() else None
        many = np.bincount(groups[~null], minlength=assigned.groups)
        if self._columns.person is None and nulls is None and many.max(initial=0) <= 1:
            return None
        rest = int(np.argmax(many)) if many.max(initial=0) > 1 else None
        some = assigned.keys.filter(~null if rest is None else ~null & (groups != rest))
        if some.num_rows > MOST_KEYS:
            raise ParameterError(
                f"keys: with person, other or null keys a database is given at most {MOST_KEYS:,} keys; give fewer, or "
                "read the table first."
            )
        keys = list(zip(*(column.to_pylist() for column in some.drop_columns(["group"]).columns), strict=True))
        return Listed(keys, some.column("group").to_pylist(), rest, nulls)

    def _bound(self, sql: str, listed: Listed | None, types: list[Any]) -> Any:
        """Run a statement with the keys that it lists as bound parameters."""
        if listed is None or MARK not in sql:
            return self._connection.queried(sql, (), types)
        return self._marked(sql, [part for key in listed.keys for part in key], types)

    def _marked(self, sql: str, parameters: list[Any], types: list[Any]) -> Any:
        """Run a statement whose bound parameters are marked; without any it has no marks of the driver's."""
        if not parameters:
            return self._connection.queried(sql, (), types)
        style = self._connection.style
        if style == "format":
            sql = sql.replace("%", "%%")
        for k in reversed(range(len(parameters))):
            mark = {"format": "%s", "qmark": "?", "numeric": f":{k + 1}", "named": f":p{k}"}.get(style, f"${k + 1}")
            sql = sql.replace(f"{MARK}{k}", mark)
        return self._connection.queried(sql, parameters, types)

    def find(self, assigned: Assigned, tallies: Tallies, reaches: Sequence[Reach]) -> list[Found]:
        """All windows: from one statement that sorts or, where that is too much, from scans."""
        scanned = self._scanned(assigned, tallies.sizes)
        found = super().find(assigned, tallies, reaches) if scanned else self._ranked(assigned, tallies, reaches)
        if self._changed() != self._changes:
            raise changed()
        return found

    def _changed(self) -> list[Any]:
        """How many rows this connection has changed, and what tells that another has; where the database says it."""
        if self._connection.dialect != "sqlite":
            return []
        rows: list[Any] = self._connection.queried(CHANGES, (), [None, None]).to_pylist()
        return rows

    def _scanned(self, assigned: Assigned, sizes: Codes) -> bool:
        """Whether brackets are searched for: as far as a statement can list them, in types that can be bound."""
        import pyarrow.types as types

        dialect, keys = self._connection.dialect, assigned.keys.drop_columns(["group"])
        if dialect not in SCANNED or self._columns.person is not None:
            return False
        if int(sizes.sum()) < max(LARGE, LARGE_GROUPS * sizes.size):
            return False
        if keys.num_rows > MOST_KEYS or keys.num_rows != assigned.groups:
            return False
        plain = types.is_integer(self._type) or types.is_floating(self._type)
        plain |= dialect == "postgres" and (types.is_decimal(self._type) or types.is_date(self._type))
        kinds = [column.type for column in keys.columns]
        known = all(types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind) for kind in kinds)
        return bool(plain and known and not any(column.null_count for column in keys.columns))

    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        """Counts and rows from one statement, and so from one state of the table."""
        import pyarrow as pa

        parameters: list[Any] = []

        def bound(value: Any) -> str:
            if value is None:
                return "NULL"
            parameters.append(value)
            return f"{MARK}{len(parameters) - 1}"

        by, names = len(self._columns.by), brackets.column_names
        listed = [
            ", ".join(
                repr(part) if name in ("number", "share") and at >= by else bound(part)
                for at, (name, part) in enumerate(zip(names, row, strict=True))
            )
            for row in zip(*(column.to_pylist() for column in brackets.columns), strict=True)
        ]
        share = float(np.max(brackets.column(by + 1).to_numpy(), initial=0.0))
        rows = self._statements.bracket_rows(self._floats, self._cast, quantiles, listed)
        sql = self._statements.scan(
            self._floats, self._cast, rows, share, quantiles, counted=counted, by_value=by_value
        )
        more = 2 + 2 * quantiles if counted else 0
        found = self._marked(sql, parameters, [pa.int32(), self._type, pa.int64(), *[pa.int64()] * more])
        if not counted:
            return None, found
        are_counts = found.column("rows").is_valid()
        return found.filter(are_counts), found.filter(found.column("rows").is_null())

    def _ranked(self, assigned: Assigned, tallies: Tallies, reaches: Sequence[Reach]) -> list[Found]:
        """All windows, from one statement that sorts."""
        import pyarrow as pa

        sizes = tallies.sizes
        alone = not self._columns.by
        listed = self._everyone if self._columns.person is not None else None if alone else self._listed(assigned)
        sql = self._statements.windows(self._floats, self._cast, listed, self._salt, reaches)
        own: list[Any] = (
            [pa.int32()] if listed is not None else [assigned.keys.schema.field(n).type for n in self._columns.by]
        )
        rows = self._bound(sql, listed, [*own, self._type, *[pa.int64()] * 4])
        groups = self._groups_of(rows, assigned, listed)
        _, codes, _ = coded(rows.column("value").combine_chunks())
        kept = groups >= 0
        order = np.lexsort((codes[kept], groups[kept]))
        told = (rows.column(name).to_numpy() for name in ("times", "upto", "total", "checksum"))
        groups, codes, times, upto, *counted = (each[kept][order] for each in (groups, codes, *told))
        tallies[groups].check(Tallies(*counted))
        if np.unique(groups).size != np.count_nonzero(sizes):
            raise changed()
        starts = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=sizes.size))])
        return [
            Found(np.arange(sizes.size), tuple(_stretches(each, sizes, codes, starts, times, upto) for each in reaches))
        ]

    def _groups_of(self, rows: Any, assigned: Assigned, listed: Listed | None) -> Codes:
        """The group of each returned row; -1 for keys that belong to none."""
        if listed is not None:
            return np.asarray(rows.column("group").fill_null(-1).to_numpy(), dtype=np.int64)
        if not self._columns.by:
            return np.zeros(rows.num_rows, dtype=np.int64)
        names = list(self._columns.by)
        if not assigned.keys.num_rows:
            return np.full(rows.num_rows, -1, dtype=np.int64)
        index = KeyColumns(names, assigned.keys.select(names))
        codes = index.codes([rows.column(k).combine_chunks() for k in range(len(names))])
        group_of = np.append(assigned.keys.column("group").to_numpy(), -1).astype(np.int64)
        return group_of[codes]


def _stretches(reach: Reach, sizes: Codes, codes: Codes, starts: Codes, times: Codes, upto: Codes) -> GroupStretches:
    """The stretch around one quantile of each group, of the values that were returned for all quantiles."""
    first, last = reach.ranks(sizes)
    lengths = np.diff(starts)
    inside = (upto > np.repeat(first, lengths)) & (upto - times <= np.repeat(last, lengths))
    total = np.concatenate([[0], np.cumsum(inside)])
    counts = np.diff(total[starts])
    outer = np.concatenate([np.flatnonzero(inside), [0]])[np.minimum(total[starts[:-1]], max(total[-1] - 1, 0))]
    places = places_from(outer, counts)
    there = counts > 0
    padded = np.append(upto - times, 0)
    below = np.where(there, padded[outer], 0)
    ends = np.append(codes, 0)
    lows = np.where(below > 0, ends[outer], LEAST)
    highs = np.where(last + 1 < sizes, ends[np.minimum(outer + np.maximum(counts - 1, 0), codes.size)], MOST)
    found = GroupStretches(
        sizes, lows, highs, below, codes[places], np.concatenate([[0], np.cumsum(counts)]), times[places]
    )
    if ((found.below > first) | (found.ends <= last))[sizes > 0].any():
        raise changed()
    return found
