"""``dpfrugal demo``: the main job on a generated stream, with a picture of the private estimates converging."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpfrugal.release import WalkRelease

QUANTILES = (0.5, 0.9, 0.99)
DECIMALS = 3  # a coarser grid would arrive earlier and jitter more
RELEASES = 100
MOST_ITEMS = 200_000_000


def demo(
    items: Annotated[int, typer.Option(help="Length of the generated stream.")] = 10_000_000,
    epsilon: Annotated[float, typer.Option(help="ε of pure DP, for all quantiles and all releases together.")] = 1.0,
    output: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the generated latencies; noise cannot be seeded.", min=0)] = 1,
) -> None:
    """Private p50, p90 and p99 of ten million request latencies, beside the exact ones, with a picture."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from dpfrugal.cli.terminal import notes, progress
    from dpfrugal.dp_frugal import DPFrugal1U
    from dpfrugal.guarantees import PureDP

    if not RELEASES <= items <= MOST_ITEMS:
        raise ParameterError(f"--items must be between {RELEASES} and {MOST_ITEMS:,}; {items} is not.")
    estimator = DPFrugal1U(QUANTILES, PureDP(epsilon=epsilon), decimals=DECIMALS)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"--output must be a folder that can be written to; {output}: {error.strerror}.") from None
    latencies = np.empty(items)
    releases: list[WalkRelease] = []
    with progress("private p50, p90, p99", items, "rows") as made:
        first = 0
        for end, batch in generated_latencies(release_times(items).tolist(), seed):
            latencies[first:end] = batch
            estimator.update_many(batch)
            releases.append(estimator.release())
            made(end - first, end - first)
            first = end
    last = releases[-1]
    exact = exact_quantiles(latencies)
    table = Table(title=f"{items:,} latencies (ms); {len(releases)} releases under {last.guarantee} in all")
    for title in ("quantile", "private", "exact", "error", "α of the noise (95%)"):
        table.add_column(title, justify="right")
    for q, private, true in zip(QUANTILES, last.values, exact, strict=True):
        figures = (
            f"{private:.3f}",
            f"{true:.3f}",
            f"{private / true - 1:+.2%}",
            f"± {last.alpha(0.05, exact=True):.3f}",
        )
        table.add_row(f"p{100 * q:g}", *figures)
    Console(highlight=False).print(table)
    picture = output / "convergence.png"
    try:
        draw(releases, exact, picture)
    except ImportError:
        notes.print("For the picture, install matplotlib: pip install 'dpfrugal[plot]'.")
    else:
        notes.print(f"Picture: {picture}")


def generated_latencies(ends: list[int], seed: int) -> "Iterator[tuple[int, NDArray[np.float64]]]":
    """Milliseconds, with a median of 40 and a long right tail, in batches that end at the given times."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for first, end in itertools.pairwise([0, *ends]):
        yield end, 40.0 * rng.lognormal(0.0, 0.5, end - first)


def release_times(items: int) -> "NDArray[np.int64]":
    """Public times, denser at the start, where the walk is still on its way."""
    import numpy as np

    return np.unique(np.geomspace(min(1_000, items), items, RELEASES).round().astype(np.int64))


def exact_quantiles(latencies: "NDArray[np.float64]") -> list[float]:
    """The lower quantiles by the paper's definition: rank ⌊1 + q(n - 1)⌋ of the sorted items."""
    import numpy as np

    ranks = [int(q * (latencies.size - 1)) for q in QUANTILES]
    return [float(value) for value in np.partition(latencies, ranks)[ranks]]


def draw(releases: "list[WalkRelease]", exact: list[float], picture: Path) -> None:
    """Every release of the run against the exact quantiles of the whole stream."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    counts = [release.items for release in releases]
    for k, (q, true) in enumerate(zip(QUANTILES, exact, strict=True)):
        axes.axhline(true, color=f"C{k}", linewidth=1, linestyle="--")
        axes.plot(counts, [release.values[k] for release in releases], color=f"C{k}", marker=".", label=f"p{100 * q:g}")
    axes.plot([], [], color="grey", linewidth=1, linestyle="--", label="exact, whole stream")
    axes.set_xscale("log")
    axes.set_xlabel("items")
    axes.set_ylabel("latency (ms)")
    axes.set_ylim(bottom=0)
    axes.set_title(f"DP-Frugal-1U: {len(releases)} private releases, {releases[-1].guarantee} for all of them together")
    axes.legend(loc="upper left", framealpha=1)
    figure.savefig(picture, dpi=150)
    plt.close(figure)
