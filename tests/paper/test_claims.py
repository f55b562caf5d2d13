"""The paper's claims: each test of one can say yes and no."""

from dataclasses import replace

import numpy as np

from dpfrugal.paper.claims import (
    Frequency,
    accuracy_sentence,
    cauchy_sentence,
    distribution_sentence,
    does_not_matter,
    falls,
    panel_sentence,
    seed_sentence,
    start_sentence,
    throughput_sentence,
)
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, CONVENTIONS, OWN_COUNTS, Convention
from dpfrugal.paper.settings import ALGORITHMS, PANELS, Algorithm, default_setting
from dpfrugal.paper.summary import Point

RNG = np.random.default_rng(5)


FLAT = RNG.random((10, 4)) + 1


FALLING = FLAT + np.array([9.0, 6.0, 3.0, 0.0])


def test_claims__that_something_falls_can_say_all_three() -> None:
    assert falls(FALLING).startswith("holds")
    assert falls(FALLING[:, ::-1]).startswith("is contradicted")
    assert falls(FLAT).startswith("cannot be seen in 10")


def test_claims__that_something_does_not_matter_can_say_both() -> None:
    assert does_not_matter(FLAT).startswith("is not contradicted, no effect is seen in 10")
    assert does_not_matter(FALLING).startswith("is contradicted")
    assert "p = 0.0001" in does_not_matter(FALLING)


def point(algorithm: Algorithm, convention: Convention, errors: np.ndarray, dataset: str = "D5") -> Point:
    return Point(default_setting(algorithm, dataset, 1000), convention, tuple(errors.tolist()), 50.0, 50.0, 50.0)


def test_claims__of_a_panel_speak_of_both_conventions() -> None:
    points = [
        point("L", convention, matrix[:, k])
        for convention, matrix in zip(CONVENTIONS, (FALLING, FLAT), strict=True)
        for k in range(4)
    ]
    sentence = panel_sentence("1a", points)
    assert "as published, this holds" in sentence
    assert "on the grid, this cannot be seen" in sentence
    assert all(
        panel_sentence(figure, points).count("p = ") + panel_sentence(figure, points).count("p < ") == 2
        for figure in PANELS
    )


def figure_4(cauchy: float, seeds: np.ndarray) -> list[Point]:
    """Errors of all datasets; Cauchy's larger by so much, and each repetition's by its own amount."""
    series: list[tuple[Algorithm, Convention]] = [(a, c) for a in ALGORITHMS for c in CONVENTIONS]
    rng = np.random.default_rng(8)
    return [
        point(a, c, rng.random(10) + seeds + (cauchy if name == "D6" else 1.0), name)
        for a, c in [*series, ("PrivateQuantile", OWN_COUNTS)]
        for name in DATASETS
    ]


def test_claims__of_figure_4_can_fail() -> None:
    plain, odd = figure_4(1.0, np.zeros(10)), figure_4(5.0, np.arange(10.0))
    assert "this is not so for L as published" in cauchy_sentence(plain)
    assert "this holds for" not in cauchy_sentence(plain)
    few = [replace(p, errors=p.errors[:2]) for p in figure_4(5.0, np.zeros(10))]
    assert "this cannot be told for L as published" in cauchy_sentence(few)
    assert "this holds for L as published" in cauchy_sentence(odd)
    assert "PrivateQuantile (" in cauchy_sentence(odd)
    assert "no seed stands out" in seed_sentence(plain)
    assert "is contradicted" in seed_sentence(odd)
    assert "cannot be seen" in distribution_sentence(plain)
    by_dataset = [point("L", c, FLAT[:, 0] + 10 * k, name) for c in CONVENTIONS for k, name in enumerate(DATASETS)]
    assert "this holds" in distribution_sentence(by_dataset)


def test_claims__of_accuracy_are_decided_by_the_count() -> None:
    def found(reached: int) -> list[Frequency]:
        return [
            Frequency(algorithm, AS_PUBLISHED, kind, alpha, 10_000, count)
            for algorithm in ALGORITHMS
            for kind, alpha, count in (("formula", 2.0, reached), ("two_sided", 3.0, 400))
        ]

    assert accuracy_sentence(found(400)).count("this holds") == 3
    assert accuracy_sentence(found(800)).count("this is contradicted") == 3
    assert found(400)[0].interval[0] < 0.04 < found(400)[0].interval[1] < found(800)[0].interval[0]


def test_claims__of_throughput_and_starts_are_sentences() -> None:
    rows = [
        {"items": str(n), "repetition": str(r), "ratio": str(0.5 + n / 1000), "updates_per_second": "1e9"}
        for n in (1, 2, 3)
        for r in range(8)
    ]
    assert "50% as many" in throughput_sentence(rows)
    assert "1,000 million" in throughput_sentence(rows)
    assert "depends on n" in throughput_sentence(rows)
    level = [{**row, "ratio": str(0.4 + (int(row["repetition"]) * 7 + int(row["items"]) * 3) % 5)} for row in rows]
    assert "does not visibly depend on n" in throughput_sentence(level)
    starts = [{"start": start, "steps_apart": steps} for start, steps in (("x", "7000"), ("y", "2"), ("x", "1"))]
    assert "started at x the two estimates ended up to 7,000 grid steps apart" in start_sentence(starts)
    assert "started at y the two estimates ended up to 2 " in start_sentence(starts)
