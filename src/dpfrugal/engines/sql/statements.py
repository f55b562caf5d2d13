"""The statements of a table in a database: how many rows each key has, and the windows around its quantiles.

They are put together in one dialect, with every name quoted, and written in that of the database by sqlglot. A window
is found by counting: rows of one value are one row with their number, and a running sum of these numbers says which
ranks a value has. So ties cost nothing, and both statements depend on the multiset of rows only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.table.rows.engine_tables import HASHES, Columns
from dpfrugal.estimators.table.rows.order_statistics import Reach

OURS: Final = "duckdb"  # the dialect that they are put together in
MOST_KEYS: Final = 1_000  # that are listed in a statement
MARK: Final = "dpfrugal_bound_"
NO_HASH: Final = ("sqlite",)
SCANNED: Final = ("postgres", "duckdb")  # that large tables are scanned in, and not sorted
NUMBERED: Final = ("postgres",)  # where numbering rows takes less time than grouping them by value
# A span of time in microseconds, a month of 30 days and a year of 12 months: as the database orders them.
SPANS: Final = {
    "duckdb": "EPOCH_US({})",
    "postgres": "CAST(ROUND((EXTRACT(EPOCH FROM {0}) - 453600 * EXTRACT(YEAR FROM {0})) * 1000000) AS BIGINT)",
}
BRACKETS: Final = "dpfrugal_brackets"
# A hash of a value in a dialect, by what the values are. Without one only numbers of rows are compared. DuckDB's views
# may compute floats, and the last bits of sums in another order differ: they are hashed in single precision.
HASH_OF: Final = {
    "duckdb floats": "CAST(HASH(TRY_CAST({} AS FLOAT)) % {} AS BIGINT)",
    "duckdb": "CAST(HASH({}) % {} AS BIGINT)",
    "clickhouse": "CAST(cityHash64({}) % {} AS BIGINT)",
    "postgres floats": "MOD(CAST(HASHFLOAT8(CAST({} AS DOUBLE)) AS BIGINT), {})",
    "postgres integers": "MOD(CAST(HASHINT8(CAST({} AS BIGINT)) AS BIGINT), {})",
    "postgres spans": "MOD(CAST(HASHINT8({}) AS BIGINT), {})",
    "postgres": "MOD(CAST(HASHTEXT(CAST({} AS TEXT)) AS BIGINT), {})",
    "snowflake": "MOD(HASH({}), {})",
    "bigquery": "MOD(FARM_FINGERPRINT(CAST({} AS TEXT)), {})",
    "mysql": "MOD(CRC32(CAST({} AS TEXT)), {})",
}


def quoted(name: str) -> str:
    """A name, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Listed:
    """Keys that a statement lists, with their groups; rows of all others belong to ``rest``, or count for nothing.

    So do those whose key has a null, or they belong to ``nulls``.
    """

    keys: list[tuple[Any, ...]] = field(repr=False)
    groups: list[int] = field(repr=False)
    rest: int | None = None
    nulls: int | None = None


