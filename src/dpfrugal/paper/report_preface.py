"""The first sections of the report: what was run, when, on which machine, how long; and the paper's tables."""

import math
from datetime import datetime
from pathlib import Path
from typing import Final

from dpfrugal.paper import settings
from dpfrugal.paper.claims import LEVEL
from dpfrugal.paper.cpu_time import PARTS
from dpfrugal.paper.datasets import DATASETS, GENERATOR
from dpfrugal.paper.document import Section, Table
from dpfrugal.paper.figures import short_count
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, ON_GRID, OWN_COUNTS
from dpfrugal.paper.results import Row
from dpfrugal.paper.runner import costs_of, runs_in
from dpfrugal.paper.settings import DISTRIBUTIONS, NORMAL, PAPER_ITEMS, Scale
from dpfrugal.paper.summary import counted, points_of
from dpfrugal.version import __version__

PART_NAMES: Final = {
    "generation": "generating items",
    "exact": "exact quantiles",
    "estimators": "estimators",
    "noise": "noise of the (α, β) experiment",
}
SHORT_STREAMS: Final = (
    "At these lengths walks from 0 have not settled where n is small or the quantile is far: what the verdicts below "
    "say of q, n and the datasets is about that too. The paper's claims are about its own scale."
)


def preface(folder: Path, scale: Scale, complete: dict[str, list[Row]]) -> list[Section]:
    """Everything before the figures."""
    whole = scale.items == PAPER_ITEMS
    share = "the paper's scale" if whole else f"{scale.items / PAPER_ITEMS:g} of the paper's lengths"
    opening = [
        "The experiments of *Space-Efficient Private Estimation of Quantiles* (Cafaro, Coluccia, Epicoco, Pulimeno), "
        f"by `dpfrugal paper`, dpfrugal {__version__}, at {share}: n up to {max(scale.lengths):,}, "
        f"{counted(scale.repetitions, 'repetition')}.",
        *in_short(complete),
        *([] if scale.items >= PAPER_ITEMS else [SHORT_STREAMS]),
        "**As published** adds noise as the authors' program does: items × 1000, truncated; the estimate divided by "
        "1000; noise for a sensitivity of 2 in data units (here in whole steps of 0.001). **On the grid** is the same "
        "guarantee with the noise where the sensitivity of 2 steps is: a thousand times less. Both start at 0 and walk "
        "the same path; (ε, δ) is by the paper's classic calibration.",
        "Items and coins are seeded: repetition r of dataset Dk has seed 10r + k for both, the same for every "
        "algorithm, and every row of the results records it. **The noise is real: it is drawn by OpenDP and cannot be "
        "seeded**, so another run agrees in everything but the noise.",
        "The relative error is |released − exact| ÷ |exact|, against the exact lower quantile of the stream's own "
        f"items. Verdicts are computed from the rows: a claim is shown, or contradicted, at p < {LEVEL}.",
    ]
    run = Section("The run", run_sentences(folder), tables=[split_table(folder)])
    return [Section("", opening), run, paper_tables(scale)]


def in_short(complete: dict[str, list[Row]]) -> list[str]:
    """The most important comparison, if Figure 4 is complete."""
    points = {
        (p.setting.algorithm, p.convention): p.mean
        for p in points_of(complete.get(DISTRIBUTIONS, []))
        if p.setting.dataset == NORMAL
    }
    if not points:
        return []
    published, grid = points["L", AS_PUBLISHED], points["L", ON_GRID]
    own = points["PrivateQuantile", OWN_COUNTS]
    return [
        f"In short: for the 0.99-quantile of normal items at ε = 1 the mean relative error of DP-Frugal-1U-L is "
        f"{published:.2g} as published and {grid:.2g} on the grid; that of PrivateQuantile is {own:.2g}."
    ]


def run_sentences(folder: Path) -> list[str]:
    """One sentence per run that added rows: its time, its machine and its duration."""
    sentences = []
    for run in runs_in(folder):
        begun = datetime.fromisoformat(run["begun"])
        sentences.append(
            f"{begun:%-d %B %Y, %H:%M} UTC: {counted(int(run['rows']), 'row')} in {float(run['seconds']):,.1f} s with "
            f"{counted(int(run['jobs']), 'job')} on {run['machine']}; at most {int(run['peak_mib']):,} MiB resident."
        )
    return sentences


def split(folder: Path) -> tuple[int, dict[str, float]]:
    """The number of items generated, and the processor seconds by kind of work."""
    costs = [row for figure in settings.FIGURES for row in costs_of(folder, figure)]
    return sum(int(row["items"]) for row in costs), {
        part: math.fsum(float(row[f"{part}_seconds"]) for row in costs) for part in PARTS
    }


def split_table(folder: Path) -> Table:
    """The processor time by kind of work."""
    items, seconds = split(folder)
    total = sum(seconds.values()) or 1.0
    rows = [(PART_NAMES[part], f"{spent:,.1f}", f"{spent / total:.0%}") for part, spent in seconds.items()]
    return Table(f"{items:,} items generated ({GENERATOR})", ("", "processor seconds", "share"), rows)


def paper_tables(scale: Scale) -> Section:
    """The paper's Tables 1 and 2."""
    one = [(d.name, d.distribution, d.parameters) for d in DATASETS.values()]

    def values(numbers: tuple[float, ...]) -> str:
        return ", ".join(f"{number:g}" for number in numbers)

    lengths = ", ".join(map(short_count, scale.lengths))
    two = [
        ("quantile", values(settings.QUANTILES), "0.99"),
        ("stream length", lengths, short_count(scale.items)),
        ("ε", values(settings.EPSILONS), "1"),
        ("δ", values(settings.DELTAS), "0.04"),
        ("ρ", values(settings.RHOS), "1"),
    ]
    return Section(
        "The paper's tables",
        tables=[
            Table("Table 1: datasets", ("dataset", "distribution", "parameters"), one),
            Table("Table 2: parameters", ("parameter", "values", "default"), two),
        ],
    )
