"""The options of ``dpfrugal watch``: how a line is read, and what only windows have."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dpfrugal.cli.options import KEYS, PRIVACY, EstimatorOptions
from dpfrugal.cli.table.table_options import Confidence, Counts, WhoseNeighbours
from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.inputs.log_lines import LineFormat

LINES, WINDOWS = "Lines", "Windows"
NO_NAME: Final = ""  # of --by without a name


@dataclass(frozen=True)
class LineOptions:
    """How a line is read."""

    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="[NAME]",
            help="A quantile for each key: the field NAME of --json-lines and --logfmt. Without a name each line is a "
            "key and a number, with a tab or one blank between them.",
            rich_help_panel=KEYS,
        ),
    ] = None
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help="Each line is a JSON object.", rich_help_panel=LINES)
    ] = False
    logfmt: Annotated[
        bool, typer.Option("--logfmt", help="Each line is pairs of name=value.", rich_help_panel=LINES)
    ] = False
    value: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The field that has the number, such as duration_ms.", rich_help_panel=LINES),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The field that has a person's id: of each person at most --max-items-per-person items of a window "
            "count, chosen at random.",
            rich_help_panel=LINES,
        ),
    ] = None
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Each line has this regular expression in it, with groups (?P<value>…) and perhaps (?P<key>…), for a "
            "quantile for each key, and (?P<person>…).",
            rich_help_panel=LINES,
        ),
    ] = None

    def format(self) -> "LineFormat":
        """How a line is read."""
        from dpfrugal.inputs.line_formats import json_lines, logfmt_lines, pattern_lines, plain_lines

        if self.json_lines + self.logfmt + (self.pattern is not None) > 1:
            raise ParameterError("--json-lines, --logfmt and --pattern are three ways to read a line: use one of them.")
        if self.json_lines or self.logfmt:
            if self.value is None or self.by == NO_NAME:
                raise ParameterError("--json-lines and --logfmt need --value NAME, and --by NAME where there are keys.")
            read = json_lines if self.json_lines else logfmt_lines
            return read(self.value, self.by, self.person)
        if self.value is not None or self.person is not None:
            raise ParameterError("--value and --person name fields of --json-lines or --logfmt.")
        if self.by not in (None, NO_NAME):
            raise ParameterError(
                "--by NAME names a field of --json-lines or --logfmt; for lines of a key and a number use --by alone."
            )
        if self.pattern is None:
            return plain_lines(keyed=self.by is not None)
        form = pattern_lines(self.pattern)
        if self.by is not None and not form.keyed:
            raise ParameterError("--by needs a group (?P<key>…) in --pattern.")
        return form

    @property
    def plain(self) -> bool:
        """Whether lines are those that every algorithm reads."""
        return self == LineOptions(by=self.by) and self.by in (None, NO_NAME)


@dataclass(frozen=True)
class WindowOptions:
    """What only windows have."""

    neighbours: WhoseNeighbours = "replace"
    windows: Annotated[
        int | None,
        typer.Option(
            help="The guarantee covers a person in so many windows together (24: a day of hours), and --ledger is "
            "charged again after as many. Without it, in each window by itself, and the ledger is charged once.",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    hold: Annotated[
        int | None,
        typer.Option(
            help="Hold at most so many items of a window, beyond that a uniform sample. Default: 4 million, with keys "
            "16 million.",
            rich_help_panel=WINDOWS,
        ),
    ] = None
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals/--no-intervals",
            help="An interval for each value, which costs half of the guarantee.",
            rich_help_panel=WINDOWS,
        ),
    ] = True
    confidence: Confidence = 0.95
    low: Annotated[
        float | None,
        typer.Option(help="A public lower bound, never needed. Not from the data.", rich_help_panel=WINDOWS),
    ] = None
    high: Annotated[
        float | None,
        typer.Option(help="A public upper bound, never needed. Not from the data.", rich_help_panel=WINDOWS),
    ] = None
    other: Annotated[
        str | None,
        typer.Option(help="One more key with this name, of all rows whose key is not shown.", rich_help_panel=KEYS),
    ] = None
    counts: Counts = True

    def refuse(self, algorithm: str) -> None:
        """Another algorithm has none of them."""
        defaults = WindowOptions()
        for field in fields(self):
            if getattr(self, field.name) != getattr(defaults, field.name):
                raise ParameterError(f"--{field.name} is for windows; --algorithm {algorithm} has none.")

    def parameters(self, options: EstimatorOptions) -> dict[str, Any]:
        """What both estimators take besides the quantiles, the guarantee, the keys and the ledger."""
        return {
            "neighbours": self.neighbours,
            "windows": self.windows,
            "intervals": self.intervals,
            "confidence": self.confidence,
            "low": self.low,
            "high": self.high,
            "decimals": options.decimals,
            "max_items_per_person": options.max_items_per_person,
            "nan_policy": options.nan_policy,
        }