class Statements:
    """The statements for some columns of a table."""

    def __init__(self, dialect: str, table: str, columns: Columns, where: str | None) -> None:
        self.dialect, self._columns = dialect, columns
        self._table = ".".join(quoted(part) for part in _parts(table))
        self._where = None if where is None else _condition(where, dialect)
        self._keys = [quoted(f"key_{k}") for k in range(len(columns.by))]
        self._hash, self._spans, self._decimals, self._zoned = "0", False, False, False
        for name in columns.names:
            if not isinstance(name, str) or not name or "\0" in name:
                raise ParameterError("column, by and person must be names of columns.")

    def of(self, values: str, cast: str, *, compared: bool) -> None:
        """Which values there are: ``floats``, ``integers``, ``decimals``, ``spans``, ``zoned`` times or others.

        Where they are ``compared``, all statements tell a checksum of them.
        """
        self._spans, self._decimals, self._zoned = (values == each for each in ("spans", "decimals", "zoned"))
        known = HASH_OF.get(f"{self.dialect} {values}", HASH_OF.get(self.dialect, "0")) if compared else "0"
        self._hash = known.format(self._value(values == "floats", cast), HASHES)

    def nothing(self, *, where: bool = True) -> str:
        """No row of the columns, of which the first are the values: it tells their types."""
        names = ", ".join(map(quoted, self._columns.names))
        condition = f" AND ({self._where})" if where and self._where is not None else ""
        return self._written(f"SELECT {names} FROM {self._table} WHERE 1 = 0{condition}")

    def no_rows(self) -> str:
        """No row of all columns that there are."""
        return self._written(f"SELECT * FROM {self._table} WHERE 1 = 0")

    def listed_columns(self) -> str:
        """The names of the columns, of PostgreSQL's catalog: no statement that fails, if there is no such table."""
        name = self._table.replace("'", "''")
        return self._written(
            'SELECT "attname" FROM "pg_attribute" WHERE "attnum" > 0 AND NOT "attisdropped" '
            f"""AND "attrelid" = TO_REGCLASS('{name}') ORDER BY "attnum\""""
        )

    def one(self) -> str:
        """A row, of no table."""
        return self._written('SELECT 1 AS "one"')

    def counts(self, floats: bool, misfits: str = "0") -> str:
        """For each key the numbers of rows, of those that are there, of those without person and of the wrong type."""
        value, person = quoted(self._columns.value), self._columns.person
        nobodies = "0" if person is None else f"COUNT(CASE WHEN {quoted(person)} IS NULL THEN 1 END)"
        names = [quoted(name) for name in self._columns.by]
        given = [f"{name} AS {key}" for name, key in zip(names, self._keys, strict=True)]
        present = self._present(value, floats)
        sums = (
            f'COUNT(*) AS "rows", COUNT(CASE WHEN {present} THEN 1 END) AS "present", {nobodies} AS "nobodies", '
            f'{misfits} AS "misfits", {_total(f"CASE WHEN {present} THEN {self._hash} END")} AS "checksum"'
        )
        by = f" GROUP BY {', '.join(names)}" if names else ""
        filtered = "" if self._where is None else f" WHERE {self._where}"
        return self._written(f"SELECT {', '.join([*given, sums])} FROM {self._table}{filtered}{by}")

    def sizes(self, floats: bool, cast: str, listed: Listed | None, salt: str) -> str:
        """How many rows of each group count, where persons are limited."""
        by = ", ".join(self._grouping(listed))
        return self._written(
            f'SELECT {by}{", " if by else ""}COUNT(*) AS "total", {CHECKSUM} '
            f'FROM ({self._rows(floats, cast, listed, salt)}) AS "r"' + (f" GROUP BY {by}" if by else "")
        )

    def windows(self, floats: bool, cast: str, listed: Listed | None, salt: str, reaches: Sequence[Reach]) -> str:
        """The values around each group's quantiles: how many rows have each, how many lie up to it, and in all."""
        by = self._grouping(listed)
        own = "".join(f"{name}, " for name in by)
        over = f"PARTITION BY {', '.join(by)} " if by else ""
        if floats and listed is None and self.dialect in NUMBERED:
            return self._numbered(self._rows(floats, cast, None, salt), own, over, reaches)
        rows = self._rows(floats, cast, listed, salt)
        counted = f'SELECT {own}"value", COUNT(*) AS "times", {CHECKSUM} FROM ({rows}) AS "r" GROUP BY {own}"value"'
        frame = 'ORDER BY "value" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW'
        ranked = (
            f'SELECT {own}"value", "times", CAST(SUM("times") OVER ({over}{frame}) AS BIGINT) AS "upto", '
            f'CAST(SUM("times") OVER ({over.strip()}) AS BIGINT) AS "total", '
            f'CAST(SUM("checksum") OVER ({over.strip()}) AS BIGINT) AS "checksum" FROM ({counted}) AS "c"'
        )
        inside = " OR ".join(f"({_inside(reach)})" for reach in reaches)
        told = '"value", "times", "upto", "total", "checksum"'
        return self._written(f'SELECT {own}{told} FROM ({ranked}) AS "w" WHERE {inside}')

    def _numbered(self, rows: str, own: str, over: str, reaches: Sequence[Reach]) -> str:
        """The same where few rows are equal: each is numbered, and the last of those that are equal says how many."""
        by = own.removesuffix(", ")
        counted = f'SELECT {own}COUNT(*) AS "total", {CHECKSUM} FROM ({rows}) AS "s"' + (
            f" GROUP BY {by}" if by else ""
        )
        join = f'JOIN ({counted}) AS "c" USING ({by})' if by else f'CROSS JOIN ({counted}) AS "c"'
        placed = (
            f'SELECT {own}"value", ROW_NUMBER() OVER ({over}ORDER BY "value") AS "place", '
            f'RANK() OVER ({over}ORDER BY "value") AS "first" FROM ({rows}) AS "r"'
        )
        ends = '"place"', '"first" - 1'
        inside = " OR ".join(f"({_inside(reach, *ends)})" for reach in reaches)
        return self._written(
            f'SELECT {own}"value", MAX("place") - MIN("first") + 1 AS "times", MAX("place") AS "upto", '
            f'MAX("total") AS "total", MAX("checksum") AS "checksum" FROM ({placed}) AS "p" {join} '
            f'WHERE {inside} GROUP BY {own}"value"'
        )

    def scan(
        self, floats: bool, cast: str, brackets: str, share: float, quantiles: int, *, counted: bool, by_value: bool
    ) -> str:
        """The rows within brackets, or of these a share; with ``counted`` also how many lie below, and up to, each.

        One statement, and so one state of the table. ``brackets`` is written by ``bracket_rows``.
        """
        inside = " OR ".join(
            f'(("low_{k}" IS NULL OR "value" >= "low_{k}") AND ("high_{k}" IS NULL OR "value" <= "high_{k}"))'
            for k in range(quantiles)
        ) or "1 = 1"  # fmt: skip
        sampled = f'AND ("share" >= 1 OR RANDOM() * {share!r} < "share")' if share < 1 else ""
        ends = [(f"below_{k}", f"upto_{k}") for k in range(quantiles)]
        empty = "".join(
            f', CAST(NULL AS BIGINT) AS "{name}"' for name in ["rows", "checksum", *(e for pair in ends for e in pair)]
        )
        times = "COUNT(*)" if by_value else "CAST(NULL AS BIGINT)"
        text = (
            f'SELECT "number", "value", {times} AS "times"{empty if counted else ""} '
            f"FROM {self._bracketed(floats, cast, share)} WHERE ({inside}) {sampled}"
        )
        text += ' GROUP BY "number", "value"' if by_value else ""
        if counted:
            sums = "".join(
                f', COUNT(CASE WHEN "value" < "low_{k}" THEN 1 END) AS "{below}", '
                f'COUNT(CASE WHEN "high_{k}" IS NULL OR "value" <= "high_{k}" THEN 1 END) AS "{upto}"'
                for k, (below, upto) in enumerate(ends)
            )
            text += (
                ' UNION ALL SELECT "number", NULL AS "value", CAST(NULL AS BIGINT) AS "times", COUNT(*) AS "rows", '
                f'{CHECKSUM}{sums} FROM {self._bracketed(floats, cast, 1.0)} GROUP BY "number"'
            )
        return f"WITH {quoted(BRACKETS)} AS ({brackets}) {self._written(text)}"

    def _bracketed(self, floats: bool, cast: str, share: float) -> str:
        some = f" AND RANDOM() < {share!r}" if share < 1 else ""
        same = " AND ".join(f'"r".{key} = "b"."own_{k}"' for k, key in enumerate(self._keys))
        join = f'JOIN {quoted(BRACKETS)} AS "b" ON {same}' if same else f'CROSS JOIN {quoted(BRACKETS)} AS "b"'
        return f'({self._rows(floats, cast, None, "")}{some}) AS "r" {join}'

    def bracket_rows(self, floats: bool, cast: str, quantiles: int, rows: Sequence[str]) -> str:
        """Rows of brackets as a statement: their types are those of the table's columns, of which it reads no row."""
        names = [f"own_{k}" for k in range(len(self._columns.by))]
        given = [f"{quoted(own)} AS {quoted(name)}" for own, name in zip(self._columns.by, names, strict=True)]
        value = self._value(floats, cast)
        ends = [f'{value} AS "{end}_{k}"' for k in range(quantiles) for end in ("low", "high")]
        typed = ", ".join([*given, '0 AS "number"', '0.5 AS "share"', *ends])
        first = self._written(f"SELECT {typed} FROM {self._table} WHERE 1 = 0")
        return " UNION ALL ".join([first, *(f"SELECT {row}" for row in rows)])

    def explained(self, reaches: Sequence[Reach]) -> str:
        """The statements that read rows, for a column of floats; the last one if a table has very many."""
        listed = None if self._columns.person is None else Listed([], [], 0)
        self.of("floats", "DOUBLE", compared=self.dialect not in ("postgres", "sqlite"))
        found = [self.counts(True), self.windows(True, "DOUBLE", listed, "salt", reaches)]
        if listed is None and self.dialect in SCANNED:
            row = ", ".join(
                [*("NULL" for _ in self._columns.by), "0", "1", *("NULL" for _ in reaches for _ in range(2))]
            )
            brackets = self.bracket_rows(True, "DOUBLE", len(reaches), [row])
            found.append(self.scan(True, "DOUBLE", brackets, 1.0, len(reaches), counted=True, by_value=False))
        return ";\n\n".join(found) + ";"

    def _grouping(self, listed: Listed | None) -> list[str]:
        return self._keys if listed is None else ['"group"']

    def _present(self, value: str, floats: bool) -> str:
        if self._decimals and self.dialect == "postgres":
            return f"NOT {value} IS NULL AND CAST({value} AS DOUBLE) <> CAST('NaN' AS DOUBLE)"
        if not floats:
            return f"NOT {value} IS NULL"
        nan = {"postgres": "<> CAST('NaN' AS DOUBLE)", "snowflake": "<> CAST('NaN' AS DOUBLE)"}.get(self.dialect)
        nan = f"CAST({value} AS DOUBLE) {nan}" if nan else f"NOT ISNAN(CAST({value} AS DOUBLE))"
        if self.dialect in ("sqlite", "mysql"):  # they store no NaN
            return f"NOT {value} IS NULL"
        return f"NOT {value} IS NULL AND {nan}"

    def _value(self, floats: bool, cast: str) -> str:
        """Adding zero makes a negative zero a positive one: one value, in every database."""
        value = quoted(self._columns.value)
        if self._spans:
            return SPANS[self.dialect].format(value)
        if self._zoned and self.dialect == "clickhouse":  # in its own zone an hour comes twice a year
            return f"toTimeZone({value}, 'UTC')"
        return f"CAST({value} AS {cast}) + 0.0" if floats else value

    def _rows(self, floats: bool, cast: str, listed: Listed | None, salt: str) -> str:
        """The rows that count: their values, and their keys or group."""
        value, person = quoted(self._columns.value), self._columns.person
        given = [f'{self._value(floats, cast)} AS "value"']
        names = [quoted(name) for name in self._columns.by]
        given += [f"{name} AS {key}" for name, key in zip(names, self._keys, strict=True)]
        given += [] if person is None else [f'{quoted(person)} AS "person"']
        kept = [self._present(value, floats), *([] if self._where is None else [f"({self._where})"])]
        kept += [f"NOT {name} IS NULL" for name in names if listed is None or listed.nulls is None]
        if listed is not None:
            given.append(f'{self._group(listed, names)} AS "group"')
        given.append(f'{self._hash} AS "hash"')
        rows = f"SELECT {', '.join(given)} FROM {self._table} WHERE {' AND '.join(kept)}"
        return rows if person is None else self._chosen(rows, salt)

    def _group(self, listed: Listed, names: list[str]) -> str:
        rest = "NULL" if listed.rest is None else str(listed.rest)
        if not names:
            return "0"
        marks = iter(range(len(listed.keys) * len(names)))
        tests = (
            f"WHEN {' AND '.join(f'{name} = {MARK}{next(marks)}' for name in names)} THEN {group}"
            for group in listed.groups
        )
        found = list(tests)
        if listed.nulls is not None:
            found.insert(0, f"WHEN {' OR '.join(f'{name} IS NULL' for name in names)} THEN {listed.nulls}")
        return f"CASE {' '.join(found)} ELSE {rest} END" if found else rest

    def _chosen(self, rows: str, salt: str) -> str:
        """Of each person so many rows, those with the smallest priorities; which they are depends on these rows only.

        Equal rows of a person are numbered, and a row's priority is a hash of it with its number and a secret salt: the
        same in both statements, whatever the order of rows.
        """
        limits = self._columns
        text = (
            f"""'{salt}|' || CAST("person" AS TEXT) || '|' || CAST("group" AS TEXT) || '|' || CAST("value" AS TEXT)"""
        )
        copy = 'ROW_NUMBER() OVER (PARTITION BY "person", "group", "value" ORDER BY "value")'
        numbered = (
            f'SELECT "person", "group", "value", "hash", {copy} AS "copy" FROM ({rows}) AS "a" '
            'WHERE NOT "group" IS NULL'
        )
        drawn = (
            f'SELECT "person", "group", "value", "hash", MD5({text} || \'|\' || CAST("copy" AS TEXT)) AS "priority" '
            f'FROM ({numbered}) AS "b"'
        )
        order = 'ORDER BY "priority", "group", "value"'
        if limits.max_keys_per_person is None:
            place = f'ROW_NUMBER() OVER (PARTITION BY "person" {order})'
            placed = f'SELECT "group", "value", "hash", {place} AS "place" FROM ({drawn}) AS "d"'
            return (
                f'SELECT "group", "value", "hash" FROM ({placed}) AS "p" WHERE "place" <= {limits.max_items_per_person}'
            )
        first = 'MIN("priority") OVER (PARTITION BY "person", "group")'
        first = f'SELECT "person", "group", "value", "hash", "priority", {first} AS "earliest" FROM ({drawn}) AS "d"'
        place = f'ROW_NUMBER() OVER (PARTITION BY "person", "group" {order})'
        key = 'DENSE_RANK() OVER (PARTITION BY "person" ORDER BY "earliest", "group")'
        placed = f'SELECT "group", "value", "hash", {place} AS "place", {key} AS "key" FROM ({first}) AS "e"'
        return (
            f'SELECT "group", "value", "hash" FROM ({placed}) AS "p" WHERE "place" <= {limits.max_items_per_person} '
            f'AND "key" <= {limits.max_keys_per_person}'
        )

    def _written(self, text: str) -> str:
        """In the dialect of the database; refused where a name does not come back from it as it is."""
        import sqlglot
        from sqlglot import exp

        tree = sqlglot.parse_one(text, read=OURS)
        small = sqlglot.Dialect.get_or_raise(self.dialect).NULL_ORDERING == "nulls_are_small"
        for each in tree.find_all(exp.Ordered):  # no null is ordered: the database's own way is as good
            each.set("nulls_first", small)
        written = tree.sql(dialect=self.dialect)
        names = {name for name in self._columns.names if quoted(name) in text}
        back = {each.name for each in sqlglot.parse_one(written, read=self.dialect).find_all(exp.Identifier)}
        if not names <= back:
            raise ParameterError(f"column, by and person: {self.dialect} cannot quote one of these names.")
        return str(written)


