"""The picture of ``describe``: a box plot of each column, drawn from released values only."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpfrugal.estimators.display.answers import Answer
from dpfrugal.estimators.display.plots import place_of, plain_text, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_COLUMNS = 60  # more boxes than this are no picture


def box_plots(columns: Mapping[str, Sequence[Answer]], title: str, confidence: float | None) -> "Figure":
    """One box per column, each on an axis of its own: columns have different units."""
    drawn = list(columns.items())[:MOST_COLUMNS]
    figure, several = pyplot().subplots(
        len(drawn), 1, figsize=(8, 1.2 + 0.95 * len(drawn)), layout="constrained", squeeze=False
    )
    for axes, (column, answers) in zip(several[:, 0], drawn, strict=True):
        _box(axes, answers)
        axes.set_ylabel(plain_text(column), rotation=0, ha="right", va="center")
        axes.set_yticks([])
        axes.set_ylim(-0.75, 0.75)
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
    marks = "whiskers: 5% and 95%, box: quartiles, line: median"
    intervals = f"; orange: {100 * confidence:g}% intervals" if confidence else ""
    figure.suptitle(plain_text(f"{title}\n{marks}{intervals}"), fontsize=10)
    made: Figure = figure
    return made


def _box(axes: Any, answers: Sequence[Answer]) -> None:
    """Whiskers, box and median, as far as they are known; above them the intervals."""
    found = {
        each.quantile: (None, None, None)
        if each.reason
        else (place_of(each.value), place_of(each.lower), place_of(each.upper))
        for each in answers
    }
    value = {q: ends[0] for q, ends in found.items() if ends[0] is not None}
    if not value:
        axes.text(0.5, 0.5, "too few rows", transform=axes.transAxes, ha="center", va="center", color="gray")
        axes.set_xticks([])
        return
    low, first, middle, third, high = (value.get(q) for q in sorted(found))
    for inner, outer in ((first, low), (third, high)):
        if inner is not None and outer is not None:
            axes.plot([inner, outer], [0, 0], color="C0", linewidth=1.5)
            axes.plot([outer, outer], [-0.15, 0.15], color="C0", linewidth=1.5)
    if first is not None and third is not None:
        axes.fill_betweenx([-0.3, 0.3], [first] * 2, [third] * 2, facecolor="C0", alpha=0.3, edgecolor="C0")
    if middle is not None:
        axes.plot([middle, middle], [-0.3, 0.3], color="C0", linewidth=2.5)
    for _, lower, upper in found.values():
        if lower is not None and upper is not None:
            axes.fill_betweenx([0.42, 0.62], [lower] * 2, [upper] * 2, facecolor="C1", edgecolor="C1")
    if not hasattr(next(iter(value.values())), "dtype"):
        spread = max(value.values()) - min(value.values())
        if min(value.values()) > 0 and spread and max(value.values()) / min(value.values()) > 100:
            axes.set_xscale("log")
