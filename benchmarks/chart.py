"""The comparison as one picture: a panel for each dataset, a bar for each contender, longer is faster."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.compare import Row

OURS, PRIVATE, PUBLIC = "#1b6ca8", "#d1812c", "#9aa5ad"
SLOWEST = 0.2  # million items/s, where the axes begin
PANELS = ("D5", "D5×1000", "D1×1000", "D6")


def colour(row: "Row") -> str:
    """The library's own, private peers, and the rest."""
    if row.contender.startswith("dpfrugal"):
        return OURS
    return PRIVATE if row.private else PUBLIC


def label(row: "Row", rate: float) -> str:
    """Three digits, or that there is no rate."""
    return "failed" if row.failure else f"{rate:,.3g}" if rate < 1000 else f"{rate:,.0f}"


def draw(rows: "list[Row]", machine: str, path: Path) -> None:
    """Draw the shuffled arrays into ``path``."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    panels = [[row for row in rows if row.dataset == name and row.order == "shuffled"] for name in PANELS]
    figure, axes = plt.subplots(1, len(panels), figsize=(17, 7.5), sharey=True, sharex=True, layout="constrained")
    for axis, name, panel in zip(axes, PANELS, panels, strict=True):
        rates = [SLOWEST if row.failure else median(row.rates) / 1e6 for row in panel]
        bars = axis.barh([row.contender for row in panel], rates, color=[colour(row) for row in panel])
        axis.bar_label(bars, labels=[label(row, rate) for row, rate in zip(panel, rates, strict=True)], padding=3)
        axis.set_xscale("log")
        axis.set_xlim(SLOWEST, 50_000)
        axis.set_title(name)
        axis.set_xlabel("million items per second (log scale)")
        axis.grid(axis="x", color="#e3e6e8")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    figure.suptitle(f"A 0.99-quantile of a shuffled array: items per second ({machine})")
    named = ((OURS, "this library (private, ε = 1)"), (PRIVATE, "private, ε = 1"), (PUBLIC, "not private"))
    figure.legend(handles=[Patch(color=c, label=text) for c, text in named], loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
