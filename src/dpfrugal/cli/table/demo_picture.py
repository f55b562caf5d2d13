"""The picture of ``dpfrugal demo``: the day, and private values with their intervals over the exact ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfrugal.cli.demo import QUANTILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(
    generated: Any,
    answers: list[tuple[str, float, Any, Any, Any]],
    exact: dict[tuple[str, float], int],
    total: float,
    picture: Path,
) -> None:
    """The rhythm of the day in exact numbers; what is released of it; and how far that is off."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    middle.sharey(left)
    _day(left, generated)
    names = list(dict.fromkeys(name for name, *_ in answers))
    for k, q in enumerate(QUANTILES):
        label: str | None = f"p{100 * q:g}"
        for name, asked, value, low, high in answers:
            if asked != q or (name, q) not in exact:
                continue
            place, true = names.index(name) + 0.24 * (k - 1), exact[name, q]
            middle.plot([place - 0.1, place + 0.1], [true] * 2, color="black", linewidth=1.4, zorder=3)
            if value is None:
                continue
            middle.plot(place, value, "o", color=f"C{k}", markersize=5, label=label)
            percent = [100 * (end / true - 1) for end in (value, low, high)]
            right.vlines(place, percent[1], percent[2], color=f"C{k}", linewidth=5, alpha=0.4)
            right.plot(place, percent[0], "o", color=f"C{k}", markersize=5)
            label = None
    known = {name for name, _, value, _, _ in answers if value is not None}
    for axes in (middle, right):
        for name in names:
            if name not in known:
                said = {"transform": axes.get_xaxis_transform(), "ha": "center", "fontsize": 8, "color": "gray"}
                axes.text(names.index(name), 0.02, "too few\nrows", **said)
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.6, len(names) - 0.4)
    middle.plot([], [], color="black", linewidth=1.4, label="exact")
    middle.set_title(f"Private values over exact ones (ε={total:g} in all)")
    middle.legend(loc="upper left", ncols=2)
    right.axhline(0, color="black", linewidth=1.4)
    right.set_ylabel("difference from the exact quantile (%)")
    right.set_title("The same with 95% intervals")
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
    axes.set_title("The file: each half hour (exact, not released)")
