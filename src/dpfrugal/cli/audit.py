"""``dpfrugal audit``: tries to break the guarantee of an estimator, and shows the lower bound for ε it found."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from dpfrugal.cli import options as o
from dpfrugal.errors import ParameterError
from dpfrugal.parameters import positive

if TYPE_CHECKING:
    from dpfrugal.audit import Audit, Case

FAILED = 1
ROWS, WIDTH = 12, 28  # of the distributions in text


Audited = Literal["table", "dp-frugal-1u", "keyed", "private-quantile"]
Broken = Literal[
    "first-item",
    "no-re-anchoring",
    "quiet-walk",
    "skipped-coins",
    "per-key-coins",
    "quiet-segments",
    "counted-twice",
    "raw-edges",
    "data-range",
    "raw-cap",
    "sensitivity-one",
    "keys-charged-once",
    "reused-choice",
]


def audit(
    algorithm: Annotated[Audited | None, typer.Option(help="The estimator to audit.")] = None,
    broken: Annotated[
        Broken | None,
        typer.Option(
            metavar="MISTAKE",
            help="Audit an estimator with a mistake made on purpose instead, which must fail: "
            f"{', '.join(get_args(Broken))}.",
        ),
    ] = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    seconds: Annotated[
        float, typer.Option(help="About how long to count, after the search for neighbours and events.")
    ] = 20.0,
    runs: Annotated[
        int | None, typer.Option(help="How many runs of each stream to count, instead of --seconds.")
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            help="Confidence of the bound; a correct estimator fails with probability at most 1 − confidence."
        ),
    ] = 1 - 1e-6,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the two output distributions to this file: .png, .svg or .pdf.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Try to break a guarantee: a lower bound for ε from many runs on worst-case neighbouring streams.

    Searches neighbouring streams, learns which event tells their outputs apart, and counts it in fresh runs.

    PASS, exit status 0: the lower bound is within the guarantee. FAIL, exit status 1: it exceeds it.

    A PASS proves nothing; the proofs are in docs/proofs.md. A note says if there were too few runs for a FAIL.

    Example: dpfrugal audit --algorithm dp-frugal-1u --epsilon 1
    """
    from dpfrugal.audit import audit as run_audit
    from dpfrugal.audit.broken import BROKEN
    from dpfrugal.audit.cases import keyed_cases, segment_cases, walk_cases
    from dpfrugal.audit.table_cases import table_cases
    from dpfrugal.cli.terminal.progress import stages
    from dpfrugal.cli.terminal.stderr_notes import note, notes

    if (algorithm is None) == (broken is None):
        raise ParameterError("Choose --algorithm or --broken: one of them is needed, and not both.")
    positive("--seconds", seconds)
    if plot is not None and (not plot.parent.is_dir() or plot.suffix not in (".png", ".svg", ".pdf")):
        raise ParameterError(f"--plot must name a .png, .svg or .pdf file in a folder that exists; {plot} does not.")
    guarantee = o.guarantee_from(epsilon, delta, rho)
    kinds: dict[str | None, Callable[[], list[Case]]] = {
        "table": table_cases,
        "dp-frugal-1u": walk_cases,
        "keyed": keyed_cases,
        "private-quantile": segment_cases,
    }
    cases = BROKEN[broken]() if broken else kinds[algorithm]()
    with stages(f"audit of {broken or algorithm}") as told:
        found = run_audit(cases, guarantee, runs=runs, seconds=seconds, sure=confidence, told=told)
    if as_json:
        typer.echo(json.dumps(record(found), ensure_ascii=False))
    else:
        notes.print(f"Neighbours ({found.pair.case.name}; | is a release):")
        for name, stream in (("A", found.pair.first), ("B", found.pair.second)):
            notes.print(f"  {name}: {shown_stream(stream)}")
        notes.print(f"Score: {found.event.score.name}. Its distribution on A and on B, {found.runs:,} runs each:")
        for line in text_histogram(found):
            notes.print(line)
        p, q = (hits / found.runs for hits in found.hits)
        notes.print(f"The score reaches {found.event.threshold:g} in {p:.2%} of A and in {q:.2%} of B.")
        typer.echo(
            f"{'PASS' if found.passed else 'FAIL'}\t{guarantee.symbol} ≥ {found.bound:.4f}\tpromised {guarantee}\t"
            f"confidence 1-{1 - confidence:.2g}"
        )
    if doubt := emptiness(found):
        note(doubt)
    if plot is not None:
        try:
            draw(found, plot)
        except ImportError:
            notes.print("For the picture, install matplotlib: pip install 'dpfrugal[plot]'.")
    if not found.passed:
        raise typer.Exit(FAILED)


