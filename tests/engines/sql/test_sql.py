"""engines.sql: the statements, what they refuse, and what a connection that fails leaves behind."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlglot

import dpfrugal as dpf
from dpfrugal.engines import sql
from dpfrugal.engines.sql.statements import SCANNED, Statements
from dpfrugal.errors import DPFrugalError, ItemTypeError, ParameterError, ParameterTypeError, TableError
from dpfrugal.estimators.table.rows.engine_tables import Columns
from tests.engines.holders import reaches

GUARANTEE = dpf.PureDP(epsilon=1.0)


@pytest.fixture
def orders() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE orders (amount REAL, region TEXT, channel TEXT, day TEXT, who INTEGER)")
    rows = [(k % 1000, "NESW"[k % 4], "ab"[k % 2], f"2026-01-{1 + k % 28:02}", k // 3) for k in range(20_000)]
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
    return connection


def test_sql__answers_a_table_and_its_groups(orders: Any, tmp_path: Any) -> None:
    r = sql.private_quantiles(orders, "orders", "amount", [0.5, 0.99], GUARANTEE)
    assert not isinstance(r, str)
    assert r.items == 20_000
    assert abs(r.values[0] - 500) < 5
    ledger = dpf.Ledger(tmp_path / "ledger", total=dpf.PureDP(epsilon=1.5))
    shown = sql.quantiles_by(
        orders, "main.orders", "amount", 0.9, GUARANTEE, by=["region", "channel"], keys=[("N", "a"), ("W", "b")],
        other=("other", "other"), where="day >= '2026-01-15'", ledger=ledger, dataset="orders",
    )  # fmt: skip
    assert shown.column("region").to_pylist() == ["N", "W", "other"]
    assert int(shown.schema.metadata[b"items"]) == sum(1 for k in range(20_000) if 1 + k % 28 >= 15)
    assert ledger.left("orders") == dpf.PureDP(epsilon=0.5)


def test_sql__explain_prints_the_statements_and_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for dialect in ("postgres", "sqlite", "duckdb", "clickhouse", "bigquery", "snowflake"):
        for options in ({}, {"person": "who", "max_items_per_person": 2}):
            text = sql.quantiles_by(
                None, "orders", "amount", 0.9, GUARANTEE, by="region", dialect=dialect, explain=True,
                where="day >= '2026-01-01'", **options,
            )  # fmt: skip
            assert capsys.readouterr().out.strip() == text
            parsed = sqlglot.parse(text, read=dialect)
            scanned = dialect in SCANNED and not options
            assert len(parsed) == 2 + scanned
            assert all(isinstance(each, sqlglot.exp.Query) for each in parsed)
            for each in parsed:
                names = {table.name for table in each.find_all(sqlglot.exp.Table) if table.name}
                assert names - {"dpfrugal_brackets"} == {"orders"}


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "duckdb", "clickhouse", "bigquery", "snowflake", "mysql"])
@pytest.mark.parametrize("name", ['a"; DROP TABLE t; --', "b`'\\x", "c\"\"d''", "é 世界", "--", "/*"])
def test_sql__names_are_quoted_in_every_dialect(dialect: str, name: str) -> None:
    statements = Statements(dialect, name.replace(".", ""), Columns(name, (name,)), None)
    for text in (
        statements.nothing(),
        statements.counts(True),
        statements.windows(True, "DOUBLE", None, "", reaches(0.5)),
    ):
        (tree,) = sqlglot.parse(text, read=dialect)
        assert isinstance(tree, sqlglot.exp.Select)
        assert name in {each.name for each in tree.find_all(sqlglot.exp.Column)}
        assert name in {each.name for each in tree.find_all(sqlglot.exp.Table)}


@pytest.mark.parametrize(
    "where",
    [
        "amount > (SELECT AVG(amount) FROM orders)", "SUM(amount) > 3", "ROW_NUMBER() OVER (ORDER BY amount) < 9",
        "EXISTS (SELECT 1 FROM orders)", "1 = 1; DROP TABLE orders", "DROP TABLE orders", "amount >", "",
        "amount IN (SELECT amount FROM orders)", "1 = 1) OR (SELECT 1", 3,
    ],
)  # fmt: skip
def test_sql__a_filter_looks_at_one_row(orders: Any, where: Any) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match="where must be"):
        sql.private_quantiles(orders, "orders", "amount", 0.5, GUARANTEE, where=where)
    assert orders.execute("SELECT COUNT(*) FROM orders").fetchone() == (20_000,)


def test_sql__refusals_are_sentences(orders: Any) -> None:
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TableError, "there is no table 'nothing'", {"table": "nothing"}),
        (TableError, "there is no table 'other.orders'", {"table": "other.orders"}),
        (ParameterError, "where must be a condition on columns", {"where": "days >= '2026-01-01'"}),
        (TableError, "there is no column 'price'", {"column": "price"}),
        (ItemTypeError, "data must be numbers", {"column": "region"}),
        (ParameterError, "dialect must be one of .*postgres", {"dialect": "klingon"}),
        (ParameterTypeError, "connection must be one of", {"connection": 3, "dialect": "sqlite"}),
        (ParameterError, "dialect must be given", {"connection": object()}),
        (ParameterError, "table must be the name", {"table": "a..b"}),
        (ParameterTypeError, "table must be the name", {"table": 7}),
    ]
    for kind, said, given in cases:
        asked = {"connection": orders, "table": "orders", "column": "amount"} | given
        with pytest.raises(kind, match=said) as caught:
            sql.private_quantiles(**asked, quantiles=0.5, guarantee=GUARANTEE)
        assert caught.value.__context__ is None
    orders.execute("INSERT INTO orders VALUES ('a secret', 'N', 'a', '2026-01-01', 1)")
    with pytest.raises(ItemTypeError, match="the type that the column declares") as mixed:
        sql.private_quantiles(orders, "orders", "amount", 0.5, GUARANTEE)
    assert "secret" not in str(mixed.value)


class Dropping:
    """A connection that is lost after so many statements."""

    def __init__(self, connection: Any, statements: int) -> None:
        self._connection, self._left = connection, statements

    def cursor(self) -> Any:
        self._left -= 1
        if self._left < 0:
            raise sqlite3.OperationalError("a secret of the server")
        return self._connection.cursor()


@pytest.mark.parametrize("statements", [0, 1, 2, 3, 4, 5])
def test_sql__a_connection_that_drops_releases_nothing_and_says_what_was_charged(
    orders: Any, tmp_path: Any, statements: int
) -> None:
    ledger = dpf.Ledger(tmp_path / "ledger", total=GUARANTEE)
    with pytest.raises(DPFrugalError, match="nothing was released") as caught:
        sql.private_quantiles(
            Dropping(orders, statements), "orders", "amount", 0.5, GUARANTEE, dialect="sqlite", ledger=ledger,
            dataset="orders",
        )  # fmt: skip
    assert "secret" not in str(caught.value)
    assert any("nothing was spent" in note.lower() for note in caught.value.__notes__)
    assert not ledger.datasets()


def test_sql__rows_that_come_between_the_statements_are_refused(orders: Any) -> None:
    class Busy(Dropping):
        def cursor(self) -> Any:
            self._left -= 1
            if self._left == 0:  # before the windows
                self._connection.execute("INSERT INTO orders VALUES (1.0, 'N', 'a', '2026-01-01', 1)")
            return self._connection.cursor()

    with pytest.raises(TableError, match="changed while it was read"):
        sql.private_quantiles(Busy(orders, 5), "orders", "amount", 0.5, GUARANTEE, dialect="sqlite")


def test_sql__a_column_without_a_declared_type_holds_floats(orders: Any) -> None:
    orders.execute("CREATE TABLE plain AS SELECT amount + 0 AS amount, region FROM orders")
    r = sql.private_quantiles(orders, "plain", "amount", 0.5, GUARANTEE)
    assert not isinstance(r, str)
    assert abs(r.value - 500) < 5
    orders.execute("CREATE TABLE loose (amount, region)")
    orders.execute("INSERT INTO loose SELECT amount, region FROM orders")
    assert sql.quantiles_by(orders, "loose", "amount", 0.5, GUARANTEE, by="region", keys=["N"]).num_rows == 1
    with pytest.raises(ItemTypeError, match="data must be numbers"):
        sql.private_quantiles(orders, "loose", "region", 0.5, GUARANTEE)


def test_sql__a_connection_may_be_of_a_class_of_the_callers(orders: Any) -> None:
    class Own(sqlite3.Connection):
        pass

    orders.commit()
    with Own(":memory:") as own:
        orders.backup(own)
        r = sql.private_quantiles(own, "orders", "amount", 0.5, GUARANTEE)
    own.close()
    assert not isinstance(r, str)
    assert r.items == 20_000


@pytest.fixture
def shop(postgres: Any) -> Iterator[Any]:
    """A schema of PostgreSQL with a table."""
    postgres.execute("CREATE SCHEMA shop")
    postgres.execute("CREATE TABLE shop.orders AS SELECT k % 1000 AS amount, 'r' || k % 3 AS region, "
                     "CAST(k AS numeric) / 7 AS share FROM generate_series(0, 9999) AS k")  # fmt: skip
    yield postgres
    postgres.execute("DROP SCHEMA shop CASCADE")


Mistake = tuple[type[Exception], str, dict[str, Any]]
MISTAKES: list[Mistake] = [
    (TableError, "there is no table 'shop.nothing'", {"table": "shop.nothing"}),
    (TableError, "there is no table 'orders'", {"table": "orders"}),
    (TableError, "there is no column 'price'; there are 'amount', 'region', 'share'", {"column": "price"}),
    (ItemTypeError, "data must be numbers", {"column": "region"}),
]


def test_sql__a_mistake_leaves_a_transaction_of_postgresql_as_it_was(shop: Any, postgres_address: str) -> None:
    cases: list[Mistake] = [*MISTAKES, (ParameterError, "where must be", {"where": "amounts < 3"})]
    with psycopg.connect(postgres_address) as connection:
        connection.execute("INSERT INTO shop.orders VALUES (7, 'new', 1)")  # of a transaction that is not ended
        for kind, said, given in cases:
            asked: dict[str, Any] = {"table": "shop.orders", "column": "amount"} | given
            with pytest.raises(kind, match=said):
                sql.private_quantiles(connection, quantiles=0.5, guarantee=GUARANTEE, **asked)
        r = sql.private_quantiles(connection, "shop.orders", "amount", 0.5, GUARANTEE)
        assert not isinstance(r, str)
        assert r.items == 10_001
        connection.rollback()
    assert shop.execute("SELECT COUNT(*) FROM shop.orders").fetchone() == (10_000,)


def test_sql__a_mistake_through_adbc_leaves_its_transaction_usable(shop: Any, postgres_address: str) -> None:
    from adbc_driver_postgresql import dbapi

    parts = dict(part.split("=") for part in postgres_address.split())
    with dbapi.connect(f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}") as other:
        for kind, said, given in MISTAKES:
            asked: dict[str, Any] = {"table": "shop.orders", "column": "amount"} | given
            with pytest.raises(kind, match=said):
                sql.private_quantiles(other, quantiles=0.5, guarantee=GUARANTEE, **asked)
        r = sql.private_quantiles(other, "shop.orders", "share", 0.5, GUARANTEE, where="region = 'r1'")
        assert not isinstance(r, str)
        assert r.items == 3_333


@pytest.mark.parametrize("statements", [0, 1, 2])
def test_sql__a_server_that_ends_the_connection_is_a_sentence_and_costs_nothing(
    shop: Any, postgres_address: str, tmp_path: Any, statements: int
) -> None:
    connection = psycopg.connect(postgres_address)

    class Ended:
        left = statements

        def cursor(self) -> Any:
            self.left -= 1
            if self.left < 0 and not connection.closed:
                shop.execute("SELECT pg_terminate_backend(%s, 10000)", [connection.info.backend_pid])
            return connection.cursor()

    ledger = dpf.Ledger(tmp_path / "ledger", total=GUARANTEE)
    with pytest.raises(TableError, match="connection was lost; nothing was released") as caught:
        sql.quantiles_by(
            Ended(), "shop.orders", "amount", 0.5, GUARANTEE, by="region", keys=["r0"], dialect="postgres",
            ledger=ledger, dataset="orders",
        )  # fmt: skip
    assert any("Nothing was spent" in note for note in caught.value.__notes__)
    assert not ledger.datasets()
    connection.close()


def test_sql__more_keys_than_a_statement_lists_are_refused_with_other(orders: Any) -> None:
    with pytest.raises(ParameterError, match="at most 1,000 keys") as caught:
        sql.quantiles_by(orders, "orders", "amount", 0.5, GUARANTEE, by="who", keys=range(6000), person="who")
    assert caught.value.__context__ is None
