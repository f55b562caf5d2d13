"""Codes of doubles one at a time, the mass of an index by its definition, and what to try."""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import Base, Regions
from dpfrugal.estimators.table.base.codes import codes_of, doubles_of

EDGES = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1.0,
    2.0,
    7.25,
    -0.1,
    2.0**53,
    9e14,
    1.7976931348623157e308,
]
EDGES += [
    math.inf,
    -math.inf,
    math.nextafter(1, 0),
    math.nextafter(2.0**49, 0),
    2.0**53 / 10,
    123.45,
    1e9 + 0.5,
    9 * 1.15078,
    1.15078,
    1 / 3,
    2000 + 1 / 12,
    2.0**49 / 10**5,
    math.nextafter(-(2.0**49) / 10**6, -math.inf),
    2.0**49 // 1150780 * 1150780 / 10**6,
    -1e-300,
]
doubles = st.one_of(st.sampled_from(EDGES), st.floats(allow_nan=False), st.floats(-1000, 1000), st.integers(-999, 999))
integers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-100, 100),
    st.integers(0, 62).map(lambda e: 2**e),
    st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 1, 2**53, 2**53 + 1, 2**62 - 1, -(2**62)]),
)


def code(value: float) -> int:
    return int(codes_of(np.array([value], dtype=np.float64))[0])


def double(place: int) -> float:
    return float(doubles_of(np.array([place], dtype=np.int64))[0])


def share(distance: int) -> int:
    """The mass of an index at a distance from the centre, by the definition."""
    return 2**63 if not distance else 2 ** (63 - (abs(distance).bit_length() - 1))


def regions(base: Base, at: Sequence[int]) -> Regions:
    return Regions(base.components, base.low, np.array(at, dtype=np.int64), base.high)
