"""The audit: it passes what keeps its promise, and fails what does not.

A sound estimator fails with a probability of at most 1e-9 here (``SURE``), as Clopper and Pearson's bounds are exact:
nothing that was learnt or searched enters. That a mistake is found is a matter of power: an audit misses one less than
once in a thousand times, and three misses in a row are needed to fail.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.audit import Audit, audit, claims, confidence, search
from dpfrugal.audit.broken import BROKEN
from dpfrugal.audit.cases import segment_cases, walk_cases
from dpfrugal.guarantees import Guarantee

SURE = 1 - 1e-9
ONE = dpf.PureDP(epsilon=1.0)
THREE = dpf.PureDP(epsilon=3.0)  # where few runs of a slow estimator say most
QUICK = (40, 120, 400)


def failing(name: str, guarantee: Guarantee, runs: int, looks: tuple[int, int, int]) -> Audit:
    """An audit that finds the mistake, or else the last of three."""
    for _ in range(3):
        found = audit(BROKEN[name](), guarantee, runs=runs, looks=looks)
        if not found.passed:
            break
    return found


@pytest.mark.parametrize(
    ("guarantee", "seen"),
    [(ONE, 0.4), (dpf.ApproxDP(epsilon=1.0, delta=0.04), 0.1), (dpf.ZCDP(rho=0.5), 0.05)],
    ids=["L", "G", "ρ"],
)
def test_the_walk_passes(guarantee: Guarantee, seen: float) -> None:
    """And is seen: an audit that sees nothing proves nothing. The bounds are ten standard deviations above ``seen``."""
    found = audit(walk_cases(), guarantee, runs=3_000, looks=QUICK, sure=SURE)
    assert found.passed
    assert found.bound > seen
    assert str(found).startswith("PASS")


@pytest.mark.parametrize("name", ["first-item", "no-re-anchoring", "quiet-walk", "skipped-coins", "per-key-coins"])
def test_a_broken_walk_fails(name: str) -> None:
    found = failing(name, ONE, runs=4_000 if name == "quiet-walk" else 2_500, looks=QUICK)
    assert not found.passed
    assert found.bound > 1
    assert str(found).startswith("FAIL")


def test_private_quantile_passes() -> None:
    found = audit(segment_cases(), THREE, runs=1_000, looks=(20, 80, 300), sure=SURE)
    assert found.passed
    assert found.bound > 0.5


@pytest.mark.parametrize("name", ["quiet-segments", "counted-twice", "raw-edges"])
def test_a_broken_private_quantile_fails(name: str) -> None:
    assert failing(name, THREE, runs=1_500, looks=(20, 80, 300)).bound > 3


def test_the_bounds_are_those_of_clopper_and_pearson() -> None:
    """At the bound, a count this far out has exactly the doubt's probability, by an independent beta function."""
    for hits, runs in ((1, 10), (7, 10), (10, 10), (90, 1_000), (999, 1_000), (770, 10_000), (3, 100_000)):
        for doubt in (0.025, 5e-7, 1e-10):
            low, high = confidence.at_least(hits, runs, doubt), confidence.at_most(hits, runs, doubt)
            with mpmath.workdps(40):
                above = mpmath.betainc(hits, runs - hits + 1, 0, low, regularized=True)
                below = mpmath.betainc(hits + 1, runs - hits, high, 1, regularized=True) if hits < runs else None
            assert float(above) == pytest.approx(doubt, rel=1e-6)
            assert high == 1 if below is None else float(below) == pytest.approx(doubt, rel=1e-6)
    assert confidence.at_least(0, 50, 1e-6) == 0


def test_the_least_loss_is_within_what_laplace_and_gaussian_noise_have() -> None:
    """The best event of discrete Laplace noise shows ε exactly; no event of Gaussian noise shows more than its ρ."""
    a = math.exp(-1 / ONE.noise_scale(2))
    p, q = np.array([1 / (1 + a)]), np.array([a**2 / (1 + a)])
    assert claims.least_loss(p, q, ONE)[0] == pytest.approx(1)
    assert claims.least_loss(q, p, ONE)[0] == 0
    zcdp = dpf.ZCDP(rho=0.5)
    sigma = zcdp.noise_scale(2)
    t = np.linspace(-8, 8, 200)
    tails = np.array([[float(mpmath.ncdf((mean - x) / sigma)) for x in t] for mean in (2, 0)])
    losses = claims.least_loss(tails[0], tails[1], zcdp)
    assert 0.25 < losses.max() <= 0.5
    wide = claims.least_loss(tails[0], tails[1], dpf.ZCDP(rho=0.3))
    assert wide.max() > 0.3  # the same noise does not keep a smaller ρ
    approx = dpf.ApproxDP(epsilon=1.0, delta=0.1)
    assert claims.least_loss(np.array([0.3]), np.array([0.1]), approx)[0] == pytest.approx(math.log(2))


def test_the_search_finds_the_sensitivity_and_what_exceeds_it() -> None:
    case = walk_cases(quantiles=(0.5,))[0]
    pairs = list(search.pairs(case))
    one_release = [pair.distance for pair in pairs if len(pair.first) == 1]
    assert max(one_release) == 2  # Theorem 2: reached, and never exceeded
    assert max(pair.distance for pair in search.pairs(BROKEN["skipped-coins"]()[2])) >= 6
    for pair in pairs:
        streams = [[repr(x) for items in side for x in items] for side in (pair.first, pair.second)]
        assert sum(a != b for a, b in zip(*streams, strict=True)) == 1
        assert [len(items) for items in pair.first] == [len(items) for items in pair.second]


@pytest.mark.parametrize(
    "options", [{"runs": 10}, {"runs": 10**9}, {"sure": 1.0}, {"sure": 0.0}], ids=lambda options: next(iter(options))
)
def test_bad_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(dpf.ParameterError):
        audit(walk_cases(), ONE, **options)  # type: ignore[arg-type]


def command(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dpfrugal", "audit", *options], capture_output=True, text=True)


def test_the_command_passes_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "audit.png"
    options = ("--algorithm", "dp-frugal-1u", "--epsilon", "1", "--runs", "1000", "--confidence", str(SURE))
    done = command(*options, "--plot", str(picture))
    assert (done.returncode, done.stdout[:4]) == (0, "PASS"), done.stderr
    assert picture.stat().st_size > 5_000
    assert "█" in done.stderr
    assert "in " in done.stderr


def test_the_command_fails_with_status_1() -> None:
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
def test_the_command_refuses_bad_options(options: tuple[str, ...], said: str) -> None:
    done = command(*options)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
