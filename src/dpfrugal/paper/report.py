"""The report of a run: every figure with its picture, the verdict on the paper's claim, and the table behind it."""

import statistics
from pathlib import Path
from typing import Final

from dpfrugal.paper import figures
from dpfrugal.paper.accuracy import alphas
from dpfrugal.paper.claims import (
    LEVEL,
    SYMBOLS,
    Frequency,
    accuracy_sentence,
    cauchy_sentence,
    distribution_sentence,
    frequencies,
    panel_sentence,
    seed_sentence,
    start_sentence,
    starts_in,
    throughput_sentence,
)
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.document import Section, Table, as_html, as_markdown
from dpfrugal.paper.noise_conventions import CONVENTIONS, ON_GRID, OWN_COUNTS
from dpfrugal.paper.report_preface import preface
from dpfrugal.paper.results import Row, write_whole
from dpfrugal.paper.runner import results_of, tasks_of
from dpfrugal.paper.settings import (
    ACCURACY,
    ALGORITHMS,
    DISTRIBUTIONS,
    FIGURES,
    FULL_NAMES,
    PANELS,
    STARTS,
    THROUGHPUT,
    Algorithm,
    Scale,
)
from dpfrugal.paper.summary import Point, counted, points_of

TITLE: Final = "Space-Efficient Private Estimation of Quantiles: its experiments, run again"
HTML, MARKDOWN = "report.html", "README.md"


def write_report(output: Path, folder: Path, scale: Scale) -> list[str]:
    """Write the report of every figure that is complete; return those it has."""
    results = {figure: results_of(folder, figure) for figure in FIGURES}
    complete = {
        figure: list(rows)
        for figure, rows in results.items()
        if not any(task.missing(rows) for task in tasks_of(figure, scale))
    }
    sections = [*preface(folder, scale, complete), *figure_sections(complete)]
    for section in sections:
        if section.picture:
            name, picture = section.picture
            for kind, content in picture.items():
                write_whole(output / f"{name}.{kind}", content)
    write_whole(output / MARKDOWN, as_markdown(TITLE, sections).encode())
    write_whole(output / HTML, as_html(TITLE, sections).encode())
    return list(complete)


def figure_sections(complete: dict[str, list[Row]]) -> list[Section]:
    """The sections in the paper's order, for the figures there are."""
    sections = []
    for number, algorithm in zip("123", ALGORITHMS, strict=True):
        sweeps = {name: points_of(rows) for name, rows in complete.items() if name in PANELS and name[0] == number}
        throughput = complete.get(THROUGHPUT, []) if number == THROUGHPUT[0] else []
        if sweeps or throughput:
            sections.append(panels_section(number, algorithm, sweeps, throughput))
    if DISTRIBUTIONS in complete:
        sections.append(distributions_section(points_of(complete[DISTRIBUTIONS])))
    if ACCURACY in complete:
        sections.append(accuracy_section(frequencies(complete[ACCURACY])))
    if STARTS in complete:
        sections.append(starts_section(complete[STARTS]))
    return sections


def panels_section(number: str, algorithm: Algorithm, sweeps: dict[str, list[Point]], throughput: list[Row]) -> Section:
    """Figure 1, 2 or 3."""
    varied = ", ".join(SYMBOLS[PANELS[name].varied] for name in sweeps)
    caption = f"Figure {number}. {FULL_NAMES[algorithm]}, normal items (D5)."
    if sweeps:
        caption += f" Relative error varying {varied}: mean over the repetitions with its standard error; pale dots "
        caption += "are the repetitions, dotted lines what the noise alone would make."
    claims = [f"**{name}.** {panel_sentence(name, points)}" for name, points in sweeps.items()]
    tables = [panel_table(name, points) for name, points in sweeps.items()]
    notes = [note for name, points in sweeps.items() for note in convergence_notes(name, points)]
    if throughput:
        caption += " (d): throughput as a ratio to numpy.sum over the same items in the same run, and in updates/s; "
        caption += "medians with their quartiles."
        claims.append(f"**{THROUGHPUT}.** {throughput_sentence(throughput)}")
        tables.append(throughput_table(throughput))
        notes.append(f"{THROUGHPUT} was measured on {'; '.join(sorted({row['machine'] for row in throughput}))}.")
    picture = (f"figure{number}", figures.panels(sweeps, throughput))
    return Section(f"Figure {number}: {FULL_NAMES[algorithm]}", [], picture, caption, claims, notes, tables)


def convergence_notes(figure: str, points: list[Point]) -> list[str]:
    """A note if walks from 0 cannot have converged: they move one step per item at most."""
    late = list(dict.fromkeys(figures.label_of(figure, p) for p in points if not p.can_converge))
    if not late:
        return []
    symbol = SYMBOLS[PANELS[figure].varied]
    return [f"{figure}: for {symbol} = {', '.join(late)} the walk from 0 cannot reach the quantile in n items."]


def panel_table(figure: str, points: list[Point]) -> Table:
    """The numbers behind a panel."""
    header = (
        *(SYMBOLS[PANELS[figure].varied], "convention", "relative error", "± s.e.", "least", "greatest"),
        *("noise alone", "exact lower", "exact upper", "released"),
    )
    rows = [
        (
            figures.label_of(figure, p),
            p.convention,
            *(f"{number:.3g}" for number in (p.mean, p.standard_error, min(p.errors), max(p.errors))),
            "–" if p.noise_alone is None else f"{p.noise_alone:.3g}",
            *(f"{number:.4f}" for number in (p.exact_lower, p.exact_upper, p.released)),
        )
        for p in points
    ]
    repetitions = counted(len(points[0].errors), "repetition")
    return Table(f"{figure}, {repetitions} (quantiles and releases: their means)", header, rows)


