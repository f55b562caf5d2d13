"""Codes: an answer as an int64 that has the order of the answers.

The code of a double is its place among all doubles (−0.0 is 0.0), that of an integer the integer itself.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
INFINITY: Final = 0x7FF0000000000000  # the code of inf


def codes_of(values: NDArray[np.float64]) -> Codes:
    """The places of doubles among all doubles."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & np.int64(2**63 - 1)))


def doubles_of(codes: Codes) -> NDArray[np.float64]:
    """The doubles at these places; what lies beyond ±inf is ±inf."""
    codes = np.minimum(np.maximum(np.asarray(codes, dtype=np.int64), -INFINITY), INFINITY)
    return np.where(codes >= 0, codes, -codes | np.int64(-(2**63))).view(np.float64)
