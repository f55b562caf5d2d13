"""A connection of a driver: which dialect it speaks, and what a statement gives, as an Arrow table."""

import datetime
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from dpfrugal.engines.sql.statements import SPANS
from dpfrugal.errors import ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.inputs.dataframes import run

DIALECTS: Final = {
    "sqlite3": "sqlite",
    "psycopg": "postgres",
    "psycopg2": "postgres",
    "pg8000": "postgres",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "chdb": "clickhouse",
    "clickhouse_connect": "clickhouse",
    "clickhouse_driver": "clickhouse",
    "snowflake": "snowflake",
    "google": "bigquery",
    "pymysql": "mysql",
    "MySQLdb": "mysql",
    "mysql": "mysql",
}
# How a driver marks a bound parameter, where its package does not say so.
STYLES: Final = {"adbc_driver_manager": "numeric_dollar", "_duckdb": "qmark", "chdb": "qmark"}
FAILED: Final = (
    "connection: a statement failed, or the connection was lost; nothing was released. explain=True shows the "
    "statements."
)
# A transaction of PostgreSQL's that sees one state of the database, and changes nothing.
ONE_STATE: Final = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
SAVEPOINT: Final = "dpfrugal_savepoint"
# Of PostgreSQL: the type of a column by its number.
POSTGRES: Final = {
    16: "BOOLEAN", 20: "BIGINT", 21: "SMALLINT", 23: "INT", 700: "REAL", 701: "DOUBLE PRECISION", 1082: "DATE",
    1114: "TIMESTAMP", 1184: "TIMESTAMPTZ", 1186: "INTERVAL", 1700: "DECIMAL",
    25: "TEXT", 114: "JSON", 790: "MONEY", 1042: "CHAR", 1043: "VARCHAR", 1083: "TIME", 1266: "TIMETZ", 2950: "UUID",
}  # fmt: skip


def dialect_of(connection: Any, dialect: str | None) -> str:
    """The name of a dialect of sqlglot's."""
    try:
        import sqlglot
    except ImportError:
        sqlglot = None
    if sqlglot is None:
        raise ParameterError("engines.sql needs sqlglot: pip install 'dpfrugal[sql]'.")
    if dialect is None:
        name = library_of(connection)
        dialect = _vendor(connection) if name.startswith("adbc") else DIALECTS.get(name)
        if dialect is None:
            raise ParameterError("dialect must be given: this connection does not tell which database it is.")
    known = sorted(each.value for each in sqlglot.Dialects if each.value)
    if not isinstance(dialect, str) or dialect not in known:
        raise ParameterError(f"dialect must be one of {', '.join(known)}; {dialect!r} is none.")
    return dialect


def library_of(connection: Any) -> str:
    """The driver that a connection is of, or that its class is derived from."""
    names = [base.__module__.partition(".")[0] for base in type(connection).__mro__]
    return next((name for name in names if name in DIALECTS or name.startswith("adbc")), names[0])


def _vendor(connection: Any) -> str | None:
    names = {"postgresql": "postgres", "sqlite": "sqlite", "duckdb": "duckdb", "snowflake": "snowflake"}
    told = run(lambda: str(connection.adbc_get_info().get("vendor_name", "")), FAILED).lower()
    return next((dialect for name, dialect in names.items() if name in told), None)


