"""``--by``: a private quantile for each key of a column, from a file; and how a table of keys is written."""

import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpfrugal.cli import options as o
from dpfrugal.errors import ParameterError, TableError
from dpfrugal.parameters import integer

if TYPE_CHECKING:
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.inputs.columns import Column
    from dpfrugal.privacy.guarantees import Guarantee

SUFFIXES = {
    ".csv": o.Output.CSV,
    ".jsonl": o.Output.JSONL,
    ".ndjson": o.Output.JSONL,
    ".parquet": o.Output.PARQUET,
    ".txt": o.Output.TABLE,
}
MOST_SHOWN = 1000
# Batches of strings are large: some 4 MB each.
MOST_WAITING = 2


def quantile_by(
    file: str,
    column: str | None,
    by: str,
    quantiles: list[float],
    guarantee: "Guarantee",
    *,
    keys: Path | None,
    person: str | None,
    rounds: int,
    file_format: Any,
    output: Path | None,
    to: o.Output | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Read a file, release, write the table."""
    from dpfrugal.cli.progress import noise_progress, progress
    from dpfrugal.cli.stderr_notes import charged, explain_ledger
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.inputs.batches import read_ahead, regrouped
    from dpfrugal.inputs.files import BATCH_ROWS, open_column
    from dpfrugal.inputs.key_files import read_keys

    form = _form(output, to, as_json=as_json)
    if file == "-":
        raise ParameterError("--by is for files; for lines of key and value on standard input see dpfrugal watch --by.")
    integer("--rounds", rounds, 1)
    table = open_column(Path(file), column, file_format, (by,) if person is None else (by, person))
    if rounds > 1 and table.unit != "rows":
        raise ParameterError("--rounds is for Parquet and Arrow files, which say how many rows they have.")
    first, batches = _peeked(table, file)
    if rounds > 1 and not table.total:
        raise ParameterError("--rounds is for files that say how many rows they have; an Arrow stream does not.")
    declared = None if keys is None else read_keys(keys, by, first.column(1).type)
    estimator = KeyedDPFrugal1U(quantiles, guarantee, keys=declared, **options)
    with charged(estimator.account):
        with progress(table.name, table.total, table.unit) as made:
            ends = [table.total * done // rounds for done in range(1, rounds)]
            read = read_ahead(batches, MOST_WAITING)
            # When to release, and which of a person's rows are taken, must not depend on what other rows hold.
            for batch, advance in read if person is None and rounds == 1 else regrouped(read, BATCH_ROWS, ends):
                estimator.update_many(
                    batch.column(1), batch.column(0), person=None if person is None else batch.column(2)
                )
                made(advance, len(batch))
                if estimator.items in ends:
                    estimator.release()
        if not estimator.items:
            raise TableError(f"{file}: there are no items to estimate a quantile of.")
        with noise_progress() as noised:
            release = estimator.release(noised)
        write(release, form, output, options["decimals"])
        explain(estimator, release, options["start"], options["decimals"])
        explain_ledger(options["ledger"], options["dataset"])


def _peeked(table: "Column", file: str) -> tuple[Any, Iterator[tuple[Any, int]]]:
    """The first batch, which tells the type of the keys, and all batches."""
    first = next(table.batches, None)
    if first is None:
        raise TableError(f"{file}: there are no items to estimate a quantile of.")
    return first[0], itertools.chain([first], table.batches)


def _form(output: Path | None, to: o.Output | None, *, as_json: bool) -> o.Output:
    """How to write, decided before anything is read: what was released cannot be released again."""
    if as_json:
        named = to or (None if output is None else SUFFIXES.get(output.suffix.lower()))
        if named not in (None, o.Output.JSONL):
            raise ParameterError(f"--json writes JSON Lines, not {named}; leave it out, or the other.")
        to = o.Output.JSONL
    if output is None:
        if to is o.Output.PARQUET:
            raise ParameterError("--to parquet needs --output FILE.")
        return to or (o.Output.TABLE if sys.stdout.isatty() else o.Output.CSV)
    if output.is_dir():
        raise ParameterError(f"--output {output}: this is a folder; name a file in it.")
    if not output.parent.is_dir():
        raise ParameterError(f"--output {output}: there is no such folder to write a file in.")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise ParameterError(f"--output {output}: it may not be written.")
    if to is None and output.suffix.lower() not in SUFFIXES:
        unknown = f"the extension {output.suffix} is unknown" if output.suffix else "it has no extension"
        raise ParameterError(f"--output {output}: {unknown}; choose --to csv, jsonl, parquet or table.")
    return to or SUFFIXES[output.suffix.lower()]


def write(release: Any, form: o.Output, output: Path | None, decimals: int) -> None:
    """The table to a file, or to standard output."""
    if form is o.Output.PARQUET and output is not None:
        import pyarrow.parquet as pq

        pq.write_table(release, output)
    elif output is not None:
        output.write_text("".join(f"{line}\n" for line in lines_of(release, form, decimals)), encoding="utf-8")
    elif form is o.Output.TABLE and sys.stdout.isatty():
        _show(release, decimals)
    else:
        for line in lines_of(release, form, decimals):
            typer.echo(line)


def lines_of(release: Any, form: o.Output, decimals: int) -> Iterator[str]:
    """The rows as CSV, as JSON Lines, or as columns of text."""
    import csv
    import io

    rows = (row for batch in release.to_batches(10_000) for row in batch.to_pylist())
    if form is o.Output.JSONL:
        for row in rows:
            yield json.dumps(row, ensure_ascii=False, default=str)
        return
    buffer = io.StringIO()
    text = csv.writer(buffer, lineterminator="", delimiter="," if form is o.Output.CSV else "\t")
    for row in itertools.chain([release.column_names], map(_cells(decimals), rows)):
        text.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _cells(decimals: int) -> Any:
    def cells(row: dict[str, Any]) -> list[str]:
        key = row["key"].decode(errors="replace") if isinstance(row["key"], bytes) else str(row["key"])
        return [key, f"{row['quantile']:g}", f"{row['value']:.{decimals}f}", f"{row['alpha']:.{decimals}f}"]

    return cells


def _show(release: Any, decimals: int) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table("key", *(f"q={q:g}" for q in dict.fromkeys(release["quantile"].to_pylist())), "± (noise, 95%)")
    for column in shown.columns[1:]:
        column.justify = "right"
    cells = _cells(decimals)
    rows = (cells(row) for row in release.slice(0, MOST_SHOWN * (len(shown.columns) - 2)).to_pylist())
    for key, group in itertools.groupby(rows, key=lambda row: row[0]):
        several = list(group)
        shown.add_row(key, *(row[2] for row in several), several[-1][3])
    console = Console(highlight=False, markup=False)
    console.print(shown)
    if len(shown.rows) * (len(shown.columns) - 2) < len(release):
        console.print(f"… the first {MOST_SHOWN:,} keys; --output FILE has them all")


def explain(estimator: "KeyedDPFrugal1U", release: Any, start: float, decimals: int) -> None:
    """What the numbers mean. From public values only, save the rows set aside, which are for the operator."""
    import pyarrow.compute as pc

    from dpfrugal.cli.stderr_notes import counted, notes

    claim = {name.decode(): text.decode() for name, text in release.schema.metadata.items()}
    keys = len(estimator.keys)
    notes.print(
        f"{claim['total']} per {claim['unit']} (replace-one), {counted(estimator.items, 'item')}, "
        f"{counted(keys, 'key')}; α: 95% bound on the noise of this release"
    )
    if estimator.discover_keys is not None:
        notes.print(f"Of that, {estimator.guarantee} for the values; {estimator.discover_keys} for discovering keys.")
    if estimator.set_aside:
        aside = f"{counted(estimator.set_aside, 'row')} exceeded the limit per person"
        notes.print(f"Not for publication: {aside} and {'was' if estimator.set_aside == 1 else 'were'} dropped.")
    if keys:
        step = 10.0**-decimals
        steps = pc.quantile(pc.abs(pc.subtract(release["value"], start)), 0.5)[0].as_py() / step
        if steps > estimator.items / keys / 10:
            notes.print(
                f"[yellow]note:[/] half of the values are more than {steps:,.0f} steps of {step:g} from the start, "
                f"with {estimator.items / keys:,.0f} items per key: they may not have converged. Use a nearer --start, "
                "fewer --decimals or more --rounds."
            )
    else:
        notes.print("[yellow]note:[/] no key has rows enough to be shown.")