def _total(hashes: str) -> str:
    return f"CAST(COALESCE(SUM({hashes}), 0) AS BIGINT)"


CHECKSUM: Final = f'{_total(quoted("hash"))} AS "checksum"'


def _inside(reach: Reach, upto: str = '"upto"', below: str = '"upto" - "times"') -> str:
    """Whether a value may be within reach of a quantile; a little more than ``Reach.ranks`` says, without roots."""
    q, root = repr(reach.quantile), repr(reach.per_root**2)
    total = 'CAST("total" AS DOUBLE)'
    before = f"({total} * {q} - {reach.least + 4!r} - {upto})"
    behind = f"({below} - {total} * {q} - {reach.least + 4!r})"
    sides = (f"({side} <= 0 OR {side} * {side} <= {root} * {total})" for side in (before, behind))
    return " AND ".join(sides)


def _parts(table: str) -> list[str]:
    if not isinstance(table, str):
        raise ParameterTypeError(f"table must be the name of a table, not {type(table).__name__}.")
    parts = table.split(".")
    if len(parts) > 3 or not all(parts) or "\0" in table:
        raise ParameterError(
            "table must be the name of a table, with that of its schema and a dot before it if need be."
        )
    return parts


def _condition(where: str, dialect: str) -> str:
    """A condition that each row meets or not by itself; one that looks at other rows would make them count."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not isinstance(where, str):
        raise ParameterTypeError(f"where must be a condition in SQL, not {type(where).__name__}.")
    tree = None
    try:
        found = sqlglot.parse(where, read=dialect)
        tree = found[0] if len(found) == 1 else None
    except SqlglotError:
        pass
    if not isinstance(tree, exp.Condition):
        raise ParameterError("where must be one condition in the SQL of the database, such as \"day >= '2026-01-01'\".")
    if any(True for _ in tree.find_all(exp.Query, exp.AggFunc, exp.Window, exp.Subquery, exp.Exists)):
        raise ParameterError(
            "where must be a condition that each row meets or not by itself: no subquery, aggregate or window, which "
            "would let other rows decide whether it counts."
        )
    return str(tree.sql(dialect=OURS))
