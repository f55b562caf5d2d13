"""``--by`` with ``--algorithm dp-frugal-1u``: the walk for each key of a column, from a file."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfrugal.cli.table.table_input import one_path
from dpfrugal.cli.table.table_output import MOST_SHOWN, Output, form_of, lines_of, write
from dpfrugal.cli.terminal.output_files import kept_if_unwritten
from dpfrugal.errors import ParameterError, TableError
from dpfrugal.outside_text import as_text, in_line
from dpfrugal.parameters import integer

if TYPE_CHECKING:
    from rich.table import Table

    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.inputs.columns import Column
    from dpfrugal.privacy.guarantees import Guarantee

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
    to: Output | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Read a file, release, write the table."""
    from dpfrugal.cli.terminal.progress import noise_progress, progress
    from dpfrugal.cli.terminal.stderr_notes import charged, explain_ledger
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.estimators.keyed.walked_quantiles_by import walk_rows
    from dpfrugal.inputs.batches import read_ahead
    from dpfrugal.inputs.files import open_column
    from dpfrugal.inputs.key_files import read_keys

    form = form_of(output, to, as_json=as_json)
    if file == "-":
        raise ParameterError("--by is for files; for lines of key and value on standard input see dpfrugal watch --by.")
    integer("--rounds", rounds, 1)

    def walked(ledger: "Ledger | None", dataset: str | None) -> KeyedDPFrugal1U:
        table = open_column(one_path(file), column, file_format, (by,) if person is None else (by, person))
        if rounds > 1 and table.unit != "rows":
            raise ParameterError("--rounds is for Parquet and Arrow files, which say how many rows they have.")
        first, batches = _peeked(table, file)
        if rounds > 1 and not table.total:
            raise ParameterError("--rounds is for files that say how many rows they have; an Arrow stream does not.")
        declared = None if keys is None else read_keys(keys, by, first.column(1).type)
        given = options | {"ledger": ledger, "dataset": dataset}
        estimator = KeyedDPFrugal1U(quantiles, guarantee, keys=declared, **given)
        estimator.account.also_asked(column=table.name, by=by, source=Path(file).name)
        with charged(estimator.account), progress(table.name, table.total, table.unit) as made:

            def columns() -> Iterator[list[Any]]:
                for batch, advance in read_ahead(batches, MOST_WAITING):
                    made(advance, len(batch))
                    yield [batch.column(1), batch.column(0), *([] if person is None else [batch.column(2)])]

            walk_rows(estimator, columns(), [table.total * done // rounds for done in range(1, rounds)])
        return estimator

    if rounds > 1 and options["ledger"] is not None:
        walked(None, None)  # what the file will be refused for is found before the spend
    estimator = walked(options["ledger"], options["dataset"])
    with charged(estimator.account):
        if not estimator.items:
            raise TableError(f"{file}: there are no items to estimate a quantile of.")
        with noise_progress() as noised:
            release = estimator.release(noised)
        decimals = options["decimals"]
        lines = lambda: list(lines_of(release, Output.JSONL, _cells(decimals)))  # noqa: E731
        with kept_if_unwritten(lines, options["ledger"], options["dataset"]):
            write(release, form, output, _cells(decimals), lambda: _shown(release, decimals))
        explain(estimator, release, options["start"], options["decimals"])
        explain_ledger(options["ledger"], options["dataset"])


def _peeked(table: "Column", file: str) -> tuple[Any, Iterator[tuple[Any, int]]]:
    """The first batch, which tells the type of the keys, and all batches."""
    first = next(table.batches, None)
    if first is None:
        raise TableError(f"{file}: there are no items to estimate a quantile of.")
    return first[0], itertools.chain([first], table.batches)


def _cells(decimals: int) -> Callable[[dict[str, Any]], list[str]]:
    def cells(row: dict[str, Any]) -> list[str]:
        number = f".{decimals}f"
        return [
            as_text(row["key"]),
            f"{row['quantile']:g}",
            format(row["value"], number),
            format(row["alpha"], number),
        ]

    return cells


def _shown(release: Any, decimals: int) -> "Table":
    """One line per key."""
    from rich.table import Table

    quantiles = list(dict.fromkeys(release["quantile"].to_pylist()))
    shown = Table("key", *(f"q={q:g}" for q in quantiles), "± (noise, 95%)")
    for column in shown.columns[1:]:
        column.justify = "right"
    rows = [_cells(decimals)(row) for row in release.slice(0, MOST_SHOWN * len(quantiles)).to_pylist()]
    for first in range(0, len(rows), len(quantiles)):
        several = rows[first : first + len(quantiles)]
        shown.add_row(in_line(several[0][0]), *(row[2] for row in several), several[-1][3])
    return shown


def explain(estimator: "KeyedDPFrugal1U", release: Any, start: float, decimals: int) -> None:
    """What the numbers mean. From public values only, save the rows set aside, which are for the operator."""
    import pyarrow.compute as pc

    from dpfrugal.cli.terminal.stderr_notes import counted, note, notes
    from dpfrugal.estimators.keyed.release_table import NOISE_ALONE

    claim = {name.decode(): text.decode() for name, text in release.schema.metadata.items()}
    keys = len(estimator.keys)
    notes.print(
        f"{claim['total']} per {claim['unit']} (replace-one), {counted(estimator.items, 'item')}, "
        f"{counted(keys, 'key')}; α: {NOISE_ALONE}"
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
            note(
                f"half of the values are more than {steps:,.0f} steps of {step:g} from the start, "
                f"with {estimator.items / keys:,.0f} items per key: they may not have converged. Use a nearer --start, "
                "fewer --decimals or more --rounds."
            )
    else:
        note("no key has rows enough to be shown.")
