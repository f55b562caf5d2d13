"""``dpfrugal quantile --by`` on a table: quantiles for each key of a column, or of several."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfrugal.cli import options as o
from dpfrugal.cli.table.quantile_table import spent, table_parameters, texts
from dpfrugal.cli.table.table_input import file_set, reading
from dpfrugal.cli.table.table_options import Format, TableOptions, bytes_of
from dpfrugal.cli.table.table_output import MOST_SHOWN, Output, form_of, lines_of, write
from dpfrugal.cli.terminal.output_files import kept_if_unwritten
from dpfrugal.errors import ParameterError, TableError
from dpfrugal.outside_text import as_text, in_line
from dpfrugal.parameters import NullGroups

if TYPE_CHECKING:
    from rich.table import Table

    from dpfrugal.inputs.file_sets import FileSet

BESIDE_KEYS = ("quantile", "value", "lower", "upper", "rows", "reason")


def quantiles_of_groups(
    files: list[str],
    column: str | None,
    by: list[str],
    file_format: Format | None,
    options: o.EstimatorOptions,
    key_options: o.KeyOptions,
    table: TableOptions,
    *,
    null_keys: NullGroups,
    output: Path | None,
    to: Output | None,
    as_json: bool,
) -> None:
    """Read the files, release, write the table."""
    from dpfrugal.cli.terminal.progress import noise_progress
    from dpfrugal.cli.terminal.stderr_notes import explain_ledger
    from dpfrugal.estimators.table.quantiles_by import quantiles_by

    form = form_of(output, to, as_json=as_json)
    if column is None:
        raise ParameterError("--by needs --column, the column of numbers.")
    if table.header is False:
        raise ParameterError("--by names a column of the header; leave out --no-header.")
    guarantee, discovery = key_options.guarantees(options)
    ledger, parameters = options.ledger(), table_parameters(options, table)
    found = file_set(files, file_format, bytes_of(table.memory), table.header)
    types = _types(found, column, by)
    keys = None if key_options.keys is None else declared_keys(key_options.keys, by, types)
    with reading(found), noise_progress() as noised:
        release = quantiles_by(
            found, column, options.quantiles, guarantee, by=by, keys=keys, discover_keys=discovery, null_keys=null_keys,
            other=None if table.other is None else _label(table.other, types),
            max_keys_per_person=key_options.max_keys_per_person, counts=table.counts, **parameters,
            ledger=ledger, dataset=options.dataset, progress=noised,
        )  # fmt: skip
    with spent(ledger, options.dataset, guarantee):
        plain = in_plain_types(release)
        named = [name for name in plain.column_names if name not in BESIDE_KEYS]
        written = release if form is Output.PARQUET else plain
        cells: Any = lambda row: _cells(row, named)  # noqa: E731
        with kept_if_unwritten(lambda: list(lines_of(plain, Output.JSONL, cells)), ledger, options.dataset):
            write(written, form, output, cells, lambda: _shown(plain, named, options.quantiles))
        explain(release, len(options.quantiles))
        explain_ledger(ledger, options.dataset)


def declared_keys(path: Path, by: list[str], types: list[Any]) -> Any:
    """The keys of a file; those of several columns are columns of a CSV file with a header, or of Parquet or Arrow."""
    from dpfrugal.inputs.key_files import read_key_columns, read_keys

    return read_keys(path, by[0], types[0]) if len(by) == 1 else read_key_columns(path, by, types)


def _plain(kind: Any) -> Any:
    """The type of the values, where they are dictionary-encoded."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _label(text: str, types: list[Any]) -> Any:
    """The name of the group of other keys, as a key of these types."""
    import pyarrow as pa

    several: list[Any] = []
    with suppress(pa.ArrowException):
        several = [pa.array([text], pa.string()).cast(kind)[0].as_py() for kind in types]
    if not several:
        raise ParameterError(f"--other must be a key of the type of those of --by; {text!r} is not.")
    return several[0] if len(several) == 1 else tuple(several)


