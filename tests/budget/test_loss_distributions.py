"""Losses of (ε, δ) guarantees composed: against every outcome of randomised responses, one by one."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.budget.loss_distributions import losses_of_pairs

pairs = st.tuples(st.sampled_from([0.1, 0.25, 0.5, 1.0, 1.3]), st.sampled_from([0.0, 1e-6, 0.01]))


def delta_of(spent: list[tuple[float, float]], epsilon: float) -> float:
    """Σ max(0, p - e^ε·q) over all outcomes of one randomised response after the other."""
    outcomes = []
    for e, d in spent:
        likely = 1 / (1 + math.exp(-e))
        outcomes.append([(d, 0.0), (0.0, d), ((1 - d) * likely, (1 - d) * (1 - likely)),
                         ((1 - d) * (1 - likely), (1 - d) * likely)])  # fmt: skip
    total = 0.0
    for way in itertools.product(*outcomes):
        p, q = math.prod(one for one, _ in way), math.prod(other for _, other in way)
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@settings(max_examples=40)
@given(st.lists(pairs, min_size=1, max_size=5), st.sampled_from([0.0, 0.3, 1.0, 2.0]))
def test_losses_of_pairs__have_the_delta_of_all_outcomes(spent: list[tuple[float, float]], epsilon: float) -> None:
    assert losses_of_pairs(spent).delta(epsilon) == pytest.approx(delta_of(spent, epsilon), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.02])
def test_losses__epsilon_is_the_smallest_for_its_delta(delta: float) -> None:
    losses = losses_of_pairs([(0.5, 0.0)] * 10)
    epsilon = losses.epsilon(delta)
    assert 0 < epsilon < 5.0  # less than the sum
    assert losses.delta(epsilon) <= delta < losses.delta(epsilon * (1 - 1e-6))


def test_losses__no_epsilon_has_less_delta_than_the_spends_have() -> None:
    losses = losses_of_pairs([(0.5, 0.01), (0.5, 0.01)])
    assert losses.infinite == pytest.approx(1 - 0.99**2)
    assert losses.epsilon(0.01) == math.inf
    assert losses.epsilon(0.5) == 0.0
