"""The grid: real numbers as integers, saturating, never wrapping.

``Grid(decimals=3)`` maps 12.7 to 12700: multiply by 10^decimals, take the floor (the paper, Section 3). What
lies beyond the grid is put on its last point: ±inf are above and below everything, and an estimate, which
stays within ±2^62, can be passed by either of them.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import integer, number

HIGHEST_ITEM: Final = 2**63 - 1
LOWEST_ITEM: Final = -(2**63)
# An estimate starts and is re-anchored within ±2^62, so no stream shorter than 2^62 items can make it wrap.
LARGEST_ESTIMATE: Final = 2**62
MOST_DECIMALS: Final = 15


@dataclass(frozen=True)
class Grid:
    """Points 10^-decimals apart.

    >>> grid = Grid(decimals=3)
    >>> grid.index(12.7), grid.index(-0.0001), grid.value(12700)
    (12700, -1, 12.7)
    """

    decimals: int = 0

    def __post_init__(self) -> None:
        advice = " Rescale the items if they need another unit."
        object.__setattr__(self, "decimals", integer("decimals", self.decimals, 0, MOST_DECIMALS, advice=advice))

    @property
    def scale(self) -> int:
        """Grid steps per unit of the data."""
        return int(10**self.decimals)

    @property
    def step(self) -> float:
        """One grid step in the data's units."""
        return 1 / self.scale

    def index(self, item: int | float) -> int:
        """The grid point at or below ``item``, which must not be NaN. This is the specification."""
        if isinstance(item, int):
            return min(max(item * self.scale, LOWEST_ITEM), HIGHEST_ITEM)
        scaled = item * float(self.scale)
        if math.isinf(scaled):
            return HIGHEST_ITEM if scaled > 0 else LOWEST_ITEM
        return min(max(math.floor(scaled), LOWEST_ITEM), HIGHEST_ITEM)

    def indices(self, items: NDArray[Any]) -> NDArray[np.int64]:
        """``index`` of every item of an integer or float array; NaN becomes 0 and is the caller's to mask."""
        if items.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                scaled = np.floor(items.astype(np.float64) * float(self.scale))
            inside = (scaled >= -(2.0**63)) & (scaled < 2.0**63)
            points = np.where(inside, scaled, 0.0).astype(np.int64)
            points[scaled >= 2.0**63] = HIGHEST_ITEM
            points[scaled < -(2.0**63)] = LOWEST_ITEM
            return points
        if items.dtype.kind == "u":
            items = np.minimum(items, np.uint64(HIGHEST_ITEM))
        wide = items.astype(np.int64)
        limit = HIGHEST_ITEM // self.scale
        points = wide * np.int64(self.scale)
        points[wide > limit] = HIGHEST_ITEM
        points[wide < -limit] = LOWEST_ITEM
        return points

    def value(self, index: int) -> float:
        """The number a grid point stands for."""
        return index / self.scale

    def start(self, start: float) -> int:
        """The grid point of a public start; refused where an estimate could not stay on the grid."""
        if not abs(number("start", start)) < math.inf:
            raise ParameterError(f"start must be finite; {start} is not.")
        index = self.index(start.item() if isinstance(start, np.generic) else start)
        if abs(index) > LARGEST_ESTIMATE:
            raise ParameterError(
                f"start must lie within ±{self.value(LARGEST_ESTIMATE):g} at decimals={self.decimals}; "
                f"{start} does not. Use fewer decimals."
            )
        return index
