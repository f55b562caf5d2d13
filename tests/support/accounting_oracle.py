"""Google's ``dp-accounting`` as an oracle: what it makes of (ε, δ) pairs."""

import math
from typing import Any

from dp_accounting import pld
from dp_accounting.pld import privacy_loss_distribution as distributions

INTERVAL = 2e-4  # dp-accounting rounds every loss to a multiple of it
ROUNDING = 1e-12  # what its Fourier transforms and cut tails may move a δ by


def oracle(pairs: list[tuple[float, float, int]], *, pessimistic: bool) -> Any:
    """What dp-accounting makes of (ε, δ) pairs, each so many times: from above, or from below."""
    together: Any = None
    for epsilon, delta, times in pairs:
        if pessimistic:
            asked = pld.common.DifferentialPrivacyParameters(epsilon, delta)
            part = distributions.from_privacy_parameters(asked, INTERVAL)
        else:
            rest, likely, unlikely = math.log1p(-delta), -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
            sure = {"sure": math.log(delta)} if delta else {}
            part = distributions.from_two_probability_mass_functions(
                {"yes": rest + unlikely, "no": rest + likely},
                {"yes": rest + likely, "no": rest + unlikely} | sure,
                pessimistic_estimate=False,
                value_discretization_interval=INTERVAL,
            )
        part = part.self_compose(times, tail_mass_truncation=0.0)
        together = part if together is None else together.compose(part, tail_mass_truncation=0.0)
    return together
