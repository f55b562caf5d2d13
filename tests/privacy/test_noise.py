"""Noise: its exact distribution, with a power leg; and OpenDP's own privacy map against the promise."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.errors import PrivacyError
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from dpfrugal.privacy.noise_distributions import LAPLACE
from tests.support.statistics import FALSE_ALARM, chi_square_p_value, discrete_gaussian, discrete_laplace

DRAWS = 100_000
GUARANTEES: list[Guarantee] = [
    dpf.PureDP(epsilon=1.0),
    dpf.PureDP(epsilon=0.1),
    dpf.ApproxDP(epsilon=1.0, delta=1e-6),
    dpf.ApproxDP(epsilon=1.0, delta=0.04, calibration="classic"),
    dpf.ZCDP(rho=0.5),
    dpf.ZCDP(rho=5.0),
]


def law(guarantee: Guarantee, scale: float) -> object:
    return discrete_laplace(scale) if guarantee.noise is LAPLACE else discrete_gaussian(scale)


def test_noise__no_draw_serves_twice_in_whatever_thread() -> None:
    """Of 1,488 draws of scale 2^61 two are the same by chance less than once in 10^12 runs."""
    guarantee, sizes = dpf.PureDP(epsilon=2.0**-60), (1, 3, 16, 2, 7, 64) * 4

    def use(_: int) -> list[int]:
        return [draw for size in sizes for draw in noise.add_noise([0] * size, guarantee, Sensitivity.of(2))]

    with ThreadPoolExecutor(4) as pool:
        seen = [draw for draws in pool.map(use, range(4)) for draw in draws]
    inside = [draw for draw in seen if abs(draw) < 2**63 - 1]  # OpenDP cuts the rest off at the last integer
    assert len(seen) == 1_488
    assert len(set(inside)) == len(inside) > 1_400


@pytest.mark.parametrize("guarantee", [dpf.PureDP(epsilon=1e-19), dpf.ZCDP(rho=1e-38)], ids=repr)
def test_add_noise__hides_the_value_at_the_end_of_the_integers(guarantee: Guarantee) -> None:
    """Added outside OpenDP, a value would show behind noise that was cut off at ±2^63."""
    outputs = [noise.add_noise([123_456], guarantee, Sensitivity.of(1))[0] for _ in range(300)]
    assert all(-(2**63) <= output <= 2**63 - 1 for output in outputs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_add_noise__draws_noise_of_its_own_in_a_forked_process() -> None:
    program = (
        "import os, dpfrugal as dpf\n"
        "from dpfrugal.privacy import noise\n"
        "from dpfrugal.privacy.guarantees import Sensitivity\n"
        "def draws(): return noise.add_noise([0] * 16, dpf.PureDP(epsilon=0.01), Sensitivity.of(2))\n"
        "draws()\n"  # so that the sampler is made before the process forks
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(write, repr(draws()).encode()); os._exit(0)\n"
        "mine = repr(draws()); os.wait()\n"
        "assert os.read(read, 10_000).decode() != mine\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_add_noise__has_the_right_distribution_and_a_scale_ten_percent_off_fails(guarantee: Guarantee) -> None:
    """False alarms: 1e-9 for the first leg. The second leg misses a wrong scale less than once in 10^9 runs too."""
    sample = np.array(noise.add_noise([0] * DRAWS, guarantee, Sensitivity.of(2)))
    scale = guarantee.noise_scale(2)
    assert chi_square_p_value(sample, law(guarantee, scale)) > FALSE_ALARM  # type: ignore[arg-type]
    for wrong in (scale * 0.9, scale * 1.1):
        assert chi_square_p_value(sample, law(guarantee, wrong)) < FALSE_ALARM  # type: ignore[arg-type]


@settings(max_examples=200)
@given(
    kind=st.sampled_from(["pure", "approx", "zcdp"]),
    size=st.floats(1e-3, 50),
    delta=st.floats(1e-12, 0.5),
    items=st.integers(1, 50),
    quantiles=st.integers(1, 10),
)
def test_add_noise__has_a_privacy_map_that_reports_no_more_than_was_promised(
    kind: str, size: float, delta: float, items: int, quantiles: int
) -> None:
    """``measurement`` raises where the map reports more; the map's figure is also checked here in exact arithmetic."""
    sensitivity = Sensitivity(2 * items * quantiles, 4 * items**2 * quantiles)
    guarantee: Guarantee = dpf.PureDP(epsilon=size)
    if kind == "approx":
        guarantee = dpf.ApproxDP(epsilon=size, delta=delta)
    elif kind == "zcdp":
        guarantee = dpf.ZCDP(rho=size)
    noise.measurement(guarantee, sensitivity)
    scale = Fraction(guarantee.noise_scale(sensitivity))
    if isinstance(guarantee, dpf.PureDP):
        assert sensitivity.l1 / scale <= Fraction(size)
    elif isinstance(guarantee, dpf.ZCDP):
        assert sensitivity.l2_squared / (2 * scale**2) <= Fraction(size)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_add_noise__refuses_too_little_noise(guarantee: Guarantee, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check has teeth: one part in a thousand less noise, and no measurement is handed out.

    (The classic calibration is loose, so it takes more to break its promise.)
    """
    less = 0.5 if getattr(guarantee, "calibration", "") == "classic" else 0.999
    right = guarantee.noise_scale(2)
    monkeypatch.setattr(type(guarantee), "noise_scale", lambda self, sensitivity: right * less)
    noise.measurement.cache_clear()
    with pytest.raises(PrivacyError, match="nothing was released"):
        noise.add_noise([0], guarantee, Sensitivity.of(2))
    noise.measurement.cache_clear()


def test_add_noise__imports_opendp_at_the_first_release_only() -> None:
    program = (
        "import sys, dpfrugal as dpf\n"
        "p = dpf.DPFrugal1U(0.5, dpf.ZCDP(rho=1.0)); p.update_many([1, 2, 3])\n"
        "assert not {'opendp', 'numba', 'pyarrow'} & set(sys.modules), set(sys.modules)\n"
        "p.release(); assert 'opendp' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_add_noise__takes_no_seed() -> None:
    """Two runs of the same seeded walk differ by noise alone: 40 equal pairs have a chance below 1e-20."""

    def run() -> list[float]:
        values = []
        for _ in range(40):
            p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=0.1), coin_seed=1)
            p.update_many([0.0] * 10)
            values.append(p.release().value)
        return values

    np.random.seed(0)
    first = run()
    np.random.seed(0)
    assert first != run()


@pytest.mark.parametrize("guarantee", [dpf.PureDP(epsilon=1.0), dpf.ZCDP(rho=0.5)], ids=repr)
def test_in_lots__has_the_same_distribution_and_a_scale_ten_percent_off_fails(guarantee: Guarantee) -> None:
    """False alarms: 1e-9 for the first leg. The second leg misses a wrong scale less than once in 10^9 runs too."""
    with noise.in_lots():
        sample = np.array([noise.add_noise([7, 7, 7], guarantee, Sensitivity.of(2)) for _ in range(DRAWS // 3)]) - 7
    scale = guarantee.noise_scale(2)
    assert chi_square_p_value(sample.ravel(), law(guarantee, scale)) > FALSE_ALARM  # type: ignore[arg-type]
    for wrong in (scale * 0.9, scale * 1.1):
        assert chi_square_p_value(sample.ravel(), law(guarantee, wrong)) < FALSE_ALARM  # type: ignore[arg-type]


def test_in_lots__uses_each_number_once_and_drops_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that are all different show where each went; a nested lot, another thread and later work get none."""
    drawn, asked = iter(range(1, 10**6)), []

    def numbers(*_: object) -> object:
        return lambda values: asked.append(len(values)) or [value + next(drawn) for value in values]  # type: ignore[func-returns-value]

    monkeypatch.setattr(noise, "measurement", numbers)
    one, two = (dpf.PureDP(epsilon=1.0), Sensitivity.of(2)), (dpf.PureDP(epsilon=1.0), Sensitivity.of(3))
    seen: list[int] = []
    with noise.in_lots():
        for size in (1, 3, 60, 5):
            seen += noise.add_noise([0] * size, *one)
        seen += noise.add_noise([0], *two)
        with ThreadPoolExecutor(1) as pool:
            seen += pool.submit(noise.add_noise, [0, 0], *one).result()
        seen += noise.add_noise([0] * 65, *one)
        with noise.in_lots():
            seen += noise.add_noise([0], *one)
        seen += noise.add_noise([0], *one)
    seen += noise.add_noise([0], *one)
    assert len(set(seen)) == len(seen) == 140
    assert asked == [1, 3, 60, 64, 1, 2, 65, 1, 1, 1]


def test_in_lots__leaves_noise_that_could_reach_the_end_of_the_integers_to_the_measurement() -> None:
    with noise.in_lots():
        outputs = [noise.add_noise([123_456], dpf.PureDP(epsilon=1e-19), Sensitivity.of(1))[0] for _ in range(100)]
    assert all(-(2**63) <= output <= 2**63 - 1 for output in outputs)
