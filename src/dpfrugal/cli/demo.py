"""``dpfrugal demo``: private quantiles of a generated stream, with a picture of how they converge."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import integer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpfrugal.estimators.releases import SegmentRelease, WalkRelease

QUANTILES = (0.5, 0.9, 0.99)
DECIMALS = 3  # of the walk's grid; a coarser one converges sooner, with a larger standard deviation
RELEASES = 100
MOST_ITEMS = 200_000_000


def demo(
    items: Annotated[int, typer.Option(help="Length of the generated stream.")] = 10_000_000,
    epsilon: Annotated[float, typer.Option(help="ε of pure DP, for all quantiles and all releases together.")] = 1.0,
    output: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the generated latencies; noise cannot be seeded.", min=0)] = 1,
) -> None:
    """Private p50, p90 and p99 of ten million generated latencies beside the exact ones, with a picture.

    Both estimators see the same stream: PrivateQuantile, and the paper's DP-Frugal-1U, started at 0.
    """
    import numpy as np
    from rich.console import Console

    from dpfrugal.cli.progress import progress
    from dpfrugal.cli.stderr_notes import notes
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
    from dpfrugal.privacy.guarantees import PureDP

    integer("--items", items, RELEASES, MOST_ITEMS, shown_high=f"{MOST_ITEMS:,}")
    segments = PrivateQuantile(QUANTILES, PureDP(epsilon=epsilon))
    walk = DPFrugal1U(QUANTILES, PureDP(epsilon=epsilon), decimals=DECIMALS)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"--output must be a folder that can be written to; {output}: {error.strerror}.") from None
    latencies = np.empty(items)
    counted: list[SegmentRelease] = []
    walked: list[WalkRelease] = []
    with progress("private p50, p90, p99", items, "rows") as made:
        first = 0
        for end, batch in generated_latencies(release_times(items).tolist(), seed):
            latencies[first:end] = batch
            segments.update_many(batch)
            counted.append(segments.release(close=end == items))
            walk.update_many(batch)
            walked.append(walk.release())
            made(end - first, end - first)
            first = end
    exact = exact_quantiles(latencies)
    plain_console().print(table(exact, counted[-1], walked[-1], items))
    picture = output / "convergence.png"
    try:
        draw(counted, walked, exact, picture)
    except ImportError:
        notes.print("For the picture, install matplotlib: pip install 'dpfrugal[plot]'.")
    else:
        notes.print(f"Picture: {picture}")


def table(exact: list[float], counted: "SegmentRelease", walked: "WalkRelease", items: int) -> object:
    """The last release of each estimator beside the truth."""
    from rich.table import Table

    shown = Table(
        title=f"{items:,} latencies (ms); {RELEASES} releases each, all under {counted.guarantee}",
        caption="α: 95% bound on the noise of the last release; the walk's own standard deviation is larger",
    )
    for title in ("", "exact", "estimator", "private", "error", "95% interval or α"):
        shown.add_column(title, justify="left" if title == "estimator" else "right")
    alpha = walked.alpha(0.05, exact=True)
    for k, true in enumerate(exact):
        value, step, (low, high) = counted.values[k], walked.values[k], counted.intervals(0.95)[k]
        shown.add_row(
            *(f"p{100 * QUANTILES[k]:g}", f"{true:.3f}", "PrivateQuantile"),
            *(f"{value:.3f}", f"{value / true - 1:+.3%}", f"{low:.2f} to {high:.2f}"),
        )
        shown.add_row("", "", "DP-Frugal-1U", f"{step:.3f}", f"{step / true - 1:+.3%}", f"± {alpha:.3f}")
    return shown


def generated_latencies(ends: list[int], seed: int) -> "Iterator[tuple[int, NDArray[np.float64]]]":
    """Milliseconds with a median of 40 and a long right tail, in batches that end after the given numbers of items."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for first, end in itertools.pairwise([0, *ends]):
        yield end, 40.0 * rng.lognormal(0.0, 0.5, end - first)


def release_times(items: int) -> "NDArray[np.int64]":
    """Public times, denser at the start, where the estimators have not converged."""
    import numpy as np

    return np.unique(np.geomspace(min(1_000, items), items, RELEASES).round().astype(np.int64))


def exact_quantiles(latencies: "NDArray[np.float64]") -> list[float]:
    """The lower quantiles by the paper's definition: rank ⌊1 + q(n - 1)⌋ of the sorted items."""
    import numpy as np

    ranks = [int(q * (latencies.size - 1)) for q in QUANTILES]
    return [float(value) for value in np.partition(latencies, ranks)[ranks]]


def draw(counted: "list[SegmentRelease]", walked: "list[WalkRelease]", exact: list[float], picture: Path) -> None:
    """Every release of both estimators against the exact quantiles of the whole stream."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    times = [release.items for release in walked]
    top = 1.35 * max(exact)
    for k, true in enumerate(exact):
        for axes in (left, right):
            axes.axhline(true, color="black", linewidth=0.8, linestyle="--", label="exact" if k == 0 else None)
        intervals = [release.intervals(0.95)[k] for release in counted]
        lows, highs = ([min(max(end, 0), 2 * top) for end in ends] for ends in zip(*intervals, strict=True))
        label = f"p{100 * QUANTILES[k]:g}"
        left.fill_between(times, lows, highs, color=f"C{k}", alpha=0.25, linewidth=0)
        left.plot(times, [release.values[k] for release in counted], f"C{k}.-", markersize=4, label=label)
        right.plot(times, [release.values[k] for release in walked], f"C{k}.-", markersize=4, label=label)
    left.set_title("PrivateQuantile, with 95% intervals")
    right.set_title("DP-Frugal-1U, the paper's walk from 0")
    left.set_ylabel("latency (ms)")
    left.set_ylim(0, top)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("items")
    right.legend(loc="upper left", framealpha=1)
    figure.suptitle(
        f"{len(walked)} private releases of each estimator, {walked[-1].guarantee} for all releases of one together"
    )
    figure.savefig(picture, dpi=130)
    plt.close(figure)