def throughput_table(rows: list[Row]) -> Table:
    """The numbers behind Figure 1d."""
    lines = []
    for items in sorted({int(row["items"]) for row in rows}):
        mine = [row for row in rows if int(row["items"]) == items]
        cells = []
        for column, unit, form in (
            ("ratio", 1.0, ".3f"),
            ("updates_per_second", 1e6, ",.0f"),
            ("sums_per_second", 1e6, ",.0f"),
        ):
            numbers = [float(row[column]) / unit for row in mine]
            cells += [format(statistics.median(numbers), form), f"{min(numbers):{form}} to {max(numbers):{form}}"]
        lines.append((figures.short_count(items), *cells))
    header = ("n", "ratio", "range", "M updates/s", "range", "M sums/s", "range")
    return Table(f"{THROUGHPUT}, medians and ranges over the repetitions", header, lines)


def distributions_section(points: list[Point]) -> Section:
    """Figure 4."""
    series = [(a, c) for c in CONVENTIONS for a in ALGORITHMS] + [("PrivateQuantile", OWN_COUNTS)]
    names = [a if c == OWN_COUNTS else f"{a} {c}" for a, c in series]
    header = ("dataset", "exact lower", "exact upper", "steps from 0 ÷ n", *names)
    rows = []
    for name, dataset in DATASETS.items():
        mine = {(p.setting.algorithm, p.convention): p for p in points if p.setting.dataset == name}
        walk = mine["L", ON_GRID]
        way = abs(walk.exact_lower) * 1000 / walk.setting.items
        cells = [f"{mine[key].mean:.3g} ± {mine[key].standard_error:.2g}" for key in series]
        rows.append(
            (
                f"{name} {dataset.distribution}",
                f"{walk.exact_lower:.3f}",
                f"{walk.exact_upper:.3f}",
                f"{way:.2g}",
                *cells,
            )
        )
    late = [p.setting.dataset for p in points if not p.can_converge]
    notes = []
    if late:
        notes.append(f"On {', '.join(dict.fromkeys(late))} the walk from 0 cannot reach the quantile in n items.")
    return Section(
        title="Figure 4: varying the distribution",
        picture=("figure4", figures.distributions(points)),
        caption="Figure 4. Relative error on all datasets, defaults otherwise: mean over the repetitions with its "
        "standard error; pale dots are the repetitions. PrivateQuantile, at ε = 1, is this library's own estimator.",
        claims=[f"**4.** {sentence(points)}" for sentence in (cauchy_sentence, distribution_sentence, seed_sentence)],
        notes=notes,
        tables=[
            Table(
                f"4, {counted(len(points[0].errors), 'repetition')}: mean relative error ± standard error", header, rows
            )
        ],
    )


def accuracy_section(found: list[Frequency]) -> Section:
    """The (α, β) table and how often |noise| ≥ α really happens."""
    rows = [
        (FULL_NAMES[name], f"{a.printed:g}", f"{a.formula:.4f}", f"{a.two_sided:.4f}", f"{a.whole:g}")
        for name, a in ((algorithm, alphas(algorithm)) for algorithm in ALGORITHMS)
    ]
    counts = [
        (
            *(FULL_NAMES[f.algorithm], f.convention, f.alpha_kind.replace("_", "-")),  # type: ignore[index]
            *(f"{f.alpha:.4f}", f"{f.draws:,}", f"{f.share:.4f}"),
            f"{f.interval[0]:.4f} to {f.interval[1]:.4f}",
            "yes" if f.exceeds else "no",
        )
        for f in found
    ]
    return Section(
        title="(α, β)-accuracy",
        text=[
            "β = 0.04, ε = 1, δ = 0.04, ρ = 1. The paper's Definition asks for both tails, P[|noise| ≥ α] ≤ β; its "
            "α for Gaussian noise bounds one. α is in data units as published and in grid steps on the grid; the whole "
            "steps are the smallest that discrete noise on the grid reaches with probability at most β."
        ],
        picture=("accuracy", figures.accuracy(found)),
        caption="How often |noise| reaches α (noise as published), with 95% binomial intervals; numbers are α.",
        claims=[accuracy_sentence(found)],
        tables=[
            Table("α", ("", "as printed", "by its formula", "two-sided truth", "in whole steps"), rows),
            Table(
                "|noise| ≥ α, counted",
                ("", "convention", "α", "its value", "draws", "share", "95% interval", f"above β (p < {LEVEL})"),
                counts,
            ),
        ],
    )


def starts_section(rows: list[Row]) -> Section:
    """Why the start must be public."""
    lines = []
    for start in starts_in(rows):
        for items in sorted({int(row["items"]) for row in rows}):
            apart = [int(row["steps_apart"]) for row in rows if (row["start"], int(row["items"])) == (start, items)]
            lines.append((start, figures.short_count(items), f"{min(apart):,}", f"{max(apart):,}"))
    return Section(
        title="Where the walk starts",
        text=[
            "The paper lets the walk start at the first item, and the authors' program does so before it adds noise. "
            "Here two neighbours, a stream and the same one with its first item replaced by minus a million, are "
            "walked with the same coins. Every other figure of this report starts at 0, a public constant."
        ],
        picture=("start", figures.starts(rows)),
        caption="How far apart the estimates of two neighbours end, at worst over the repetitions; the noise hides 2.",
        claims=[start_sentence(rows)],
        tables=[Table("Grid steps apart, over the repetitions", ("start", "n", "least", "greatest"), lines)],
    )
