"""Noise that a test chooses: every function through which an estimator takes noise is replaced here, at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.estimators.segments import planner
from dpfrugal.estimators.table.choices import group_answers
from dpfrugal.privacy import noise

Draw = Callable[[list[int]], list[int]]


def replace_noise(patch: pytest.MonkeyPatch, draw: Draw) -> None:
    """Answer every request for noise with ``draw(values)``, in the place of values plus noise."""

    def few(values: Any, *_: object) -> list[int]:
        return draw([int(value) for value in values])

    def many(values: NDArray[np.int64], *_: object) -> NDArray[np.int64]:
        return np.array(draw(values.tolist()), dtype=np.int64)

    patch.setattr(noise, "add_noise", few)
    patch.setattr(noise, "add_noise_to_many", many)
    patch.setattr(planner, "add_noise", few)
    patch.setattr(group_answers, "add_noise_to_many", many)


def no_noise(values: list[int]) -> list[int]:
    """The values themselves: two estimators that are fed the same items are then in the same state."""
    return values


class Seeded:
    """Small noise that another tape of the same seed repeats; ``drawn`` counts the numbers."""

    def __init__(self, seed: int) -> None:
        self._draws, self.drawn = np.random.default_rng(seed), 0

    def __call__(self, values: list[int]) -> list[int]:
        self.drawn += len(values)
        return [value + int(self._draws.integers(-4, 5)) for value in values]


class Fixed:
    """Outputs that do not depend on the values; ``hidden`` records the values, request by request."""

    def __init__(self, lowest: int) -> None:
        self._lowest = lowest
        self.hidden: list[list[int]] = []

    def __call__(self, values: list[int]) -> list[int]:
        self.hidden.append(list(values))
        return [self._lowest + (3 * k + len(self.hidden)) % 5 for k in range(len(values))]
