"""The evidence of all segments about one quantile, in five sums; and whether segments agree with each other.

Each segment measures q - F(c) at its own edge c. With one density f for all of them, the weighted mean of
c + (q - F(c)) / f is the mean of one-step estimates, less what a bent CDF adds to it. The weights depend on the number
of items and on the noise only, never on a density, so a mistaken density cannot favour a segment.
"""

import math
from dataclasses import dataclass

LARGEST_MEAN_SQUARE = 3.0  # of the residuals, where segments agree; 1 is expected
LARGEST_MEAN = 4 / 3  # of the residuals, where segments agree; its standard deviation is 1/3
KEPT = 0.8  # of the running means, per segment


@dataclass(frozen=True)
class Target:
    """The quantile that is sought."""

    q: float

    @property
    def variance(self) -> float:
        """Of one item's being below the quantile."""
        return self.q * (1 - self.q)

    @property
    def tail(self) -> float:
        """The share of the items on the quantile's thinner side."""
        return min(self.q, 1 - self.q)

    @property
    def bend(self) -> float:
        """f'/f² where both tails are exponential: -99 at q = 0.99, and nothing at the median."""
        return (1 - 2 * self.q) / self.variance


@dataclass
class Evidence:
    """Sums over segments of weights, of weights times (c - base) and its square, and of weights times (q - F(c))."""

    weight: float = 0.0
    centre: float = 0.0
    gap: float = 0.0
    base: float = 0.0
    spread: float = 0.0

    def add(self, centre: float, gap: float, weight: float) -> None:
        """One more measurement of q - F(centre)."""
        if self.weight == 0:
            self.base = centre
        self.weight += weight
        self.centre += weight * (centre - self.base)
        self.spread += weight * (centre - self.base) ** 2
        self.gap += weight * gap

    def forget(self) -> None:
        """Forget everything."""
        self.weight = self.centre = self.gap = self.spread = 0.0

    def quantile(self, density: float, bend: float = 0.0) -> float:
        """The mean of the one-step estimates.

        A density that falls bends the CDF, and leads every step from the edge c, on either side, too far out: by
        bend·f·(c - Q)²/2, with bend = f'/f². That is taken back, as far as it is a correction and not a guess.
        """
        step = (self.centre + (self.gap / density if self.gap else 0.0)) / self.weight
        if not bend:
            return self.base + step
        squares = max(0.0, (self.spread - 2 * step * self.centre) / self.weight + step**2)
        most = 0.5 * self.error / density
        return self.base + step + min(max(bend * density * squares / 2, -most), most)

    @property
    def error(self) -> float:
        """The standard error of ``quantile``, as a share of the items."""
        return 1 / math.sqrt(self.weight) if self.weight else math.inf


@dataclass
class Agreement:
    """Running means of residuals and their squares: each segment against the earlier ones, in standard errors."""

    surprise: float = 1.0
    trend: float = 0.0

    def note(self, residual: float) -> None:
        """One more segment."""
        residual = min(max(residual, -5.0), 5.0)
        self.surprise = KEPT * self.surprise + (1 - KEPT) * residual**2
        self.trend = KEPT * self.trend + (1 - KEPT) * residual

    def contradicted(self) -> None:
        """A segment contradicted a bound that had been accepted."""
        self.surprise = 25.0

    def explained(self) -> None:
        """Residuals were large because of ties that had not been detected yet."""
        self.surprise, self.trend = min(self.surprise, 1.0), 0.0

    @property
    def stable(self) -> bool:
        """Whether consecutive segments agree."""
        return self.surprise < LARGEST_MEAN_SQUARE and abs(self.trend) < LARGEST_MEAN

    @property
    def widening(self) -> float:
        """By how much to widen an interval: by nothing while segments agree."""
        return 1.0 if self.stable else max(2.0, math.sqrt(self.surprise), 3 * abs(self.trend))
