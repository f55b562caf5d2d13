"""The pictures, in the paper's arrangement: mean relative error over the repetitions, with its standard error."""

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dpfrugal.paper.accuracy import BETA
from dpfrugal.paper.claims import SYMBOLS, Frequency, starts_in
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, CONVENTIONS, ON_GRID, OWN_COUNTS
from dpfrugal.paper.results import Row
from dpfrugal.paper.settings import ALGORITHMS, FULL_NAMES, PANELS
from dpfrugal.paper.summary import Point

COLOURS: Final = {AS_PUBLISHED: "#D55E00", ON_GRID: "#0072B2", OWN_COUNTS: "#009E73"}  # Okabe and Ito's
MARKERS: Final = {"L": "o", "G": "s", "ρ": "^", "PrivateQuantile": "D"}
WIDTH: Final = 10.5
STYLE: Final = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "errorbar.capsize": 2.5,
    "lines.markersize": 5,
    "svg.hashsalt": "dpfrugal",
}
Picture = dict[str, bytes]  # by format: png, svg


def drawn(size: tuple[float, float], draw: Callable[[Any], None]) -> Picture:
    """What ``draw`` puts on a figure of this size in inches, as PNG and SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context(STYLE):
        figure = plt.figure(figsize=size, layout="constrained")
        draw(figure)
        for axes in figure.axes:
            axes.minorticks_off()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # arranged once, not for every format
        picture = {}
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            content = io.BytesIO()
            figure.savefig(content, format=kind, dpi=150, metadata=metadata)
            picture[kind] = content.getvalue()
        plt.close(figure)
    return picture


def short_count(items: float) -> str:
    """10M for ten million, 100k for a hundred thousand.

    >>> short_count(75_000_000), short_count(7_500), short_count(750)
    ('75M', '7.5k', '750')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if items >= unit:
            return f"{items / unit:g}{letter}"
    return f"{items:g}"


def label_of(figure: str, point: Point) -> str:
    """The value of the panel's parameter."""
    value = getattr(point.setting, PANELS[figure].varied)
    return short_count(value) if PANELS[figure].varied == "items" else f"{value:g}"


def draw_series(axes: Any, places: Sequence[float], points: list[Point], **options: Any) -> None:
    """Every repetition as a pale dot, their mean with its standard error."""
    colour = COLOURS[points[0].convention]
    for place, point in zip(places, points, strict=True):
        axes.plot([place] * len(point.errors), point.errors, ".", color=colour, alpha=0.25, markersize=4, zorder=1)
    means, bars = [point.mean for point in points], [point.standard_error for point in points]
    axes.errorbar(places, means, yerr=bars, color=colour, linewidth=1.2, zorder=3, **options)


def draw_panel(axes: Any, figure: str, points: list[Point]) -> None:
    """One panel: both conventions, and the error of the noise alone."""
    for shift, convention in zip((-0.06, 0.06), CONVENTIONS, strict=True):
        mine = [point for point in points if point.convention == convention]
        if not mine:
            continue
        places = [k + shift for k in range(len(mine))]
        draw_series(axes, places, mine, marker="o" if convention == AS_PUBLISHED else "s", label=convention)
        noise = [point.noise_alone for point in mine]
        axes.plot(places, noise, ":", color=COLOURS[convention], linewidth=1.2, label=f"noise alone, {convention}")
        axes.set_xticks(range(len(mine)), [label_of(figure, point) for point in mine])
    axes.set_yscale("log")
    axes.set_title(f"({figure[1]}) {panel_title(figure)}")
    axes.set_xlabel(axis_title(figure))


def ordered(axes: Any) -> tuple[list[Any], list[str]]:
    """The entries of a legend, blank ones last: matplotlib puts those of plain lines first."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: not labels[k].strip())
    return [handles[k] for k in order], [labels[k] for k in order]


def panel_title(figure: str) -> str:
    """The paper's caption of a panel."""
    titles = {"epsilon": "privacy budget", "quantile": "quantile", "items": "stream length"}
    return titles.get(PANELS[figure].varied, SYMBOLS[PANELS[figure].varied])


def axis_title(figure: str) -> str:
    """The symbol of the varied parameter."""
    return SYMBOLS[PANELS[figure].varied]


def panels(sweeps: dict[str, list[Point]], throughput: list[Row]) -> Picture:
    """Figure 1, 2 or 3: its panels in a row and, for Figure 1, the throughput below."""

    def draw(figure: Any) -> None:
        grid = figure.add_gridspec(2 if sweeps and throughput else 1, 3 if throughput else len(sweeps))
        first = None
        for column, (name, points) in enumerate(sweeps.items()):
            axes = figure.add_subplot(grid[0, column], sharey=first)
            draw_panel(axes, name, points)
            first = first or axes
            if column == 0:
                axes.set_ylabel("relative error")
            else:
                axes.tick_params(labelleft=False)
        if throughput:
            draw_throughput(figure, [grid[-1, 1], grid[-1, 2]], throughput)
        if first is None:
            return
        labels = [*CONVENTIONS, *(f"noise alone, {convention}" for convention in CONVENTIONS)]
        by_label = dict(zip(*reversed(first.get_legend_handles_labels()), strict=True))
        handles = [by_label[label] for label in labels]
        if throughput:
            room = figure.add_subplot(grid[1, 0])
            room.axis("off")
            room.legend(handles, labels, loc="center left", title="relative error, (a) to (c)", alignment="left")
        else:
            figure.legend(handles, labels, loc="outside lower center", ncols=4)

    return drawn((WIDTH, 6.4 if sweeps and throughput else 3.7), draw)


