"""The picture of ``dpfrugal describe``: a box plot of each column, drawn from released values only."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfrugal.cli.table.quantile_table import known

if TYPE_CHECKING:
    from dpfrugal.estimators.table.describe import Description
    from dpfrugal.estimators.table.release import TableRelease

MOST_COLUMNS = 60  # more boxes than this are no picture


def draw(description: "Description", name: str, picture: Path) -> None:
    """One box per column, each on an axis of its own: columns have different units."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    columns = list(description.columns.items())[:MOST_COLUMNS]
    figure, several = plt.subplots(
        len(columns), 1, figsize=(8, 1.2 + 0.95 * len(columns)), layout="constrained", squeeze=False
    )
    for axes, (column, release) in zip(several[:, 0], columns, strict=True):
        _box(axes, release)
        axes.set_ylabel(_escaped(column), rotation=0, ha="right", va="center")
        axes.set_yticks([])
        axes.set_ylim(-0.75, 0.75)
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
    marks = "whiskers: 5% and 95%, box: quartiles, line: median"
    intervals = f"; orange: {100 * release.confidence:g}% intervals" if release.confidence else ""
    figure.suptitle(_escaped(f"{name}: {description.split}\n{marks}{intervals}"), fontsize=10)
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def _box(axes: Any, release: "TableRelease") -> None:
    """Whiskers, box and median, as far as they are known; above them the intervals."""
    found = {q: tuple(map(_number, rest)) for q, *rest in known(release)}
    value = {q: ends[0] for q, ends in found.items() if ends[0] is not None}
    if not value:
        axes.text(0.5, 0.5, "too few rows", transform=axes.transAxes, ha="center", va="center", color="gray")
        axes.set_xticks([])
        return
    low, first, middle, third, high = (value.get(q) for q in sorted(release.quantiles))
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


def _number(value: Any) -> Any:
    """What matplotlib can place on an axis: times as they are, durations and decimals as floats."""
    import numpy as np

    if value is None or isinstance(value, np.datetime64):
        return value
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    return float(value) if math.isfinite(value) else None


def _escaped(text: str) -> str:
    """Text from outside: no formulas."""
    return text.replace("$", r"\$")
