"""``dpfrugal quantile``: private quantiles of one column of a file, or of numbers on standard input."""

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpfrugal.cli import options as o
from dpfrugal.errors import ParameterError, TableError
from dpfrugal.parameters import NullKeys

if TYPE_CHECKING:
    from dpfrugal.inputs.columns import Column


Format = Literal["parquet", "csv", "ndjson", "arrow"]


@o.with_shared_options
def quantile(
    file: Annotated[
        str, typer.Argument(help="A Parquet, CSV, JSON Lines or Arrow file; - for numbers on standard input.")
    ],
    options: o.EstimatorOptions,
    column: Annotated[str | None, typer.Option(help="The column of numbers; needed if there are several.")] = None,
    file_format: Annotated[
        Format | None, typer.Option("--format", help="The file's format; default: detected from its content or name.")
    ] = None,
    as_json: o.Json = False,
    by: Annotated[
        str | None, typer.Option(help="A column of keys: a quantile for each key.", rich_help_panel=o.KEYS)
    ] = None,
    *,
    key_options: o.KeyOptions,
    person: Annotated[
        str | None,
        typer.Option(
            help="A column of person ids: rows beyond a person's limits are dropped, by sampling.",
            rich_help_panel=o.KEYS,
        ),
    ] = None,
    null_keys: Annotated[
        NullKeys,
        typer.Option(help="Rows without a key: refuse the file, or drop them.", rich_help_panel=o.KEYS),
    ] = "raise",
    rounds: Annotated[
        int,
        typer.Option(
            help="Release this many times, evenly over the rows; between releases the step size adapts.",
            rich_help_panel=o.KEYS,
        ),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the table to this file: .csv, .jsonl, .parquet or .txt.", rich_help_panel=o.KEYS),
    ] = None,
    to: Annotated[
        o.Output | None,
        typer.Option(
            help="The table's format; default: by the name of --output, else a table on a terminal, CSV in a pipe.",
            rich_help_panel=o.KEYS,
        ),
    ] = None,
) -> None:
    """Private quantiles of a column of numbers, in constant memory.

    Prints one line per quantile: q, a tab, the private value. One guarantee covers all quantiles together.

    With --by, prints a table with a quantile for each key, estimated by dp-frugal-1u; one guarantee covers all keys.

    Text files may be gzipped (.gz); .tsv files are split at tabs; a CSV file of bare numbers needs no header.

    Example: dpfrugal quantile requests.parquet --column ms -q 0.5 -q 0.99 --epsilon 1

    Example: dpfrugal quantile flights.parquet --column delay --by carrier --keys carriers.txt -q 0.9 --epsilon 1
    """
    if by is not None:
        from dpfrugal.cli.quantile_by_key import quantile_by

        guarantee, discovery = key_options.guarantees(options)
        quantile_by(
            file,
            column,
            by,
            options.quantiles,
            guarantee,
            keys=key_options.keys,
            discover_keys=discovery,
            person=person,
            rounds=rounds,
            file_format=file_format,
            output=output,
            to=to,
            as_json=as_json,
            null_keys=null_keys,
            ledger=options.ledger(),
            dataset=options.dataset,
            **key_options.parameters(options),
        )
        return
    if key_options != o.KeyOptions() or person or null_keys != "raise" or output or to or rounds != 1:
        raise ParameterError(
            "--keys, --discover-keys, --person, --max-keys-per-person, --null-keys, --rounds, --output and --to are "
            "for --by."
        )
    from dpfrugal.cli.estimator_from_options import estimator_from, last_release, shown_values
    from dpfrugal.cli.progress import progress
    from dpfrugal.cli.stderr_notes import charged, explain, explain_ledger
    from dpfrugal.inputs.batches import read_ahead

    ledger = options.ledger()
    estimator = estimator_from(options, ledger, options.dataset)
    items = _items(file, column, file_format, omit_bad=options.nan_policy == "omit")
    with charged(estimator.account):
        with progress(items.name, items.total, items.unit) as made:
            for batch, advance in read_ahead(items.batches, endless=file == "-"):
                estimator.update_many(batch)
                made(advance, len(batch))
        if not estimator.items:
            raise TableError(
                f"{'standard input' if file == '-' else file}: there are no items to estimate a quantile of."
            )
        release = last_release(estimator)
        if as_json:
            typer.echo(json.dumps(release.to_dict(), ensure_ascii=False))
        else:
            for q, value in zip(release.quantiles, shown_values(release, options), strict=True):
                typer.echo(f"{q:g}\t{value}")
        explain(release, options.start)
        explain_ledger(ledger, options.dataset)


def _items(file: str, column: str | None, file_format: Format | None, *, omit_bad: bool) -> "Column":
    from dpfrugal.inputs.columns import Column
    from dpfrugal.inputs.files import open_column

    if file == "-":
        if column is not None or file_format is not None:
            raise ParameterError("--column and --format are for files; standard input takes one number per line.")
        from dpfrugal.inputs.lines import numbers

        # Not sys.stdin itself: its lock, held by a thread that waits, would abort the interpreter's exit.
        stream = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        return Column("standard input", 0, "bytes", numbers(stream, omit_bad=omit_bad))
    return open_column(Path(file), column, file_format)
