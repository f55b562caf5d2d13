"""The picture of ``dpfrugal demo``: the day, and private values with their intervals over the exact ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfrugal.cli.demo import ALL, QUANTILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(
    generated: Any,
    answers: list[tuple[str, float, Any, Any, Any]],
    exact: dict[tuple[str, float], int],
    total: float,
    picture: Path,
) -> None:
    """Left: the rhythm of the day in the exact numbers. Right: what is released of it."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(2, 3), sharey=True
    )
    _day(left, generated)
    names = list(dict.fromkeys(name for name, *_ in answers))
    for k, q in enumerate(QUANTILES):
        label = f"p{100 * q:g}"
        for name, asked, value, low, high in answers:
            if asked != q:
                continue
            place = names.index(name) + 0.24 * (k - 1)
            if (name, q) in exact:
                right.plot([place - 0.1, place + 0.1], [exact[name, q]] * 2, color="black", linewidth=1.4, zorder=3)
            if value is not None:
                right.vlines(place, low, high, color=f"C{k}", linewidth=6, alpha=0.4)
                right.plot(place, value, "o", color=f"C{k}", markersize=4.5, label=label if name == ALL else None)
    shown = {name for name, _, value, _, _ in answers if value is not None}
    for name in set(names) - shown:
        right.text(names.index(name), 12, "too few\nrows", ha="center", va="bottom", fontsize=8, color="gray")
    right.plot([], [], color="black", linewidth=1.4, label="exact")
    right.set_xticks(range(len(names)), names)
    right.set_title(f"Released: private values with 95% intervals (ε={total:g} in all)")
    right.legend(loc="upper left", ncols=2)
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def _day(axes: "Axes", generated: Any) -> None:
    """The exact quantiles of each half hour."""
    import numpy as np

    times, latencies = generated["time"].to_numpy(), generated["ms"].to_numpy()
    half_hours = ((times - times[0].astype("datetime64[D]")) // np.timedelta64(30, "m")).astype(int)
    groups = np.split(latencies, np.searchsorted(half_hours, range(1, 48)))
    hours = np.arange(48) / 2 + 0.25
    for k, q in enumerate(QUANTILES):
        values = [np.quantile(group, q) if group.size else np.nan for group in groups]
        axes.plot(hours, values, color=f"C{k}", label=f"p{100 * q:g}")
    axes.set_yscale("log")
    axes.set_xlabel("hour of the day")
    axes.set_ylabel("latency (ms)")
    axes.set_title("The file: every half hour (exact, not released)")