def _types(files: "FileSet", column: str, by: list[str]) -> list[Any]:
    """The types of the columns of keys: they are public."""
    first = next(files.batches(column, tuple(by)), None)
    if first is None:
        raise TableError(f"{files.name}: there are no rows.")
    return [_plain(first.schema.field(name).type) for name in by]


def in_plain_types(release: Any) -> Any:
    """The table with times as text, as Python has no type for some of them."""
    import numpy as np
    import pyarrow as pa

    for at, name in enumerate(release.column_names):
        if pa.types.is_temporal(release.column(name).type):
            times = release.column(name).to_numpy(zero_copy_only=False)
            text = [None if np.isnat(time) else str(time) for time in times]
            release = release.set_column(at, name, pa.array(text, pa.string()))
    return release


def _cells(row: dict[str, Any], keys: list[str]) -> list[str]:
    value, lower, upper = texts(row["value"], row["lower"], row["upper"])
    shown = {"quantile": f"{row['quantile']:g}", "value": value, "lower": lower, "upper": upper}
    shown |= {name: as_text(row[name]) for name in keys}
    return [shown.get(name, "" if cell is None else str(cell)) for name, cell in row.items()]


def _shown(release: Any, keys: list[str], quantiles: list[float]) -> "Table":
    """For a terminal: one line per key and quantile; the key, and how many rows it has, only on its first."""
    from rich.table import Table

    claim = {name.decode(): text.decode() for name, text in release.schema.metadata.items()}
    counted = ["rows (noisy)"] if "rows" in release.column_names else []
    ends = [f"{100 * float(claim['confidence']):g}% interval"] if "confidence" in claim else []
    table = Table(*map(in_line, keys), *counted)
    for title in ("quantile", "value", *ends):
        table.add_column(title, justify="right")
    for column in table.columns[len(keys) :]:
        column.justify = "right"
    for at, row in enumerate(release.slice(0, MOST_SHOWN * len(quantiles)).to_pylist()):
        cells = dict(zip(release.column_names, _cells(row, keys), strict=True))
        first = [in_line(cells[name]) for name in keys] + ([f"{row['rows']:,}"] if counted else [])
        again = at % len(quantiles) > 0
        interval = [f"{cells['lower']} to {cells['upper']}" if cells["lower"] else ""] if ends else []
        value = cells["value"] or "too few rows"
        table.add_row(*("" if again else cell for cell in first), cells["quantile"], value, *interval)
    return table


def explain(release: Any, quantiles: int) -> None:
    """What the numbers mean, from public values only."""
    import json

    from dpfrugal.cli.terminal.stderr_notes import counted, note, notes

    claim = {name.decode(): text.decode() for name, text in release.schema.metadata.items()}
    keys = len(release) // quantiles
    rows = f"{int(claim['items']):,} rows" if "items" in claim else "the number of rows is private"
    notes.print(f"{claim['total']} per {claim['unit']} ({claim['neighbours']}); {rows}, {counted(keys, 'key')}")
    if "discover_keys" in claim:
        notes.print(f"Of that, {claim['guarantee']} for the values; {claim['discover_keys']} for discovering keys.")
    shares = ", ".join(f"{part} {share:.0%}" for part, share in json.loads(claim["shares"]).items())
    whose = ""
    if "confidence" in claim:
        whose = f"; {100 * float(claim['confidence']):g}% intervals for the quantile of the {_whose(claim)}"
    notes.print(f"Shares of the guarantee: {shares}{whose}")
    for reason, times in Counter(release["reason"].drop_null().to_pylist()).items():
        note(f"{times:,} of {counted(len(release), 'value')} {'is' if times == 1 else 'are'} not shown: {reason}.")
    if not keys:
        note("no key has rows enough to be shown.")


def _whose(claim: dict[str, str]) -> str:
    return "population" if claim["interval_of"] == "population" else "group"
