"""Between zCDP and (ε, δ): never below the formula, by an independent minimum in sixty digits."""

import math

import mpmath
import pytest

from dpfrugal.privacy.zcdp_conversions import epsilon_of_zcdp, rho_for

DELTAS = [0.1, 1e-3, 1e-6, 1e-12, 1e-30, 1e-300]


def true_epsilon(rho: float, delta: float) -> mpmath.mpf:
    """The minimum over orders of the formula of Theorem 7, by ternary search in sixty digits."""
    with mpmath.workdps(60):
        exact_rho, loss = mpmath.mpf(rho), -mpmath.log(mpmath.mpf(delta))

        def epsilon(t: mpmath.mpf) -> mpmath.mpf:
            a = 1 + mpmath.exp(t)
            return a * exact_rho + (loss + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)) / (a - 1)

        low, high = mpmath.mpf(-20), mpmath.mpf(60)
        for _ in range(200):
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (low, right) if epsilon(left) < epsilon(right) else (left, high)
        return epsilon((low + high) / 2)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [10.0**power for power in range(-12, 3, 2)] + [1e-9])
def test_rho_for__never_exceeds_the_promise_and_nearly_reaches_it(epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta)
    truth = true_epsilon(rho, delta)
    assert truth <= epsilon
    assert true_epsilon(rho * (1 + 1e-6), delta) > epsilon * (1 - 1e-6)
    assert epsilon_of_zcdp(rho, delta) >= truth


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [10.0**power for power in range(-26, 5, 3)])
def test_epsilon_of_zcdp__is_the_formula_rounded_up(rho: float, delta: float) -> None:
    """Where the formula is negative the promise is (0, δ), for which the smallest legal ε stands."""
    truth, found = true_epsilon(rho, delta), epsilon_of_zcdp(rho, delta)
    assert found >= truth
    # Close to ε = 0 its terms cancel, and their rounding errors remain.
    terms = math.sqrt(rho * -math.log(delta)) + rho + min(1.0, delta)
    assert found <= max(float(truth) * (1 + 1e-9), 1e-12) + 1e-12 * terms
