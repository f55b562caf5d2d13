"""The paper's claims about its figures, each tested on the results: a verdict is a statistical test with its p-value.

A report has some thirty tests, so a claim counts as shown, or as contradicted, only at p < 0.01.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpfrugal.paper.accuracy import BETA
from dpfrugal.paper.noise_conventions import CONVENTIONS, OWN_COUNTS
from dpfrugal.paper.rank_tests import Matrix, at_least_p_value, binomial_interval, dependence_p_value, trend_p_value
from dpfrugal.paper.results import Row
from dpfrugal.paper.settings import ALGORITHMS, FULL_NAMES
from dpfrugal.paper.summary import Point, counted, error_matrix

LEVEL: Final = 0.01
SYMBOLS: Final = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "quantile": "q", "items": "n"}
CAUCHY: Final = "D6"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper about a panel, and its test."""

    text: str
    test: Callable[[Matrix], str]


def shown_p(p: float) -> str:
    """A p-value as text: two digits, or a bound where it is tiny.

    >>> shown_p(0.0421), shown_p(3e-13)
    ('p = 0.042', 'p < 1e-9')
    """
    return "p < 1e-9" if p < 1e-9 else f"p = {p:.2g}"


def falls(matrix: Matrix) -> str:
    """Whether the error falls from column to column: Page's exact test, both ways."""
    falling, rising = trend_p_value(matrix[:, ::-1]), trend_p_value(matrix)
    if falling < LEVEL:
        return f"holds (Page's trend test, {shown_p(falling)})"
    if rising < LEVEL:
        return f"is contradicted, it rises (Page's trend test, {shown_p(rising)})"
    return f"cannot be seen in {counted(len(matrix), 'repetition')} (Page's trend test, {shown_p(falling)})"


def does_not_matter(matrix: Matrix) -> str:
    """Whether the columns differ: Friedman's test."""
    p, means = dependence_p_value(matrix), matrix.mean(axis=0)
    ratio = f"means within a factor of {means.max() / means.min():.2g}" if means.min() > 0 else "some means are 0"
    verdict = "is contradicted, it does matter" if p < LEVEL else "is not contradicted, no effect is seen"
    return f"{verdict} in {counted(len(matrix), 'repetition')} (Friedman's test, {shown_p(p)}; {ratio})"


FALLS_WITH_Q: Final = Claim("the error is slightly smaller for higher quantiles", falls)
TIGHT_IN_N: Final = Claim("the error fluctuates with n, tightly and without a trend", does_not_matter)
CLAIMS: Final = {
    "1a": Claim("the error falls as ε grows", falls),
    "1b": Claim("q does not matter", does_not_matter),
    "1c": Claim("n does not matter", does_not_matter),
    "2a": Claim("the error falls slightly as δ grows", falls),
    "2b": FALLS_WITH_Q,
    "2c": TIGHT_IN_N,
    "3a": Claim("the error falls as ρ grows", falls),
    "3b": FALLS_WITH_Q,
    "3c": TIGHT_IN_N,
}


def panel_sentence(figure: str, points: list[Point]) -> str:
    """One sentence on the claim of a panel, for both conventions."""
    claim = CLAIMS[figure]
    verdicts = [
        f"{convention}, this {claim.test(error_matrix(of_convention))}"
        for convention in CONVENTIONS
        if (of_convention := [point for point in points if point.convention == convention])
    ]
    return f"The paper: {claim.text}; {'; '.join(verdicts)}."


def cauchy_sentence(points: list[Point]) -> str:
    """How often the Cauchy stream has the largest error of the eight: by chance, once in eight repetitions."""
    verdicts: dict[str, list[str]] = {"holds": [], "cannot be told": [], "is not so": []}
    for name, mine in series(points):
        cauchy = [p for p in mine if p.setting.dataset == CAUCHY]
        matrix = error_matrix([*cauchy, *(p for p in mine if p not in cauchy)])
        largest = int((matrix[:, 0] > matrix[:, 1:].max(axis=1)).sum())
        p_value = at_least_p_value(largest, len(matrix), 1 / matrix.shape[1])
        means = matrix.mean(axis=0)
        doubt = "cannot be told" if means[0] > means[1:].max() else "is not so"
        verdict = "holds" if p_value < LEVEL else doubt
        sizes = f"{means[0]:.2g}, elsewhere at most {means[1:].max():.2g}"
        verdicts[verdict].append(
            f"{name} ({sizes}; {largest} of {counted(len(matrix), 'repetition')}, {shown_p(p_value)})"
        )
    found = "; ".join(f"this {verdict} for {', '.join(names)}" for verdict, names in verdicts.items() if names)
    return f"The paper: Cauchy items are the exception, with the largest error of all; {found}."


