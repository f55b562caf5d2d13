"""The options of a table: of ``dpfrugal quantile``, and of ``describe``, which shares most of them."""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import typer

from dpfrugal.cli.options import KEYS, PRIVACY, TABLE
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.parameters import Neighbours

UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30}
LEAST_MEMORY: Final = 10**6

Format = Literal["parquet", "csv", "ndjson", "arrow"]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="Parquet, CSV, JSON Lines or Arrow files, folders of these or patterns such as 'logs/*.parquet'; text may "
        "be compressed (.gz, .zst). For standard input: -",
    ),
]
FileFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="The files' format: parquet, csv, ndjson or arrow. Default: found from their content or name.",
    ),
]
WhoseNeighbours = Annotated[
    Neighbours,
    typer.Option(
        help="What the guarantee hides: that a row was replaced by another (the number of rows is public), or that it "
        "is there at all (the number is private).",
        rich_help_panel=PRIVACY,
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        help="A column of person ids: of each person at most --max-items-per-person rows count, chosen at random.",
        rich_help_panel=PRIVACY,
    ),
]
Counts = Annotated[
    bool,
    typer.Option(
        "--counts/--no-counts",
        help="A noisy number of rows for each key, which costs a tenth of the guarantee.",
        rich_help_panel=KEYS,
    ),
]
Confidence = Annotated[float, typer.Option(help="How likely an interval holds the quantile.", rich_help_panel=TABLE)]
IntervalsOf = Annotated[
    IntervalOf,
    typer.Option(
        help="Whose quantile an interval holds: that of the population of which the rows are a sample, or that of the "
        "rows themselves.",
        rich_help_panel=TABLE,
    ),
]
Memory = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Hold the column if it takes no more than this (500MB, 2GB); otherwise read the files again. Of standard "
        "input that takes more, a uniform random sample of rows is used.",
        rich_help_panel=TABLE,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        show_default=False,
        help="Whether CSV files have a header line. Default: yes if a column is named; else they are bare numbers.",
        rich_help_panel=TABLE,
    ),
]
DEFAULT_MEMORY: Final = "1GB"


@dataclass(frozen=True)
class TableOptions:
    """What only a table has."""

    neighbours: WhoseNeighbours = "replace"
    person: Person = None
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals/--no-intervals",
            help="An interval for each value, which costs half of the guarantee.",
            rich_help_panel=TABLE,
        ),
    ] = True
    confidence: Confidence = 0.95
    interval_of: IntervalsOf = "population"
    low: Annotated[
        str | None,
        typer.Option(
            help="A public lower bound, never needed: smaller numbers count as this one. Not from the data.",
            rich_help_panel=TABLE,
        ),
    ] = None
    high: Annotated[
        str | None,
        typer.Option(
            help="A public upper bound, never needed: larger numbers count as this one. Not from the data.",
            rich_help_panel=TABLE,
        ),
    ] = None
    memory: Memory = DEFAULT_MEMORY
    header: Header = None
    other: Annotated[
        str | None,
        typer.Option(help="One more group with this name, of all rows whose key is not shown.", rich_help_panel=KEYS),
    ] = None
    counts: Counts = True


def bytes_of(text: str) -> int:
    """A size as people write it.

    >>> bytes_of("2GB"), bytes_of("1.5 MiB")
    (2000000000, 1572864)
    """
    found = re.fullmatch(r"([0-9_]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", text.strip().lower())
    size = int(float(found[1]) * UNITS.get(found[2], 0)) if found else 0
    if size < LEAST_MEMORY:
        raise ParameterError(f"--memory must be a size of at least 1MB such as 500MB or 2GB; {text!r} is not.")
    return size
