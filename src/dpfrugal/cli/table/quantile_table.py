"""``dpfrugal quantile`` on a table: one column, and how its values are shown."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from dpfrugal.cli import options as o
from dpfrugal.cli.table.table_input import numbers_of, reading
from dpfrugal.cli.table.table_options import Format, TableOptions, bytes_of
from dpfrugal.cli.terminal.output_files import kept_if_unwritten
from dpfrugal.errors import ParameterError
from dpfrugal.outside_text import in_json

if TYPE_CHECKING:
    from rich.table import Table

    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.table.release import TableRelease
    from dpfrugal.privacy.guarantees import Guarantee


def quantile_of_table(
    files: list[str],
    column: str | None,
    file_format: Format | None,
    options: o.EstimatorOptions,
    table: TableOptions,
    *,
    as_json: bool,
) -> None:
    """Read a column, release, show."""
    from dpfrugal.cli.terminal.stderr_notes import explain_ledger
    from dpfrugal.estimators.table.private_quantiles import private_quantiles

    guarantee, ledger = options.guarantee(), options.ledger()
    parameters = table_parameters(options, table)
    if table.person is not None and column is None:
        raise ParameterError("--person needs --column, the column of numbers.")
    numbers = numbers_of(files, column, file_format, table, omit_bad=options.nan_policy == "omit")
    with reading(numbers.files):
        release = private_quantiles(
            numbers.data, options.quantiles, guarantee, column=column, **parameters,
            ledger=ledger, dataset=options.dataset,
        )  # fmt: skip
    with spent(ledger, options.dataset, guarantee):
        with kept_if_unwritten(lambda: [in_json(record(release))], ledger, options.dataset):
            if as_json:
                typer.echo(in_json(record(release) | numbers.more))
            elif sys.stdout.isatty():
                from dpfrugal.cli.terminal.stderr_notes import plain_console

                plain_console().print(shown(release))
            else:
                for row in rows_of(release):
                    typer.echo("\t".join(row))
        explain(release)
        numbers.explain()
        explain_ledger(ledger, options.dataset)


def table_parameters(options: o.EstimatorOptions, table: TableOptions) -> dict[str, Any]:
    """What ``private_quantiles`` and ``quantiles_by`` both take, as it was asked for."""
    for name, hint in (("low", table.low), ("high", table.high)):
        if hint is not None and hint.strip().lower() in ("nan", "nat"):
            raise ParameterError(f"--{name} must be a value of the column; {hint!r} is none.")
    return {
        "neighbours": table.neighbours,
        "person": table.person,
        "max_items_per_person": options.max_items_per_person,
        "intervals": table.intervals,
        "confidence": table.confidence,
        "interval_of": table.interval_of,
        "low": table.low,
        "high": table.high,
        "decimals": options.decimals,
        "nan_policy": options.nan_policy,
        "memory": bytes_of(table.memory),
    }


@contextmanager
def spent(ledger: "Ledger | None", dataset: str | None, guarantee: "Guarantee") -> Iterator[None]:
    """What ends the command in here, after the spend, says that there was one."""
    try:
        yield
    except BaseException:
        if ledger is not None and dataset is not None:
            from dpfrugal.cli.terminal.stderr_notes import notes

            standing = ledger.dataset(dataset)
            left = f"{standing.left or 'nothing'} is left of {standing.total}"
            notes.print(f"{guarantee} was spent on {dataset!r} in {ledger.path} before that; {left}.")
        raise


def known(release: "TableRelease") -> list[tuple[float, Any, Any, Any]]:
    """Each quantile with its value and its interval; None where the rows were too few to tell."""
    ends = [(None, None)] * len(release.values) if release.lower is None else release.intervals()
    return [
        (q, None, None, None) if reason else (q, value, *interval)
        for q, value, interval, reason in zip(release.quantiles, release.values, ends, release.reasons, strict=True)
    ]


def texts(value: Any, low: Any, high: Any) -> list[str]:
    """A value and the ends of its interval as text; blank where there is none."""
    from dpfrugal.estimators.display.shown_values import shown_value

    width = high - low if isinstance(low, float) and isinstance(high, float) else None
    return ["" if each is None else shown_value(each, width) for each in (value, low, high)]


def rows_of(release: "TableRelease") -> Iterator[list[str]]:
    """For a pipe: quantile, value and, where there are intervals, lower and upper."""
    for q, *found in known(release):
        yield [f"{q:g}", *texts(*found)[: 1 if release.lower is None else 3]]


def record(release: "TableRelease") -> dict[str, Any]:
    """For JSON: where there are too few rows there is no number, but a reason."""
    found = release.to_dict()
    doubtful = [reason is not None for reason in release.reasons]
    found["values"] = [None if doubt else value for value, doubt in zip(found["values"], doubtful, strict=True)]
    if "intervals" in found:
        pairs = zip(found["intervals"], doubtful, strict=True)
        found["intervals"] = [[None, None] if doubt else ends for ends, doubt in pairs]
    return found | ({"value": found["values"][0]} if "value" in found else {})


def shown(release: "TableRelease") -> "Table":
    """For a terminal."""
    from rich.table import Table

    titles = ["quantile", "value"] + ([f"{100 * (release.confidence or 0):g}% interval"] if release.lower else [])
    table = Table()
    for title in titles:
        table.add_column(title, justify="right")
    for q, *found in known(release):
        value, low, high = texts(*found)
        ends = [f"{low} to {high}" if low or high else "unknown"] if release.lower else []
        table.add_row(f"{q:g}", value or "too few rows", *ends)
    return table


def explain(release: "TableRelease") -> None:
    """The claim, what was paid for what, and why a value is missing. From public values only."""
    from dpfrugal.cli.terminal.stderr_notes import note, notes

    changed = "replaced" if release.neighbours == "replace" else "added or removed"
    rows = "the number of rows is private" if release.items is None else f"{release.items:,} rows"
    notes.print(f"{release.guarantee} per {release.unit} {changed}; {rows}")
    if release.confidence is not None:
        whose = "of the population" if release.interval_of == "population" else "of the table"
        shares = release.shares
        notes.print(
            f"{100 * release.confidence:g}% intervals for the quantile {whose}; values have {shares['values']:.0%} of "
            f"the guarantee, intervals {shares['intervals']:.0%}"
            + (f", a pilot {shares['pilot']:.0%}" if "pilot" in shares else "")
        )
    for reason in filter(None, release.reasons):
        note(f"{reason}; no number is shown.")
