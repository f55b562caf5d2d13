"""A table of a database: its rows are counted and ranked there."""

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpfrugal.engines.sql.connections import Connection, value_type_of
from dpfrugal.engines.sql.statements import MARK, MOST_KEYS, NO_HASH, Listed, Statements
from dpfrugal.errors import ItemTypeError, ParameterError, TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.engine_tables import CHANGED, Assigned, Columns, EngineTable, Found, TableSource
from dpfrugal.estimators.table.rows.keyed_rows import coded
from dpfrugal.estimators.table.rows.order_statistics import Reach
from dpfrugal.estimators.table.rows.stretches import LEAST, MOST, GroupStretches, places_from
from dpfrugal.keys.columns import KeyColumns


class DatabaseTable(TableSource):
    """A table, or a view, and a public condition on its rows."""

    def __init__(self, connection: Any, dialect: str, table: str, where: str | None) -> None:
        self._connection, self.name = Connection(connection, dialect), table
        self._dialect, self._where = dialect, where

    def open(self, columns: Columns) -> EngineTable:
        """Some of its columns."""
        statements = Statements(self._dialect, self.name, columns, self._where)
        return DatabaseColumns(self._connection, statements, columns, self.name)


class DatabaseColumns(EngineTable):
    """Columns of a table in a database."""

    def __init__(self, connection: Connection, statements: Statements, columns: Columns, table: str) -> None:
        self._connection, self._statements, self._columns = connection, statements, columns
        self._salt, self._misfits, self._hash = secrets.token_hex(16), "0", True
        dialect = connection.dialect
        told = self._declared(table) if dialect == "sqlite" else connection.type_text(statements.nothing())
        self._type = value_type_of(told, dialect)
        if columns.person is not None and dialect in NO_HASH:
            self._give_hash()

    def _declared(self, table: str) -> str:
        """The declared type of a column of SQLite's, which keeps what it is given: other types are counted."""
        parts = table.split(".")
        sql = "SELECT name, type FROM pragma_table_info(?" + (", ?)" if len(parts) > 1 else ")")
        found = self._connection.queried(sql, parts[::-1], [None, None]).to_pylist()
        types = {row["name"]: str(row["type"]).upper() for row in found}
        if not types:
            raise TableError(f"table: there is no table {table!r}.")
        for name in self._columns.names:
            if name not in types:
                raise TableError(f"data: there is no column {name!r}; there are {', '.join(map(repr, types))}.")
        told = types[self._columns.value]
        kind = "INTEGER" if "INT" in told else "REAL" if any(each in told for each in ("REAL", "FLOA", "DOUB")) else ""
        kind = kind or ("REAL" if any(each in told for each in ("DEC", "NUM")) else "")
        if not kind:
            raise ItemTypeError(f"data must be numbers; the column is declared as {told or 'nothing'}.")
        allowed = "'integer', 'null'" if kind == "INTEGER" else "'integer', 'real', 'null'"
        value = '"' + self._columns.value.replace('"', '""') + '"'
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
    def _cast(self) -> str:
        return "DOUBLE" if self._floats else ""

    def counts(self) -> Any:
        """The rows of each key."""
        import pyarrow as pa

        sql = self._statements.counts(self._floats, self._misfits)
        types = [*[None] * len(self._columns.by), *[pa.int64()] * 4]
        found = self._connection.queried(sql, (), types)
        found = found.rename_columns([*self._columns.by, "rows", "present", "nobodies", "misfits"])
        if int(np.sum(found.column("misfits").to_numpy())):
            raise ItemTypeError("data must be of the column's declared type; some rows hold another one.")
        return found.drop_columns(["misfits"])

    def sizes(self, assigned: Assigned, counts: Any) -> Codes:
        """The rows of each group."""
        import pyarrow as pa

        found = np.zeros(assigned.groups, dtype=np.int64)
        if self._columns.person is None:
            np.add.at(found, assigned.keys.column("group").to_numpy(), counts.column("present").to_numpy())
            return found
        self._everyone = self._listed(assigned)
        sql = self._statements.sizes(self._floats, self._cast, self._everyone, self._salt)
        rows = self._bound(sql, self._everyone, [pa.int32(), pa.int64()])
        found[rows.column(0).to_numpy()] = rows.column(1).to_numpy()
        return found

    def _listed(self, assigned: Assigned) -> Listed | None:
        """The groups as a statement lists them; None where every key is one of its own and persons do not count."""
        groups = assigned.keys.column("group").to_numpy()
        many = np.bincount(groups, minlength=assigned.groups)
        if self._columns.person is None and many.max(initial=0) <= 1:
            return None
        rest = int(np.argmax(many)) if many.max(initial=0) > 1 else None
        some = assigned.keys if rest is None else assigned.keys.filter(groups != rest)
        if some.num_rows > MOST_KEYS:
            raise ParameterError(
                f"keys: with person or other a database is given at most {MOST_KEYS:,} keys; give fewer, or read the "
                "table first."
            )
        keys = list(zip(*(column.to_pylist() for column in some.drop_columns(["group"]).columns), strict=True))
        return Listed(keys, some.column("group").to_pylist(), rest)

    def _bound(self, sql: str, listed: Listed | None, types: list[Any]) -> Any:
        """Run a statement with the keys that it lists as bound parameters."""
        if listed is None or MARK not in sql:
            return self._connection.queried(sql, (), types)
        style, parameters = self._connection.style, [part for key in listed.keys for part in key]
        if style == "format":
            sql = sql.replace("%", "%%")
        for k in reversed(range(len(parameters))):
            mark = {"format": "%s", "qmark": "?", "numeric": f":{k + 1}", "named": f":p{k}"}.get(style, f"${k + 1}")
            sql = sql.replace(f"{MARK}{k}", mark)
        return self._connection.queried(sql, parameters, types)

    def find(self, assigned: Assigned, sizes: Codes, reaches: Sequence[Reach]) -> list[Found]:
        """All windows, from one statement."""
        import pyarrow as pa

        alone = not self._columns.by
        listed = self._everyone if self._columns.person is not None else None if alone else self._listed(assigned)
        sql = self._statements.windows(self._floats, self._cast, listed, self._salt, reaches)
        own: list[Any] = (
            [pa.int32()] if listed is not None else [assigned.keys.schema.field(n).type for n in self._columns.by]
        )
        rows = self._bound(sql, listed, [*own, self._type, *[pa.int64()] * 3])
        groups = self._groups_of(rows, assigned, listed)
        _, codes, _ = coded(rows.column("value").combine_chunks())
        times, upto, total = (rows.column(name).to_numpy() for name in ("times", "upto", "total"))
        kept = groups >= 0
        order = np.lexsort((codes[kept], groups[kept]))
        groups, codes, times, upto, total = (each[kept][order] for each in (groups, codes, times, upto, total))
        if not np.array_equal(total, sizes[groups]) or np.unique(groups).size != np.count_nonzero(sizes):
            raise TableError(CHANGED)
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
        raise TableError(CHANGED)
    return found
