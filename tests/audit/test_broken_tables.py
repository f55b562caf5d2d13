"""The audit of tables: ``private_quantiles`` passes under both relations, and each planted mistake is found.

A sound table fails with a probability of at most 1e-9 here (``SURE``). A mistake is found in more than nine audits of
ten, measured, and ten in a row must miss it for a test to fail; what is called a mistake then exceeds its promise with
confidence 1 - 1e-6.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.audit import Audit, Case, audit
from dpfrugal.audit.broken import BROKEN
from dpfrugal.audit.broken_tables import BROKEN_TABLES, key_cases
from dpfrugal.audit.events import Event, Score, best_event, by_frequency, shown
from dpfrugal.audit.neighbour_search import Pair
from dpfrugal.audit.table_cases import added_cases, replaced_cases, table_cases, version_cases
from dpfrugal.cli.audit import Broken, bins, text_histogram
from dpfrugal.privacy.guarantees import Guarantee

SURE = 1 - 1e-9
ONE, TWO, THREE = (dpf.PureDP(epsilon=epsilon) for epsilon in (1.0, 2.0, 3.0))
FEW, MANY = (20, 50, 300), (100, 500, 4_000)  # runs to learn from
AUDITS = 10


@pytest.mark.parametrize(
    ("cases", "guarantee", "runs", "seen"),
    [
        (lambda: replaced_cases()[:1], THREE, 1_000, 0.5),
        (lambda: replaced_cases()[:1], dpf.ZCDP(rho=1.0), 1_000, 0.05),
        (lambda: replaced_cases()[1:], dpf.PureDP(epsilon=6.0), 1_000, 0.3),
        (lambda: added_cases()[:1], THREE, 1_000, 0.5),
        (lambda: added_cases()[1:], dpf.ApproxDP(epsilon=3.0, delta=0.01), 1_000, 0.3),
        (version_cases, THREE, 1_000, 0.05),
        (lambda: key_cases(2), TWO, 8_000, 0.2),
    ],
    ids=["replaced", "replaced, ρ", "two quantiles", "added, q=0.95", "added, δ", "versions", "both keys charged"],
)
def test_table_audit__passes_what_keeps_its_promise(
    cases: Callable[[], list[Case]], guarantee: Guarantee, runs: int, seen: float
) -> None:
    """And its loss is seen: an audit that sees nothing proves nothing."""
    for _ in range(AUDITS):
        found = audit(cases(), guarantee, runs=runs, looks=FEW if runs < 5_000 else MANY, sure=SURE)
        assert found.passed
        if found.bound > seen:
            break
    assert found.bound > seen


@pytest.mark.parametrize(
    ("name", "guarantee", "runs", "looks"),
    [
        ("data-range", ONE, 1_500, (100, 200, 500)),
        ("raw-cap", ONE, 1_500, (100, 200, 500)),
        ("sensitivity-one", TWO, 15_000, MANY),
        ("keys-charged-once", TWO, 40_000, MANY),
        ("reused-choice", ONE, 4_000, (100, 500, 1_000)),
    ],
)
def test_table_audit__finds_a_mistake(name: str, guarantee: dpf.PureDP, runs: int, looks: tuple[int, int, int]) -> None:
    for _ in range(AUDITS):
        found = audit(BROKEN_TABLES[name](), guarantee, runs=runs, looks=looks)
        if not found.passed:
            break
    assert found.bound > guarantee.epsilon
    assert str(found).startswith("FAIL")


def test_table_cases__are_neighbours_under_their_relation() -> None:
    for case in table_cases():
        for first, second in case.neighbours:
            for rows, other in zip(first, second, strict=True):
                if "added" in case.name:
                    assert len(other) == len(rows) + 1
                    assert _missing(rows, other) == 0
                else:
                    assert len(other) == len(rows)
                    assert _missing(rows, other) <= 1


def _missing(rows: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    """How many rows the other table lacks."""
    return (Counter(rows) - Counter(other)).total()


def test_broken__can_all_be_asked_for_on_the_command_line() -> None:
    assert set(get_args(Broken)) == set(BROKEN)


def test_by_frequency__is_the_log_likelihood_ratio_of_what_was_seen() -> None:
    one, other = np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([[0.0], [1.0], [1.0], [2.0]])
    rated = by_frequency(one, other)(np.array([[0.0], [1.0], [2.0], [9.0]]))
    expected = [math.log(3.5 / 1.5), math.log(1.5 / 2.5), math.log(0.5 / 1.5), 0.0]
    assert rated == pytest.approx(expected)


def test_best_event__is_found_where_it_lies_between_others() -> None:
    """The first stream shows 1 half of the time, the other never: neither a threshold nor a mean tells."""
    runs = 2_000
    first = np.resize([0.0, 1.0, 1.0, 2.0], runs).reshape(runs, 1, 1)
    second = np.resize([0.0, 2.0], runs).reshape(runs, 1, 1)
    assert best_event(first, second, ONE, runs).expected < 1
    event = best_event(first, second, ONE, runs, chosen=True)
    assert event.expected > 3
    assert event.score.name == "shown, all, frequencies"
    assert (event.score.of(first) >= event.threshold).mean() == 0.5
    assert not (event.score.of(second) >= event.threshold).any()


def _audit_with(*scores: Any) -> Audit:
    event = Event(Score("shown 1", shown, lambda numbers: numbers[:, 0]), 1.0, 1.0)
    pair = Pair(replaced_cases()[0], ((),), ((),), 0.0)
    first, second = (np.array(each, dtype=np.float64) for each in scores)
    return Audit(ONE, 0.5, SURE, pair, event, len(first), (1, 1), (first, second))


@pytest.mark.parametrize(
    "scores",
    [
        ([0, 1, 2, 1] * 250, [0, 0, 1, 2] * 250),
        ([0] * 1000, [0] * 1000),
        ([0, 50] * 500, [3, 20] * 500),
        ([0.25, 0.5] * 500, [0.75, 0.125] * 500),
        ([0.25, 0.5] * 490 + [1e12] * 20, [0.75, 0.125] * 490 + [-1e12] * 20),
        ([1, 2] * 490 + [90] * 20, [3, 4] * 500),
    ],
    ids=["few whole numbers", "one", "many whole numbers", "fractions", "outliers", "whole outliers"],
)
@pytest.mark.parametrize("most", [12, 40])
def test_picture__has_its_bars_all_over_its_axis(scores: tuple[list[float], list[float]], most: int) -> None:
    edges, counts = bins(_audit_with(*scores), most)
    assert len(edges) - 1 <= most + 1
    assert [sum(side) for side in counts] == [1000, 1000]
    filled = [k for k in range(len(edges) - 1) if counts[0][k] + counts[1][k] > 10]
    assert filled[-1] - filled[0] + 1 > 0.3 * (len(edges) - 1) or len(edges) <= 3
    assert len(text_histogram(_audit_with(*scores))) <= 13
