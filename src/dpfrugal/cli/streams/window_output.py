"""What ``watch`` shows of windows: lines for a pipe, JSON, or a table on a terminal that is drawn anew each time.

All of it is public: released values and intervals, declared or discovered keys, and the ends of periods. Sparklines are
drawn from released values only.
"""

import math
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dpfrugal.cli.table.quantile_table import known, record, texts
from dpfrugal.estimators.table.release import RELATIONS
from dpfrugal.outside_text import as_text, in_json, in_line

if TYPE_CHECKING:
    from rich.table import Table

SPARKS: Final = "▁▂▃▄▅▆▇█"
NO_SPARK: Final = "·"
SHOWN_WINDOWS: Final = 24


def lines_of_window(release: Any, end: str) -> list[str]:
    """Columns for a pipe: the end of the period, the number of items, and each value with its interval."""
    cells = [end, "" if release.items is None else str(release.items)]
    for _, *found in known(release):
        cells += texts(*found)[: 1 if release.lower is None else 3]
    return ["\t".join(cells)]


def json_of_window(release: Any, end: str) -> list[str]:
    """One object."""
    return [in_json({"end": end} | record(release))]


def lines_of_keys(table: Any, end: str, quantiles: int) -> list[str]:
    """For each key: the end of the period, the key, its noisy number of rows, and each value with its interval."""
    found = table.to_pylist()
    lines = []
    for first in range(0, len(found), quantiles):
        row = found[first]
        cells = [end, in_line(row["key"]), str(row.get("rows", ""))]
        for each in found[first : first + quantiles]:
            cells += texts(each["value"], each["lower"], each["upper"])[: 3 if has_intervals(table) else 1]
        lines.append("\t".join(cells))
    return lines


def json_of_keys(table: Any, end: str) -> list[str]:
    """One object for each key and quantile."""
    return [in_json({"end": end} | _finite(row), default=as_text) for row in table.to_pylist()]


def has_intervals(table: Any) -> bool:
    """Whether a table of keys was asked for with intervals."""
    return b"confidence" in table.schema.metadata


def claim_of(release: Any) -> str:
    """The guarantee, whose change it hides, and how."""
    if not hasattr(release, "schema"):
        return f"{release.guarantee} per {release.unit} ({RELATIONS[release.neighbours]})"
    total, unit, neighbours = (release.schema.metadata[name].decode() for name in (b"total", b"unit", b"neighbours"))
    return f"{total} per {unit} ({neighbours})"


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value in (math.inf, -math.inf) else value for name, value in row.items()}


def sparkline(values: "deque[float | None]") -> str:
    """The last windows as bars from the lowest to the highest value shown.

    >>> sparkline(deque([1.0, 2.0, None, 8.0]))
    '▁▂·█'
    """
    there = [value for value in values if value is not None]
    low, high = min(there, default=0.0), max(there, default=0.0)

    def bar(value: float | None) -> str:
        if value is None:
            return NO_SPARK
        return SPARKS[round((value - low) / (high - low) * (len(SPARKS) - 1)) if high > low else len(SPARKS) // 2]

    return "".join(map(bar, values))


class LiveTable:
    """The last window of each key on a terminal, redrawn in place; ``stop`` leaves the last one there."""

    def __init__(self, period: str) -> None:
        from rich.live import Live

        from dpfrugal.cli.terminal.stderr_notes import plain_console

        self._period, self._windows = period, 0
        self._console = plain_console()
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="ellipsis")
        self._past: dict[tuple[str, float], deque[float | None]] = {}

    def show(self, release: Any, end: str) -> None:
        """The window that has ended."""
        self._windows += 1
        if self._windows == 1:
            self._live.start()
        self._live.update(self._table(release, end), refresh=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While something else is printed on the terminal, which goes above the table."""
        if self._live.is_started:
            self._live.update("", refresh=True)
            self._live.stop()
            yield
            self._live.start()
        else:
            yield

    def stop(self) -> None:
        """Leave the table where it is."""
        self._live.stop()

    def _table(self, release: Any, end: str) -> "Table":
        from rich.table import Table

        keyed = hasattr(release, "schema")
        items = "" if keyed or release.items is None else f", {release.items:,} items"
        table = Table(title=f"window {self._windows}, to {end}{items}", title_justify="left")
        table.caption, table.caption_justify = claim_of(release), "left"
        if keyed:
            table.add_column("key")
        for title in ("quantile", "value", *([self._interval_title(release)] if self._with_ends(release) else [])):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column(f"last {SHOWN_WINDOWS} windows", no_wrap=True)
        before, most = None, max(3, self._console.size.height - 8)
        rows = list(_rows(release))
        for key, q, value, low, high in rows[:most]:
            past = self._past.setdefault((key, q), deque(maxlen=SHOWN_WINDOWS))
            past.append(float(value) if value is not None and math.isfinite(value) else None)
            shown = texts(value, low, high)
            ends = [f"{shown[1]} to {shown[2]}" if value is not None else ""] if self._with_ends(release) else []
            first = [in_line(key) if key != before else ""] if keyed else []
            table.add_row(*first, f"{q:g}", shown[0] or "too few", *ends, sparkline(past))
            before = key
        if len(rows) > most:
            table.caption += f"\n{len(rows) - most:,} more rows: pipe the output, or use --json"
        return table

    @staticmethod
    def _with_ends(release: Any) -> bool:
        return has_intervals(release) if hasattr(release, "schema") else release.lower is not None

    @staticmethod
    def _interval_title(release: Any) -> str:
        keyed = hasattr(release, "schema")
        confidence = float(release.schema.metadata[b"confidence"]) if keyed else release.confidence
        return f"{100 * confidence:g}% interval"


def _rows(release: Any) -> Iterator[tuple[str, float, Any, Any, Any]]:
    """Key, quantile, value and interval; None where there are too few items to tell."""
    if not hasattr(release, "schema"):
        yield from (("", *found) for found in known(release))
        return
    for row in release.to_pylist():
        yield str(row["key"]), row["quantile"], row["value"], row["lower"], row["upper"]


def reasons_of_keys(release: Any) -> list[str]:
    """Why values are missing: each reason once, with the quantile of which it is true."""
    pairs = zip(release["reason"].to_pylist(), release["quantile"].to_pylist(), strict=True)
    return [
        reason.replace("too few rows", f"too few rows for q={q:g}", 1) for reason, q in dict.fromkeys(pairs) if reason
    ]


def is_live(*, as_json: bool) -> bool:
    """Whether the output is a terminal that a table can be drawn on."""
    return not as_json and sys.stdout.isatty()
