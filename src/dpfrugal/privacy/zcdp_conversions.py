"""Between ρ-zCDP and (ε, δ)-DP: the ε that ρ implies at a δ, and the largest ρ that implies a given (ε, δ).

Canonne, Kamath, Steinke, arXiv:2004.00010v5, Section 2.3; docs/proofs.md, Theorem 7. Worked number: ρ = 1 is ε = 7.766
at δ = 1e-6; the looser formula ρ + 2√(ρ·ln(1/δ)) gives 8.434.
"""

import math
from functools import lru_cache
from typing import Final

from dpfrugal.errors import ParameterError

# More than the relative rounding errors of a term: two functions within an ulp, and three operations.
ROUNDING: Final = 2.0**-49


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The smallest ε found over orders a = 1 + e^t, by golden-section search on t; infinite where ρ is.

    ε = min over a > 1 of aρ + (ln(1/δ) + (a-1)·ln(1-1/a) - ln a) / (a-1). Every a is sound, so an imperfect minimum
    costs a little ε and nothing else. Rounding errors of the four terms are added, so ε is never below the formula.
    """

    def epsilon(t: float) -> float:
        gap = math.exp(t)  # a - 1
        positive = (1 + gap) * rho - math.log(delta) / gap
        negative = math.log1p(1 / gap) + math.log1p(gap) / gap  # the first is -ln(1 - 1/a)
        return positive - negative + ROUNDING * (positive + negative)

    golden = (math.sqrt(5) - 1) / 2
    low, high = -20.0, 60.0
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if epsilon(left) < epsilon(right) else (left, high)
    # Below ε = 0 the claim would be (0, δ); a tiny positive ε says the same and stays a legal parameter.
    return max(epsilon((low + high) / 2), 1e-12)


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """The largest ρ (to a part in 10^12) whose tight conversion at δ is at most ε."""
    low, high = 0.0, epsilon
    while epsilon_of_zcdp(high, delta) <= epsilon:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if high - low <= 1e-12 * high:
            break
        low, high = (middle, high) if epsilon_of_zcdp(middle, delta) <= epsilon else (low, middle)
    if low == 0.0:
        raise ParameterError(f"epsilon={epsilon:g} with delta={delta:g} is too small to calibrate noise for.")
    return low