def draw_throughput(figure: Any, cells: list[Any], rows: list[Row]) -> None:
    """Panel (d): the ratio to ``numpy.sum``, and the absolute rate beside it."""
    lengths = sorted({int(row["items"]) for row in rows})
    ratio = ("ratio", "(d) updates/s, relative to numpy.sum", 1.0)
    absolute = ("updates_per_second", "(d) updates/s, in millions", 1e6)
    for cell, (name, title, unit) in zip(cells, (ratio, absolute), strict=True):
        axes = figure.add_subplot(cell)
        groups = [[float(row[name]) / unit for row in rows if int(row["items"]) == items] for items in lengths]
        for place, group in enumerate(groups):
            axes.plot([place] * len(group), group, ".", color="#555555", alpha=0.35, markersize=4)
        low, middle, high = np.array([np.quantile(group, (0.25, 0.5, 0.75)) for group in groups]).T
        bars = np.array([middle - low, high - middle])
        axes.errorbar(range(len(lengths)), middle, yerr=bars, color="black", marker="o")
        axes.set_xticks(range(len(lengths)), [short_count(items) for items in lengths])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("n")
        axes.set_title(title)


def distributions(points: list[Point]) -> Picture:
    """Figure 4: every algorithm on every dataset, as published and on the grid, and ``PrivateQuantile``."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        names = [name for name in DATASETS if any(point.setting.dataset == name for point in points)]
        series = [(a, c) for c in CONVENTIONS for a in ALGORITHMS] + [("PrivateQuantile", OWN_COUNTS)]
        for place, (algorithm, convention) in enumerate(series):
            mine = [p for p in points if (p.setting.algorithm, p.convention) == (algorithm, convention)]
            if mine:
                places = [names.index(p.setting.dataset) + (place - (len(series) - 1) / 2) * 0.11 for p in mine]
                label = algorithm if convention == OWN_COUNTS else f"{FULL_NAMES[algorithm]}, {convention}"
                draw_series(axes, places, mine, marker=MARKERS[algorithm], linestyle="none", label=label)
        for border in range(1, len(names)):
            axes.axvline(border - 0.5, color="#DDDDDD", linewidth=0.6)
        axes.set_xticks(range(len(names)), [f"{name}\n{DATASETS[name].distribution}" for name in names])
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_yscale("log")
        axes.set_ylabel("relative error")
        for _ in range(-len(series) % len(ALGORITHMS)):  # fill the last column, so that each holds one kind of noise
            axes.plot([], [], linestyle="none", label=" ")
        figure.legend(*ordered(axes), loc="outside lower center", ncols=3)

    return drawn((WIDTH, 5.0), draw)


def accuracy(found: list[Frequency]) -> Picture:
    """How often |noise| reached each α, with binomial intervals, against β."""
    kinds = {"printed": "α as printed", "formula": "α by its formula", "two_sided": "α for both tails"}

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for shift, (kind, colour, marker) in enumerate(
            zip(kinds, ("#CC79A7", COLOURS[AS_PUBLISHED], COLOURS[ON_GRID]), "v^o", strict=True)
        ):
            mine = [f for f in found if f.alpha_kind == kind and f.convention == AS_PUBLISHED]
            places = [ALGORITHMS.index(f.algorithm) + (shift - 1) * 0.24 for f in mine]
            reaches = np.array([[f.share - f.interval[0], f.interval[1] - f.share] for f in mine]).T.reshape(2, -1)
            shares = [f.share for f in mine]
            axes.errorbar(places, shares, reaches, color=colour, marker=marker, linestyle="none", label=kinds[kind])
            for place, f in zip(places, mine, strict=True):
                axes.annotate(
                    f"{f.alpha:.4g}",
                    (place, f.interval[1]),
                    (0, 4),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                    color=colour,
                )
        axes.axhline(BETA, color="black", linewidth=0.9, linestyle="--", label=f"β = {BETA}")
        axes.set_xticks(range(len(ALGORITHMS)), [FULL_NAMES[algorithm] for algorithm in ALGORITHMS])
        axes.set_xlim(-0.5, len(ALGORITHMS) - 0.5)
        axes.set_ylim(0, 1.15 * max(f.interval[1] for f in found))
        axes.set_ylabel("share of draws with |noise| ≥ α")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)

    return drawn((8.0, 4.0), draw)


def starts(rows: list[Row]) -> Picture:
    """How far apart two neighbours end, for each start, against what the noise hides."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        lengths = sorted({int(row["items"]) for row in rows})
        for start, colour, marker in zip(
            starts_in(rows), (COLOURS[AS_PUBLISHED], COLOURS[ON_GRID]), "os", strict=False
        ):
            worst = [
                max(int(row["steps_apart"]) for row in rows if row["start"] == start and int(row["items"]) == items)
                for items in lengths
            ]
            axes.plot(range(len(lengths)), worst, color=colour, marker=marker, label=f"start at {start}")
        axes.axhline(2, color="black", linewidth=0.9, linestyle="--", label="what the noise hides: 2 steps")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, 10 * max(int(row["steps_apart"]) for row in rows))
        axes.set_xticks(range(len(lengths)), [short_count(items) for items in lengths])
        axes.set_xlabel("n")
        axes.set_ylabel("grid steps apart, at worst")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return drawn((8.0, 3.6), draw)
