"""Theorem 12: privacy losses of independent guarantees, against an enumeration of all outcomes."""

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.budget import loss_distributions

epsilons = st.floats(0.01, 3.0).map(lambda number: float(f"{number:.3g}"))


def exact_delta(pairs: list[tuple[float, float]], epsilon: float) -> float:
    """By enumeration of every outcome of every randomised response: the definition of (ε, δ)."""
    outcomes = []
    for size, delta in pairs:
        likely = 1 / (1 + math.exp(-size))
        outcomes.append(
            [
                (delta, 0.0),
                ((1 - delta) * likely, (1 - delta) * (1 - likely)),
                ((1 - delta) * (1 - likely), (1 - delta) * likely),
            ]
        )
    total = 0.0
    for outcome in itertools.product(*outcomes):
        p, q = math.prod(pair[0] for pair in outcome), math.prod(pair[1] for pair in outcome)
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


@settings(max_examples=60)
@given(st.lists(st.tuples(epsilons, st.sampled_from([0.0, 1e-6, 0.01])), min_size=1, max_size=6), st.floats(0.0, 6.0))
def test_theorem_12__losses_are_those_of_randomised_response(pairs: list[tuple[float, float]], epsilon: float) -> None:
    truth, found = exact_delta(pairs, epsilon), loss_distributions.losses_of_pairs(pairs).delta(epsilon)
    assert truth * (1 - 1e-9) - 1e-15 <= found  # never less
    finest = 2 * sum(size for size, _ in pairs) / loss_distributions.MOST_POINTS
    assert found <= exact_delta(pairs, epsilon - len(pairs) * finest) * (1 + 1e-9) + 1e-15  # each is rounded up by less
