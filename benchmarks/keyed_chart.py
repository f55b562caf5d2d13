"""The benchmark of keys as one picture: rows per second above, bytes per key below, a panel for each set of keys."""

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.chart import OURS, PUBLIC

if TYPE_CHECKING:
    from benchmarks.keyed import Row


def draw(rows: "list[Row]", count: int, machine: str, path: Path) -> None:
    """Draw all sets of keys into ``path``."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    sets = list(dict.fromkeys((row.keys, row.law) for row in rows))
    figure, axes = plt.subplots(
        2, len(sets), figsize=(3.4 * len(sets), 9), sharey=True, sharex="row", layout="constrained"
    )
    for k, (keys, law) in enumerate(sets):
        panel = [row for row in rows if (row.keys, row.law) == (keys, law)]
        names, colours = [row.contender for row in panel], [OURS if row.private else PUBLIC for row in panel]
        rates = [count / min(row.cpu_seconds) / 1e6 if row.cpu_seconds else 0.0 for row in panel]
        sizes = [row.bytes_per_key for row in panel]
        upper, lower = (axes[0][k], rates, "{:.3g}", (0.1, 3000)), (axes[1][k], sizes, "{:,.0f}", (1, 3e7))
        for axis, figures, form, limits in (upper, lower):
            axis.set_xlim(*limits)
            bars = axis.barh(names, [f or limits[0] for f in figures], color=colours)
            axis.bar_label(bars, labels=[form.format(f) if f else "not run" for f in figures], padding=3)
            axis.set_xscale("log")
            axis.grid(axis="x", color="#e3e6e8")
            axis.set_axisbelow(True)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0][k].set_title(f"{keys:,} keys, {law}")
        axes[0][k].set_xlabel("million rows per second of the processor")
        axes[1][k].set_xlabel("bytes per key")
    axes[0][0].invert_yaxis()
    figure.suptitle(f"A 0.99-quantile per key of {count:,} rows ({machine})")
    named = ((OURS, "this library (private, ε = 1)"), (PUBLIC, "not private"))
    figure.legend(handles=[Patch(color=c, label=text) for c, text in named], loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)
