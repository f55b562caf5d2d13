"""The audit: it passes what keeps its promise, and fails what does not.

A sound estimator fails with a probability of at most 1e-9 here (``SURE``), as Clopper and Pearson's bounds are exact:
nothing that was learnt or searched enters. That a mistake is found, and that a sound estimator's loss is seen, is a
matter of power: less than one audit in ten fails to, measured, and ten in a row are needed for the test to fail.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath
import pytest

import dpfrugal as dpf
from dpfrugal.audit import Case, audit, confidence_bounds, neighbour_search
from dpfrugal.audit.broken import BROKEN
from dpfrugal.audit.cases import keyed_cases, segment_cases, walk_cases
from dpfrugal.privacy.guarantees import Guarantee

SURE = 1 - 1e-9
ONE = dpf.PureDP(epsilon=1.0)
THREE = dpf.PureDP(epsilon=3.0)  # where few runs of a slow estimator say most
FEW, MANY = (40, 120, 400), (40, 200, 1_500)  # runs to learn from
WIDE = (100, 500, 500)  # where one pair of many shows it
LEAST = (20, 50, 200)  # where a run is slow, and two numbers or an edge say all
RARE = (20, 50, 1_000)  # where the event that says most is one that the neighbour hardly ever shows
AUDITS = 10


@pytest.mark.parametrize(
    ("cases", "guarantee", "runs", "seen"),
    [
        (walk_cases, ONE, 3_000, 0.3),
        (walk_cases, dpf.ApproxDP(epsilon=1.0, delta=0.04), 3_000, 0.1),
        (walk_cases, dpf.ZCDP(rho=0.5), 3_000, 0.05),
        (lambda: keyed_cases()[:1], ONE, 1_500, 0.2),
        (segment_cases, THREE, 1_000, 0.5),
    ],
    ids=["L", "G", "ρ", "keyed", "PrivateQuantile"],
)
def test_audit__passes_what_keeps_its_promise(
    cases: Callable[[], list[Case]], guarantee: Guarantee, runs: int, seen: float
) -> None:
    """And its loss is seen: an audit that sees nothing proves nothing."""
    for _ in range(AUDITS):
        found = audit(cases(), guarantee, runs=runs, looks=LEAST if cases is segment_cases else FEW, sure=SURE)
        assert found.passed
        assert str(found).startswith("PASS")
        if found.bound > seen:
            break
    assert found.bound > seen


@pytest.mark.parametrize(
    ("name", "guarantee", "runs", "looks"),
    [
        ("first-item", ONE, 1_500, FEW),
        ("no-re-anchoring", ONE, 3_000, WIDE),
        ("quiet-walk", ONE, 6_000, MANY),
        ("skipped-coins", ONE, 1_500, FEW),
        ("per-key-coins", ONE, 1_500, FEW),
        ("quiet-segments", THREE, 1_500, LEAST),
        ("counted-twice", THREE, 1_500, RARE),
        ("raw-edges", THREE, 1_000, LEAST),
    ],
)
def test_audit__finds_a_mistake(name: str, guarantee: dpf.PureDP, runs: int, looks: tuple[int, int, int]) -> None:
    for _ in range(AUDITS):
        found = audit(BROKEN[name](), guarantee, runs=runs, looks=looks)
        if not found.passed:
            break
    assert found.bound > guarantee.epsilon
    assert str(found).startswith("FAIL")


def test_confidence__has_the_bounds_of_clopper_and_pearson() -> None:
    """At the bound, a count this far out has exactly the doubt's probability, by an independent beta function."""
    for hits, runs in ((1, 10), (7, 10), (10, 10), (90, 1_000), (999, 1_000), (770, 10_000), (3, 100_000)):
        for doubt in (0.025, 5e-7, 1e-10):
            low, high = confidence_bounds.at_least(hits, runs, doubt), confidence_bounds.at_most(hits, runs, doubt)
            with mpmath.workdps(40):
                above = mpmath.betainc(hits, runs - hits + 1, 0, low, regularized=True)
                below = mpmath.betainc(hits + 1, runs - hits, high, 1, regularized=True) if hits < runs else None
            assert float(above) == pytest.approx(doubt, rel=1e-6)
            assert high == 1 if below is None else float(below) == pytest.approx(doubt, rel=1e-6)
    assert confidence_bounds.at_least(0, 50, 1e-6) == 0


def test_search__finds_the_sensitivity_and_what_exceeds_it() -> None:
    case = walk_cases(quantiles=(0.5,))[0]
    pairs = list(neighbour_search.pairs(case))
    one_release = [pair.distance for pair in pairs if len(pair.first) == 1]
    assert max(one_release) == 2  # Theorem 2: reached, and never exceeded
    assert max(pair.distance for pair in neighbour_search.pairs(BROKEN["skipped-coins"]()[2])) >= 6
    for pair in pairs:
        streams = [[repr(x) for items in side for x in items] for side in (pair.first, pair.second)]
        assert sum(a != b for a, b in zip(*streams, strict=True)) == 1
        assert [len(items) for items in pair.first] == [len(items) for items in pair.second]


@pytest.mark.parametrize(
    "options", [{"runs": 10}, {"runs": 10**9}, {"sure": 1.0}, {"sure": 0.0}], ids=lambda options: next(iter(options))
)
def test_audit__refuses_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(dpf.ParameterError):
        audit(walk_cases(), ONE, **options)  # type: ignore[arg-type]


def command(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpfrugal", "audit", *options], capture_output=True, text=True)


def test_audit_command__passes_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    options = ("--algorithm", "dp-frugal-1u", "--epsilon", "1", "--runs", "1000", "--confidence", str(SURE))
    done = command(*options, "--plot", str(picture))
    assert (done.returncode, done.stdout[:4]) == (0, "PASS"), done.stderr
    assert picture.stat().st_size > 5_000
    assert "█" in done.stderr
    assert "note:" not in done.stderr  # a thousand runs can show more than ε = 1
    assert "in " in done.stderr


@pytest.mark.parametrize(("epsilon", "said"), [("20", "nothing could have failed"), ("0.001", "told apart at all")])
def test_audit_command__says_when_a_pass_says_nothing(epsilon: str, said: str) -> None:
    """A thousand runs show ε = 4.23 at most, and at ε = 0.001 they show nothing."""
    done = command("--algorithm", "dp-frugal-1u", "--epsilon", epsilon, "--runs", "1000", "--json")
    record = json.loads(done.stdout)
    assert record["passed"]
    assert record["highest_bound"] == pytest.approx(4.226, abs=0.01)
    assert record["bound"] <= record["highest_bound"]
    assert said in done.stderr


def test_audit_command__fails_with_status_1() -> None:
    done = command("--broken", "first-item", "--epsilon", "1", "--runs", "1000", "--json")
    assert done.returncode == 1
    record = json.loads(done.stdout)
    assert not record["passed"]
    assert record["bound"] > record["promised"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--epsilon", "1"), "--algorithm"),
        (("--algorithm", "dp-frugal-1u"), "guarantee"),
        (("--algorithm", "dp-frugal-1u", "--epsilon", "1", "--runs", "3"), "runs"),
        (("--algorithm", "dp-frugal-1u", "--epsilon", "1", "--seconds", "0"), "--seconds"),
        (("--algorithm", "dp-frugal-1u", "--epsilon", "1", "--plot", "/nowhere/x.png"), "--plot"),
    ],
)
def test_audit_command__refuses_bad_options(options: tuple[str, ...], said: str) -> None:
    done = command(*options)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
