"""Any SQL database with a Python DB-API 2.0 or ADBC connection: its rows stay there, windows of them are read.

>>> import sqlite3, dpfrugal as dpf
>>> from dpfrugal.engines import sql
>>> connection = sqlite3.connect(":memory:")
>>> _ = connection.execute("CREATE TABLE orders (amount INTEGER, region TEXT)")
>>> rows = [(k % 100, "north") for k in range(10_000)]
>>> _ = connection.executemany("INSERT INTO orders VALUES (?, ?)", rows)
>>> r = sql.private_quantiles(connection, "orders", "amount", 0.5, dpf.PureDP(epsilon=1.0))
>>> abs(r.value - 50) <= 1
True
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dpfrugal import parameters
from dpfrugal.engines.sql.connections import dialect_of
from dpfrugal.engines.sql.statements import Statements
from dpfrugal.engines.sql.table import DatabaseTable
from dpfrugal.errors import ParameterTypeError
from dpfrugal.estimators.table.choices.answers import reaches_of
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.private_quantiles import interval_rule
from dpfrugal.estimators.table.private_quantiles import private_quantiles as quantiles_of_table
from dpfrugal.estimators.table.quantiles_by import quantiles_by as quantiles_of_groups
from dpfrugal.estimators.table.release import TableRelease
from dpfrugal.estimators.table.rows.engine_tables import Columns
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee

__all__ = ["private_quantiles", "quantiles_by"]


def private_quantiles(
    connection: Any,
    table: str,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    where: str | None = None,
    dialect: str | None = None,
    explain: bool = False,
    **options: Any,
) -> TableRelease | str:
    """Private quantiles of a column of a database's table; the options are those of ``dpf.private_quantiles``.

    ``where`` is a condition that each row meets or not by itself. It is public, and so is how many rows meet it under
    ``neighbours="replace"``; under ``"add-remove"`` that number is not. ``dialect`` is one of sqlglot's, found by the
    connection where it is not given. ``explain=True`` prints the statements, and runs nothing: ``connection`` may then
    be None.

    >>> import sqlite3, dpfrugal as dpf
    >>> from dpfrugal.engines import sql
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE orders (amount INTEGER, region TEXT)")
    >>> _ = connection.executemany("INSERT INTO orders VALUES (?, ?)", [(7, "north"), (9, "south")] * 2_000)
    >>> guarantee, where = dpf.PureDP(epsilon=1.0), "region = 'south'"
    >>> sql.private_quantiles(connection, "orders", "amount", 0.9, guarantee, where=where).value
    9
    """
    found = dialect_of(connection, dialect)
    _checked_column(column)
    if explain:
        return _explained(found, table, column, (), where, quantiles, guarantee, options)
    source = DatabaseTable(connection, found, table, where)
    with source.one_state():
        release: TableRelease = quantiles_of_table(source, quantiles, guarantee, column=column, **options)
    return release


def quantiles_by(
    connection: Any,
    table: str,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    by: str | Sequence[str],
    where: str | None = None,
    dialect: str | None = None,
    explain: bool = False,
    **options: Any,
) -> Any:
    """Private quantiles for each key of ``by``, a column or several; the options are those of ``dpf.quantiles_by``.

    >>> import sqlite3, dpfrugal as dpf
    >>> from dpfrugal.engines import sql
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE orders (amount INTEGER, region TEXT)")
    >>> _ = connection.executemany("INSERT INTO orders VALUES (?, ?)", [(7, "north"), (9, "south")] * 2_000)
    >>> guarantee, keys = dpf.PureDP(epsilon=1.0), ["north", "south"]
    >>> table = sql.quantiles_by(connection, "orders", "amount", 0.5, guarantee, by="region", keys=keys)
    >>> table.select(["key", "value"]).to_pylist()
    [{'key': 'north', 'value': 7}, {'key': 'south', 'value': 9}]
    """
    found = dialect_of(connection, dialect)
    _checked_column(column)
    if explain:
        names = (by,) if isinstance(by, str) else tuple(by)
        return _explained(found, table, column, names, where, quantiles, guarantee, options)
    source = DatabaseTable(connection, found, table, where)
    with source.one_state():
        return quantiles_of_groups(source, column, quantiles, guarantee, by=by, **options)


def _checked_column(column: Any) -> None:
    """Refuse what is not the name of a column."""
    if not isinstance(column, str):
        raise ParameterTypeError(f"column must be the name of a column, not {type(column).__name__}.")


def _explained(
    dialect: str,
    table: str,
    column: str,
    by: tuple[str, ...],
    where: str | None,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    options: Mapping[str, Any],
) -> str:
    """The statements as text, which is printed too; nothing is run."""
    most = parameters.max_items_per_person(options.get("max_items_per_person", 1))
    keys = parameters.max_keys_per_person(options.get("max_keys_per_person"))
    asked = Asked(
        tuple(sorted(map(parameters.exact, parameters.quantiles(quantiles)))),
        checked_guarantee(guarantee),
        parameters.neighbours(options.get("neighbours", "replace")),
        grouped=bool(by),
        rows_per_person=most * (keys or 1),
        intervals=interval_rule(
            options.get("intervals", True), options.get("confidence", 0.95), options.get("interval_of", "population")
        ),
        counts=bool(by) and options.get("counts", True),
    )
    columns = Columns(column, by, options.get("person"), most, keys)
    text = Statements(dialect, table, columns, where).explained(reaches_of(plan_of(asked)))
    print(text)  # noqa: T201 - what was asked for
    return text
