"""``dpfrugal quantile``: private quantiles of one column of a table, in all or per key."""

import io
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfrugal.cli import options as o
from dpfrugal.cli.table import table_options as t
from dpfrugal.cli.table.table_input import STDIN, one_path
from dpfrugal.cli.table.table_output import Output
from dpfrugal.cli.terminal.output_files import kept_if_unwritten
from dpfrugal.errors import ParameterError, TableError
from dpfrugal.outside_text import in_json
from dpfrugal.parameters import NullGroups

if TYPE_CHECKING:
    from dpfrugal.inputs.columns import Column


@o.with_shared_options
def quantile(
    files: t.Files,
    options: o.EstimatorOptions,
    column: Annotated[str | None, typer.Option(help="The column of numbers; needed if there are several.")] = None,
    file_format: t.FileFormat = None,
    as_json: o.Json = False,
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of keys: a quantile for each key; repeat the option for keys of several columns.",
            rich_help_panel=o.KEYS,
        ),
    ] = None,
    key_options: o.KeyOptions,
    null_keys: Annotated[
        NullGroups,
        typer.Option(
            metavar="WHAT",
            help="Rows without a key: raise refuses the file, drop leaves them out, group makes them one more group of "
            "--keys.",
            rich_help_panel=o.KEYS,
        ),
    ] = "raise",
    rounds: Annotated[
        int | None,
        typer.Option(
            help="dp-frugal-1u: release this many times, evenly over the rows; between releases the step size adapts.",
            rich_help_panel=o.KEYS,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the table to this file: .csv, .jsonl, .parquet or .txt.", rich_help_panel=o.KEYS),
    ] = None,
    to: Annotated[
        Output | None,
        typer.Option(
            metavar="FORMAT",
            help="The format of what is written: table, csv, jsonl or parquet. Default: that of --output's name; "
            "without --output a table on a terminal, CSV in a pipe.",
            rich_help_panel=o.KEYS,
        ),
    ] = None,
    table: t.TableOptions,
) -> None:
    """Private quantiles of a column of numbers or times, in any order of rows; no bounds are needed.

    One guarantee covers all quantiles together.

    A pipe gets a line per quantile, with tabs between: q, value, and the ends of its interval. A value is blank where
    the rows are too few for it; standard error says how many are needed.

    With --by there is a quantile for each key, and one guarantee covers all: name the keys, or let them be discovered.

    A CSV file has a header if you name a --column; commas, semicolons or tabs divide its columns.

    Example: dpfrugal quantile requests.parquet --column ms -q 0.5,0.99 --epsilon 1

    Example: dpfrugal quantile 'logs/*.csv.gz' --column ms --by endpoint --keys endpoints.txt -q 0.9 --epsilon 1

    Example: zcat values.gz | dpfrugal quantile - -q 0.5 --epsilon 1
    """
    way = options.algorithm or "table"
    only_by = {"null_keys": null_keys != "raise", "output": output is not None, "to": to is not None}
    refuse_misplaced(way, options, key_options, table, bool(by), only_by | {"rounds": rounds is not None})
    if way == "table":
        if not by:
            from dpfrugal.cli.table.quantile_table import quantile_of_table

            quantile_of_table(files, column, file_format, options, table, as_json=as_json)
            return
        from dpfrugal.cli.table.quantile_table_by_key import quantiles_of_groups

        quantiles_of_groups(
            *(files, column, by, file_format, options, key_options, table),
            null_keys=null_keys,
            output=output,
            to=to,
            as_json=as_json,
        )
        return
    if len(files) > 1:
        raise ParameterError(f"--algorithm {way} reads one file; name one, or leave out --algorithm.")
    file = "-" if files[0] in STDIN else files[0]
    if not by:
        _one_scan(file, column, file_format, options, as_json=as_json)
        return
    if len(by) > 1:
        raise ParameterError(f"--algorithm {way} takes one --by; leave out --algorithm for keys of several columns.")
    if null_keys == "group":
        raise ParameterError(f"--null-keys group is for tables; leave it out, or leave out --algorithm {way}.")
    from dpfrugal.cli.quantile_walk_by_key import quantile_by

    guarantee, discovery = key_options.guarantees(options)
    quantile_by(
        file,
        column,
        by[0],
        options.quantiles,
        guarantee,
        keys=key_options.keys,
        discover_keys=discovery,
        person=table.person,
        rounds=1 if rounds is None else rounds,
        file_format=file_format,
        output=output,
        to=to,
        as_json=as_json,
        null_keys=null_keys,
        ledger=options.ledger(),
        dataset=options.dataset,
        **key_options.parameters(options),
    )