def series(points: list[Point]) -> list[tuple[str, list[Point]]]:
    """The points of Figure 4 by algorithm and convention, in the order of the points."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        algorithm = point.setting.algorithm
        name = algorithm if point.convention == OWN_COUNTS else f"{algorithm} {point.convention}"
        groups.setdefault(name, []).append(point)
    return list(groups.items())


def distribution_sentence(points: list[Point]) -> str:
    """Whether the error depends on the distribution, Cauchy left out."""
    verdicts = []
    for convention in CONVENTIONS:
        mine = [p for p in points if (p.setting.algorithm, p.convention) == ("L", convention)]
        others = [p for p in mine if p.setting.dataset != CAUCHY]
        if len(others) > 1:
            p_value = dependence_p_value(error_matrix(others))
            verdict = "holds" if p_value < LEVEL else "cannot be seen"
            verdicts.append(f"{convention}, this {verdict} (L, Friedman's test without D6, {shown_p(p_value)})")
    return f"The paper: the error varies with the distribution; {'; '.join(verdicts)}."


def seed_sentence(points: list[Point]) -> str:
    """Whether some seeds do better than others on all datasets alike: Friedman's test, datasets as its rows."""
    verdicts = []
    for convention in CONVENTIONS:
        mine = [p for p in points if (p.setting.algorithm, p.convention) == ("L", convention)]
        by_seed = error_matrix(mine).T
        if by_seed.shape[1] > 1:
            p_value = dependence_p_value(by_seed)
            verdict = "is contradicted" if p_value < LEVEL else "is not contradicted, no seed stands out"
            verdicts.append(f"{convention}, this {verdict} (L, Friedman's test over the datasets, {shown_p(p_value)})")
    if not verdicts:
        return "The paper: results do not depend on the seed; one repetition cannot show it."
    return f"The paper: results do not depend on the seed; {'; '.join(verdicts)}."


def throughput_sentence(rows: list[Row]) -> str:
    """The walk beside the sum, and whether its speed depends on the length of the stream."""
    lengths = sorted({int(row["items"]) for row in rows})
    columns = [
        [float(row["ratio"]) for row in sorted(rows, key=lambda r: int(r["repetition"])) if int(row["items"]) == items]
        for items in lengths
    ]
    matrix = np.array(columns).T
    p = dependence_p_value(matrix)
    effect = "depends on n" if p < LEVEL else "does not visibly depend on n"
    millions = np.median([float(row["updates_per_second"]) for row in rows]) / 1e6
    return (
        f"The walk takes in {np.median(matrix):.0%} as many items per second as numpy.sum adds up in the same run "
        f"(medians; {millions:,.0f} million updates/s), and this {effect} (Friedman's test, {shown_p(p)})."
    )


@dataclass(frozen=True)
class Frequency:
    """How often |noise| reached an α."""

    algorithm: str
    convention: str
    alpha_kind: str
    alpha: float
    draws: int
    reached: int

    @property
    def share(self) -> float:
        """The share of the draws."""
        return self.reached / self.draws

    @property
    def interval(self) -> tuple[float, float]:
        """Where the probability lies, with 95% confidence."""
        return binomial_interval(self.reached, self.draws)

    @property
    def exceeds(self) -> bool:
        """Whether α is reached more often than β allows."""
        return self.p_value < LEVEL

    @property
    def p_value(self) -> float:
        """How likely so many draws would reach α if each did so with probability β."""
        return at_least_p_value(self.reached, self.draws, BETA)


def frequencies(rows: list[Row]) -> list[Frequency]:
    """The repetitions of the noise experiment together."""
    sums: dict[tuple[str, str, str], Frequency] = {}
    for row in rows:
        key = (row["algorithm"], row["convention"], row["alpha_kind"])
        old = sums.get(key, Frequency(*key, float(row["alpha"]), 0, 0))
        sums[key] = Frequency(*key, old.alpha, old.draws + int(row["draws"]), old.reached + int(row["reached"]))
    return sorted(sums.values(), key=lambda f: ("LGρ".index(f.algorithm), f.convention))


def accuracy_sentence(found: list[Frequency]) -> str:
    """Whether each algorithm is (α, β)-accurate with the paper's formula, and with both tails."""
    verdicts = []
    for algorithm in ALGORITHMS:
        by_kind = {f.alpha_kind: f for f in found if f.algorithm == algorithm and f.convention == CONVENTIONS[0]}
        if {"formula", "two_sided"} <= by_kind.keys():
            formula, truth = by_kind["formula"], by_kind["two_sided"]
            says = "is contradicted" if formula.exceeds else "holds"
            also = "" if truth.alpha == formula.alpha else f"; two-sided α = {truth.alpha:.4f}: {truth.share:.4f}"
            verdicts.append(
                f"for {FULL_NAMES[algorithm]} this {says} (|noise| ≥ {formula.alpha:.4f} in {formula.share:.4f} of the "
                f"draws, binomial {shown_p(formula.p_value)}{also})"
            )
    return f"The paper: |noise| reaches its α with probability at most β = {BETA}; {', '.join(verdicts)}."


def start_sentence(rows: list[Row]) -> str:
    """How far one replaced item moved the estimate from each start."""
    worst = {start: max(int(row["steps_apart"]) for row in rows if row["start"] == start) for start in starts_in(rows)}
    said = "; ".join(
        f"started at {start} the two estimates ended up to {counted(steps, 'grid step')} apart"
        for start, steps in worst.items()
    )
    return f"The noise hides 2 grid steps. With the first item replaced, {said}."


def starts_in(rows: list[Row]) -> list[str]:
    """The starts that were tried, in the order of the rows."""
    return list(dict.fromkeys(row["start"] for row in rows))