class Connection:
    """A connection of a driver, whatever its style."""

    def __init__(self, connection: Any, dialect: str) -> None:
        if not hasattr(connection, "cursor"):
            raise ParameterTypeError(
                f"connection must be one of a Python DB-API 2.0 or ADBC driver, not {type(connection).__name__}."
            )
        if inspect.iscoroutinefunction(getattr(connection, "commit", None)):
            raise ParameterTypeError("connection must be one that is not asynchronous: the driver has both.")
        self.raw, self.dialect, self._name = connection, dialect, library_of(connection)
        self.steady = False  # whether all statements see one state of the database
        self._duckdb = _of_duckdb(connection) if self._name in ("duckdb", "_duckdb") else None

    @property
    def adbc(self) -> bool:
        """Whether the driver is one of ADBC."""
        return self._name.startswith("adbc")

    @property
    def style(self) -> str:
        """How the driver marks a bound parameter."""
        import sys

        known = STYLES.get(self._name, getattr(sys.modules.get(self._name), "paramstyle", "qmark"))
        if self.adbc:
            return "numeric_dollar" if self.dialect == "postgres" else "qmark"
        return "format" if known == "pyformat" else str(known)

    def queried(self, sql: str, parameters: Sequence[Any], types: Sequence[Any | None]) -> Any:
        """The rows of a statement as an Arrow table, whose columns have these types; None where it is the driver's."""
        return run(lambda: self._safely(lambda cursor: _table_of(cursor, sql, parameters, types)), FAILED)

    def described(self, sql: str) -> dict[str, Any]:
        """The columns of a statement without rows, with their types: as text, or as those of Arrow."""
        found: dict[str, Any] = run(lambda: self._safely(lambda cursor: self._described(cursor, sql)), FAILED)
        return found

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """Within it all statements see one state of the database, if no transaction of the caller's is open.

        The connection is then left as it was found. A transaction that is open stays as it is.
        """
        end = self._begun()
        self.steady = end is not None
        try:
            yield
        finally:
            self.steady = False
            if end is not None:
                with suppress(Exception):  # what was released is released, also if the connection has gone
                    end()

    def _begun(self) -> Callable[[], Any] | None:
        """How to end a transaction that was begun here; None where there is one already, or none can be had."""
        if self.dialect in ("sqlite", "duckdb") and not self.adbc:
            open_ = self.dialect == "duckdb" and self._is_in_transaction()
            return (lambda: self._alone("COMMIT")) if not open_ and self._alone("BEGIN") else None
        if self.dialect != "postgres" or self._name not in ("psycopg", "psycopg2"):
            return None
        info = getattr(self.raw, "info", None)
        if getattr(info, "transaction_status", None) != 0:  # 0: idle
            return None
        if not self.raw.autocommit:  # the driver begins a transaction by itself
            begun = self._alone(f"SET TRANSACTION {ONE_STATE}")
            return self.raw.rollback if begun else None
        return (lambda: self._alone("ROLLBACK")) if self._alone(f"BEGIN {ONE_STATE}") else None

    def _is_in_transaction(self) -> bool:
        """Of DuckDB, where a BEGIN within a transaction would end it: its number changes with each statement else."""
        text = "SELECT txid_current()"
        try:
            with self._cursor() as cursor:
                first, second = (cursor.execute(text).fetchall() for _ in range(2))
        except Exception:  # of a transaction that has failed, or of no DuckDB
            return True
        return bool(first == second)

    def _alone(self, sql: str) -> bool:
        """Whether a statement that gives nothing could be run."""
        try:
            with self._cursor() as cursor:
                return _executed(cursor, sql)
        except Exception:  # of a connection that is closed
            return False

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """A cursor; of DuckDB the connection itself, as a cursor there is another connection."""
        if self._duckdb is not None:
            yield self._duckdb
            return
        cursor = self.raw.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def _safely(self, action: Callable[[Any], Any]) -> Any:
        """What a cursor gives. A statement that fails leaves the caller's transaction as it was before it."""
        with self._cursor() as cursor:
            # A driver of ADBC accepts nothing but the end of a transaction in which a statement failed.
            saves = self.dialect == "postgres" and not self.adbc
            if not saves or not _executed(cursor, f"SAVEPOINT {SAVEPOINT}"):
                return action(cursor)
            done = False
            try:
                found = action(cursor)
                done = True
            finally:
                if not done:
                    _executed(cursor, f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
                _executed(cursor, f"RELEASE SAVEPOINT {SAVEPOINT}")
            return found

    def _described(self, cursor: Any, sql: str) -> dict[str, Any]:
        table = _arrow_of(cursor, sql, ())
        if table is not None:
            return dict(zip(table.column_names, table.schema.types, strict=True))
        cursor.execute(sql)
        return {told[0]: self._type_text(told) for told in cursor.description}

    def _type_text(self, told: Any) -> str:
        """The type of a column as a driver describes it."""
        code, precision, scale = told[1], told[4], told[5]
        if self.dialect == "postgres" and isinstance(code, int):
            text = POSTGRES.get(code, "another type")
            return f"DECIMAL({precision}, {scale})" if text == "DECIMAL" and precision else text
        return str(code)


def _of_duckdb(connection: Any) -> Any:
    """The connection, which sees its own transaction and temporary tables; another one while it gives a result."""
    try:
        connection.execute("SELECT 1").fetchall()
    except Exception:  # an unfinished result, or a connection that is closed
        with suppress(Exception):
            return connection.cursor()
    return connection


def _executed(cursor: Any, sql: str) -> bool:
    """Whether a statement could be run."""
    try:
        cursor.execute(sql)
        if hasattr(cursor, "sql"):  # of DuckDB, whose connection waits until its result is fetched
            cursor.fetchall()
    except Exception:  # each driver has its own
        return False
    return True


def _table_of(cursor: Any, sql: str, parameters: Sequence[Any], types: Sequence[Any | None]) -> Any:
    import pyarrow as pa

    table = _arrow_of(cursor, sql, parameters)
    if table is not None:
        arrays = [_typed(column, kind) for column, kind in zip(table.columns, types, strict=True)]
        return pa.table(dict(zip(table.column_names, arrays, strict=True)))
    cursor.execute(sql, tuple(parameters)) if parameters else cursor.execute(sql)
    names = [each[0] for each in cursor.description]
    rows = [row.values() if isinstance(row, Mapping) else row for row in cursor.fetchall()]
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [_typed(list(column), kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _arrow_of(cursor: Any, sql: str, parameters: Sequence[Any]) -> Any | None:
    """The answer as the driver's own Arrow table; None where it has none."""
    if hasattr(cursor, "sql"):  # of DuckDB
        return cursor.sql(sql, params=list(parameters) or None).to_arrow_table()
    if hasattr(cursor, "fetch_arrow_table"):  # of ADBC
        cursor.execute(sql, tuple(parameters)) if parameters else cursor.execute(sql)
        return cursor.fetch_arrow_table()
    return None


def _typed(values: Any, kind: Any | None) -> Any:
    """An Arrow array of a type; numbers of a database may come as decimals."""
    import pyarrow as pa

    if isinstance(values, list):
        if kind is not None and pa.types.is_floating(kind):
            return pa.array([None if each is None else float(each) for each in values], kind)
        if kind is not None and pa.types.is_integer(kind):
            return pa.array([None if each is None else int(each) for each in values], kind)
        if kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None:
            values = [None if each is None else _in_utc(each) for each in values]
        return pa.array(values, kind)
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if kind is None or array.type == kind:
        return array
    return array.cast(kind)


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    """A time of a driver, which a statement may have put into UTC without the driver's saying so."""
    return time.replace(tzinfo=datetime.UTC) if time.tzinfo is None else time.astimezone(datetime.UTC)


def value_type_of(told: Any, dialect: str) -> Any:
    """The Arrow type of a column that a database describes so; what holds neither numbers nor times is refused."""
    import pyarrow as pa
    import sqlglot
    from sqlglot import exp

    if isinstance(told, pa.BaseExtensionType):  # of numeric, which Arrow has not without a scale
        told = pa.float64() if getattr(told, "type_name", "") == "numeric" else told
    if isinstance(told, pa.DataType):
        spans = pa.types.is_interval(told) and dialect in SPANS
        return pa.duration("us") if spans else pa.float64() if pa.types.is_floating(told) else told
    if str(told).upper().startswith("INTERVAL") and dialect in SPANS:
        return pa.duration("us")
    if dialect == "postgres" and str(told) in ("MONEY", "another type"):
        raise ItemTypeError(_no_numbers(str(told)))
    kind = run(lambda: exp.DataType.build(told, dialect=dialect), _no_numbers(str(told)))
    name = kind.this
    if name == exp.DataType.Type.LOWCARDINALITY:
        return value_type_of(kind.expressions[0].sql(dialect), dialect)
    known = exp.DataType
    if name in {*known.SIGNED_INTEGER_TYPES, *known.UNSIGNED_INTEGER_TYPES}:
        wide = name in (known.Type.INT128, known.Type.INT256, known.Type.UINT128, known.Type.UINT256)
        return pa.float64() if wide else pa.uint64() if name == known.Type.UBIGINT else pa.int64()
    if name in known.FLOAT_TYPES:
        return pa.float64()
    if name in (known.Type.DECIMAL, known.Type.BIGDECIMAL, known.Type.MONEY):
        sizes = [int(each.this.this) for each in kind.expressions]
        if not sizes or sizes[0] > 38:
            return pa.float64()
        return pa.decimal128(38, sizes[1] if len(sizes) > 1 else 0)
    if name in (known.Type.DATE, known.Type.DATE32):
        return pa.date32()
    zoned = dialect == "clickhouse" and "'" in str(told)  # a zone, in whose time it would be answered
    if name in (known.Type.TIMESTAMPTZ, known.Type.TIMESTAMPLTZ) or zoned:
        return pa.timestamp("us", "UTC")
    if name in known.TEMPORAL_TYPES and name != known.Type.TIME:
        return pa.timestamp("us")
    raise ItemTypeError(_no_numbers(kind.sql(dialect=dialect) or type(sqlglot).__name__))


def _no_numbers(kind: str) -> str:
    return f"data must be numbers, dates, timestamps or intervals; the column holds {kind}."