def refuse_misplaced(
    way: str,
    options: o.EstimatorOptions,
    key_options: o.KeyOptions,
    table: t.TableOptions,
    grouped: bool,
    given: dict[str, bool],
) -> None:
    """Refuse the first option that does not belong to the chosen way."""
    if way == "private-quantile" and grouped:
        key_options.guarantees(options)  # refuses, and says why
    given = given | _changed(key_options, o.KeyOptions()) | _changed(table, t.TableOptions())
    by_only = {field.name for field in fields(o.KeyOptions)} | {
        "null_keys",
        "output",
        "to",
        "rounds",
        "other",
        "counts",
    }
    for name in (name for name, is_given in given.items() if is_given):
        option = f"--{name.replace('_', '-')}"
        if name in by_only and not grouped:
            raise ParameterError(f"{option} is for --by, a quantile per key.")
        if way != "table" and hasattr(table, name) and not (name == "person" and grouped):
            raise ParameterError(f"{option} is for tables; leave it out, or leave out --algorithm {way}.")
    walk_only = {"start": options.start, "calibration": options.calibration, "rounds": given["rounds"] or None}
    for name, value in walk_only.items() if way == "table" else ():
        if value is not None:
            others = "dp-frugal-1u" if name == "rounds" else "private-quantile or dp-frugal-1u"
            raise ParameterError(f"--{name} is for --algorithm {others}; a table needs none.")


def _changed(given: Any, default: Any) -> dict[str, bool]:
    return {field.name: getattr(given, field.name) != getattr(default, field.name) for field in fields(given)}


def _one_scan(
    file: str, column: str | None, file_format: t.Format | None, options: o.EstimatorOptions, *, as_json: bool
) -> None:
    """Estimate in one scan, in the order of the rows."""
    from dpfrugal.cli.estimator_from_options import estimator_from, last_release, record, shown_values
    from dpfrugal.cli.terminal.progress import progress
    from dpfrugal.cli.terminal.stderr_notes import charged, explain, explain_ledger
    from dpfrugal.estimators.windows.window_items import states_integers
    from dpfrugal.inputs.batches import read_ahead

    ledger, whole = options.ledger(), False
    estimator = estimator_from(options, ledger, options.dataset)
    items = _items(file, column, file_format, omit_bad=options.nan_policy == "omit")
    source = "standard input" if file == "-" else Path(file).name
    estimator.account.also_asked(column=column, source=source)
    if ledger is not None and options.algorithm == "private-quantile" and file != "-" and Path(file).is_file():
        # Segments spend while rows are read: what the file will be refused for is found before.
        rehearsal = estimator_from(options, None, None)
        with estimator.account.before_spending():
            for batch, _ in _items(file, column, file_format, omit_bad=False).batches:
                rehearsal.update_many(batch)
    with charged(estimator.account):
        with progress(items.name, items.total, items.unit) as made:
            for batch, advance in read_ahead(items.batches, endless=file == "-"):
                estimator.update_many(batch)
                made(advance, len(batch))
                whole = states_integers(batch)  # by the column's type, which is public
        if not estimator.items:
            raise TableError(
                f"{'standard input' if file == '-' else file}: there are no items to estimate a quantile of."
            )
        release = last_release(estimator)
        if whole and options.decimals is None:
            release = replace(release, values=tuple(float(round(value)) for value in release.values))
        with kept_if_unwritten(lambda: [in_json(record(release))], ledger, options.dataset):
            if as_json:
                typer.echo(in_json(record(release)))
            else:
                for q, value in zip(release.quantiles, shown_values(release, options), strict=True):
                    typer.echo(f"{q:g}\t{value}")
        explain(release, options.first)
        explain_ledger(ledger, options.dataset)


def _items(file: str, column: str | None, file_format: t.Format | None, *, omit_bad: bool) -> "Column":
    from dpfrugal.inputs.columns import Column
    from dpfrugal.inputs.files import open_column

    if file == "-":
        if column is not None or file_format is not None:
            raise ParameterError("--column and --format are for files; standard input takes one number per line.")
        from dpfrugal.inputs.number_lines import numbers

        # Not sys.stdin itself: its lock, held by a thread that waits, would abort the interpreter's exit.
        stream = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        return Column("standard input", 0, "bytes", numbers(stream, omit_bad=omit_bad))
    return open_column(one_path(file), column, file_format)
