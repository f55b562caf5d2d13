"""``dpfrugal quantile``: private quantiles of one column of a file, or of numbers on standard input."""

import io
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.cli import options as o
from dpfrugal.errors import ParameterError, TableError

if TYPE_CHECKING:
    from dpfrugal.inputs.columns import Column


class FormatChoice(StrEnum):
    """The kinds of file that can be read."""

    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"
    ARROW = "arrow"


def quantile(
    file: Annotated[str, typer.Argument(help="Parquet, CSV, JSON Lines or Arrow; - for numbers on stdin.")],
    quantiles: o.Quantiles,
    column: Annotated[str | None, typer.Option(help="The column; not needed where there is only one.")] = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    calibration: o.CalibrationOption = None,
    max_items_per_person: o.MaxItems = 1,
    algorithm: o.AlgorithmOption = None,
    decimals: o.Decimals = None,
    start: o.Start = 0.0,
    nan_policy: o.NanPolicyOption = o.NanPolicyChoice.RAISE,
    file_format: Annotated[
        FormatChoice | None, typer.Option("--format", help="Default: by content, then by name.")
    ] = None,
    ledger_file: o.LedgerOption = None,
    dataset: o.DatasetOption = None,
    as_json: o.Json = False,
    by: Annotated[
        str | None, typer.Option(help="A column of keys: a quantile for each of them.", rich_help_panel=o.KEYS)
    ] = None,
    keys: o.Keys = None,
    discover_keys: o.DiscoverKeys = False,
    person: Annotated[
        str | None,
        typer.Option(help="A column of ids, to enforce the bounds per person by sampling.", rich_help_panel=o.KEYS),
    ] = None,
    max_keys_per_person: o.MaxKeys = None,
    null_keys: Annotated[
        o.NullKeysChoice, typer.Option(help="Refuse or drop rows without a key.", rich_help_panel=o.KEYS)
    ] = o.NullKeysChoice.RAISE,
    rounds: Annotated[
        int,
        typer.Option(help="Releases on the way, at even times: steps adapt to far quantiles.", rich_help_panel=o.KEYS),
    ] = 1,
    output: Annotated[
        Path | None, typer.Option(help="Write the table here: .csv, .jsonl, .parquet.", rich_help_panel=o.KEYS)
    ] = None,
    to: Annotated[
        o.Output | None,
        typer.Option(help="The form; default: a table on a terminal, CSV in a pipe.", rich_help_panel=o.KEYS),
    ] = None,
) -> None:
    """Private quantiles of a column of numbers, in constant memory.

    Prints one line per quantile: q, a tab, the private value. Several quantiles share the one guarantee.

    With --by a quantile for each key, by the paper's walk, under one guarantee for all of them.

    Text may be gzipped (.gz); .tsv is split at tabs; a CSV of bare numbers needs no header.

    Example: dpfrugal quantile requests.parquet --column ms -q 0.5 -q 0.99 --epsilon 1

    Example: dpfrugal quantile flights.parquet --column delay --by carrier --keys carriers.txt -q 0.9 --epsilon 1
    """
    if by is not None:
        from dpfrugal.cli.quantile_by_key import quantile_by

        guarantee, discovery = o.guarantees_by_key(epsilon, delta, rho, calibration, keys, discover_keys, algorithm)
        quantile_by(
            file,
            column,
            by,
            quantiles,
            guarantee,
            keys=keys,
            discover_keys=discovery,
            person=person,
            rounds=rounds,
            file_format=None if file_format is None else file_format.value,
            output=output,
            to=to,
            as_json=as_json,
            decimals=decimals or 0,
            start=start,
            max_items_per_person=max_items_per_person,
            max_keys_per_person=max_keys_per_person,
            nan_policy=nan_policy.value,
            null_keys=null_keys.value,
            ledger=o.ledger_from(ledger_file, dataset),
            dataset=dataset,
        )
        return
    dropping = null_keys is o.NullKeysChoice.DROP
    if keys or discover_keys or person or max_keys_per_person or dropping or output or to or rounds != 1:
        raise ParameterError(
            "--keys, --discover-keys, --person, --max-keys-per-person, --null-keys, --rounds, --output and --to are "
            "for --by."
        )
    from dpfrugal.cli.algorithm import estimator_from, last_release, shown_values
    from dpfrugal.cli.notes import charged, explain, explain_ledger
    from dpfrugal.cli.progress import progress
    from dpfrugal.inputs.batches import read_ahead

    ledger = o.ledger_from(ledger_file, dataset)
    estimator = estimator_from(
        algorithm,
        quantiles,
        o.guarantee_from(epsilon, delta, rho, calibration),
        max_items_per_person=max_items_per_person,
        decimals=decimals,
        start=start,
        nan_policy=nan_policy,
        ledger=ledger,
        dataset=dataset,
    )
    items = _items(file, column, file_format, omit_bad=nan_policy is o.NanPolicyChoice.OMIT)
    with charged(estimator._account):
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
            for q, value in zip(release.quantiles, shown_values(release, algorithm, decimals), strict=True):
                typer.echo(f"{q:g}\t{value}")
        explain(release, start)
        explain_ledger(ledger, dataset)


def _items(file: str, column: str | None, file_format: FormatChoice | None, *, omit_bad: bool) -> "Column":
    from dpfrugal.inputs.columns import Column
    from dpfrugal.inputs.files import open_column

    if file == "-":
        if column is not None or file_format is not None:
            raise ParameterError("--column and --format are for files; standard input takes one number per line.")
        from dpfrugal.inputs.lines import numbers

        # Not sys.stdin itself: its lock, held by a thread that waits, would abort the interpreter's exit.
        stream = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        return Column("standard input", 0, "bytes", numbers(stream, omit_bad=omit_bad))
    return open_column(Path(file), column, file_format.value if file_format else None)
