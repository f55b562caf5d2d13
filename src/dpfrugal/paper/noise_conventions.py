"""The two conventions for the noise: *as published*, in data units, and *on the grid*, in steps of 0.001.

A replaced item moves the walk by at most 2 grid steps, which is 0.002 in data units. The authors' program divides the
estimate by 1000 first and then adds the noise of a sensitivity of 2 data units: the same guarantee, a thousand times
the noise. Both are drawn by ``privacy.noise`` on the grid, as integers: as published for a sensitivity of 2000 steps.
"""

from typing import Final, Literal

from dpfrugal.estimators.grid import Grid
from dpfrugal.paper.settings import DECIMALS
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity

Convention = Literal["as published", "on the grid", "its own counts"]
AS_PUBLISHED: Final = "as published"
ON_GRID: Final = "on the grid"
OWN_COUNTS: Final = "its own counts"  # PrivateQuantile adds its noise to counts
CONVENTIONS: Final[tuple[Convention, ...]] = (AS_PUBLISHED, ON_GRID)

STEPS_MOVED: Final = 2
GRID: Final = Grid(DECIMALS)
SENSITIVITIES: Final[dict[Convention, Sensitivity]] = {
    AS_PUBLISHED: Sensitivity.of(STEPS_MOVED * GRID.scale),
    ON_GRID: Sensitivity.of(STEPS_MOVED),
}


def noise_steps(draws: int, guarantee: Guarantee, convention: Convention) -> list[int]:
    """Fresh noise in grid steps."""
    return noise.add_noise([0] * draws, guarantee, SENSITIVITIES[convention])


def released_as_published(estimate: float, guarantee: Guarantee) -> float:
    """A walk's estimate with the authors' noise, drawn on the grid."""
    point = round(estimate * GRID.scale)  # an estimate is a grid point: this undoes the division, exactly
    return GRID.value(noise.add_noise([point], guarantee, SENSITIVITIES[AS_PUBLISHED])[0])


def mean_noise(guarantee: Guarantee, convention: Convention) -> float:
    """The expectation of |noise| in data units, by the formula for continuous noise."""
    return guarantee.noise.mean_distance(guarantee.noise_scale(SENSITIVITIES[convention])) * GRID.step