def emptiness(found: "Audit") -> str:
    """Why a PASS says nothing, if that is so."""
    from dpfrugal.audit import MOST_RUNS, highest_bound

    wanted, runs = found.guarantee.size, found.runs
    if found.highest <= wanted:
        while runs < MOST_RUNS and highest_bound(runs, found.confidence, found.guarantee) <= wanted:
            runs = min(2 * runs, MOST_RUNS)
        enough = highest_bound(runs, found.confidence, found.guarantee) > wanted
        advice = f"take {runs:,} runs or more, or" if enough else f"{runs:,} would not be enough;"
        return (
            f"nothing could have failed: {found.runs:,} runs show at most {found.guarantee.symbol} ≥ "
            f"{found.highest:.2f}; {advice} audit a smaller one."
        )
    if not found.bound:
        return "the two streams could not be told apart at all, so this PASS says little: take more runs."
    return ""


def shown_stream(periods: tuple[tuple[object, ...], ...]) -> str:
    """The items, with a bar at each release."""
    return " ".join(" ".join([*(str(item).replace(" ", "") for item in items), "|"]) for items in periods)


def record(found: "Audit") -> dict[str, object]:
    """What was found, for JSON."""
    return {
        "passed": found.passed,
        "parameter": fields(found.guarantee)[0].name,  # the one that ``size`` is
        "bound": found.bound,
        "highest_bound": found.highest,
        "promised": found.guarantee.size,
        "delta": getattr(found.guarantee, "delta", None),
        "confidence": found.confidence,
        "runs": found.runs,
        "hits": list(found.hits),
        "case": found.pair.case.name,
        "score": found.event.score.name,
        "threshold": found.event.threshold,
        "neighbours": [shown_stream(found.pair.first), shown_stream(found.pair.second)],
    }


def bins(found: "Audit", most: int) -> tuple[list[float], list[list[int]]]:
    """Edges of at most so many bins, as far as the scores reach, and the counts of each sample.

    The outermost hundredth of both samples is counted in the first bin and the last one; where a few scores lie far
    from the others, all that is farther from the middle 90% than these are wide.
    """
    import numpy as np

    both = np.concatenate(found.scores)
    low, start, end, high = np.quantile(both, [0.005, 0.05, 0.95, 0.995])
    if end > start:
        low, high = max(low, start - (end - start)), min(high, end + (end - start))
    if (both == np.round(both)).all() and high - low < 4 * most:
        width = float(np.ceil((high - low + 1) / most))
        edges = np.floor(low) - 0.5 + width * np.arange(np.ceil((high - np.floor(low) + 1) / width) + 1)
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, most + 1)
    return edges.tolist(), [np.histogram(np.clip(s, edges[0], edges[-1]), edges)[0].tolist() for s in found.scores]


def text_histogram(found: "Audit") -> list[str]:
    """The two distributions as bars of text, A on the left, B on the right; * marks the event."""
    edges, (one, other) = bins(found, ROWS)
    largest = max(*one, *other, 1)
    lines = []
    for k in range(len(one)):
        left, right = "█" * round(WIDTH * one[k] / largest), "█" * round(WIDTH * other[k] / largest)
        mark = "*" if (edges[k] + edges[k + 1]) / 2 >= found.event.threshold else " "
        lines.append(f"{left:>{WIDTH}} {(edges[k] + edges[k + 1]) / 2:>9.4g} {mark} {right}".rstrip())
    return lines


def draw(found: "Audit", picture: Path) -> None:
    """The two distributions, and the threshold of the event."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    edges, counts = bins(found, 40)
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    for k, name in enumerate(("stream A", "its neighbour B")):
        axes.stairs([count / found.runs for count in counts[k]], edges, fill=True, alpha=0.5, color=f"C{k}", label=name)
    start = min(max(found.event.threshold, edges[0]), edges[-1])  # what lies beyond is in the first bin or the last
    axes.set_xlim(edges[0], edges[-1])
    axes.axvline(start, color="black", linewidth=0.8, linestyle="--", label="the event starts here")
    axes.set_xlabel(f"score ({found.event.score.name})")
    axes.set_ylabel(f"share of {found.runs:,} runs")
    axes.legend(framealpha=1)
    verdict = "PASS" if found.passed else "FAIL"
    axes.set_title(f"{verdict}: {found.guarantee.symbol} ≥ {found.bound:.3f}, promised {found.guarantee}")
    figure.savefig(picture, dpi=130)
    plt.close(figure)
