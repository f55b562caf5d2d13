"""The state of many keys: an integer per key and quantile, and what is public about them.

A batch moves the estimates; a release adds noise to them, in steps, and yields the state that continues from the
released values. Only here do rows move estimates, and only here is noise added to them (docs/proofs.md, Theorem 10).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.grid import LARGEST_ESTIMATE, Grid
from dpfrugal.estimators.keyed.adaptive_steps import adapted, exponents
from dpfrugal.estimators.keyed.walk import advance_keys, comparable, is_small, walk_keys_plainly
from dpfrugal.estimators.releases import in_quantile_order
from dpfrugal.estimators.walk.kernel_choice import Path
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from dpfrugal.privacy.noise import Progress


@dataclass(frozen=True)
class KeyedState:
    """Arrays of keys × quantiles. Raw: never shown."""

    path: Path
    estimates: NDArray[np.int64]
    steps: NDArray[np.uint8] | None  # public
    anchors: NDArray[np.float64]  # public: the starts or the last released values
    clock: NDArray[np.int64]  # one number: the position of the next row in the stream
    released_at: int  # the clock at the last release
    farthest: int  # public: the largest of all anchors, in grid units
    widest: int  # public: the largest of all steps, in grid units

    @classmethod
    def at(cls, starts: NDArray[np.int64], path: Path, adaptive_steps: bool) -> "KeyedState":
        """Every key at its public start, every step one grid unit."""
        shape = (starts.size, len(path.quantiles))
        estimates = np.empty(shape, dtype=np.int64)
        estimates[:] = starts[:, np.newaxis]
        return cls(
            path=path,
            estimates=estimates,
            steps=np.zeros(shape, dtype=np.uint8) if adaptive_steps else None,
            anchors=np.broadcast_to((starts / path.grid.scale)[:, np.newaxis], shape),
            clock=np.zeros(1, dtype=np.int64),
            released_at=0,
            farthest=int(np.abs(starts).max(initial=0)),
            widest=1,
        )

    @property
    def items(self) -> int:
        """How many rows have come."""
        return int(self.clock[0])

    def copy(self) -> "KeyedState":
        """One that may be walked on without touching this one; what is public is shared."""
        return replace(self, estimates=self.estimates.copy(), clock=self.clock.copy())

    def with_room(self, keys: int, start: int) -> "KeyedState":
        """The same with room for so many keys or more, the new ones at the start."""
        return self.resized(len(self.estimates), max(keys, 2 * len(self.estimates)), start)

    def resized(self, kept: int, keys: int, start: int) -> "KeyedState":
        """The first ``kept`` keys, followed by new ones at the start, ``keys`` in all."""
        new = KeyedState.at(np.full(keys - kept, start, dtype=np.int64), self.path, self.steps is not None)
        return replace(
            self,
            estimates=np.concatenate([self.estimates[:kept], new.estimates]),
            anchors=np.concatenate([self.anchors[:kept], new.anchors]),
            steps=None if self.steps is None else np.concatenate([self.steps[:kept], new.steps]),
            farthest=max(self.farthest, new.farthest),
        )

    def walk(self, codes: NDArray[np.int32], values: NDArray[Any], threads: int) -> None:
        """Move the estimates past rows, and the clock: in one thread, compiled, both or neither."""
        steps = self.steps if self.widest > 1 else None
        end = self.items + codes.size
        if is_small(end):
            walk_keys_plainly(self.estimates, steps, self.clock, codes, values, self.path)
            return
        # A key that is not public yet has come one grid unit a row since the beginning.
        reach = self.farthest + max(end, self.widest * (end - self.released_at))
        items, scale = comparable(values, self.path, reach)
        advance_keys(self.estimates, steps, self.clock, codes, items, scale, self.path, threads)

    def release(
        self, keys: NDArray[np.int64] | None, guarantee: Guarantee, sensitivity: Sensitivity, progress: Progress | None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], "KeyedState"]:
        """Private values of some keys or all, the exponents of the steps of their noise, and the state to go on from.

        An estimate walks on a lattice: its last anchor plus whole steps. Noise is added to its number on that lattice.
        """
        chosen = slice(None) if keys is None else keys
        raw = self.estimates[chosen]
        exponent = np.zeros(raw.shape, dtype=np.int64) if self.steps is None else exponents(self.steps[chosen])
        offset = raw & ((1 << exponent) - 1)  # that of the anchor: public
        noisy = noise.add_noise_to_many((raw >> exponent).reshape(-1), guarantee, sensitivity, progress)
        ends = LARGEST_ESTIMATE >> exponent
        points = (np.clip(noisy.reshape(raw.shape), -ends, ends - 1) << exponent) + offset
        values = points / self.path.grid.scale
        steps = self.steps
        if steps is not None:
            moved = (values - self.anchors[chosen]) * self.path.grid.scale / (1 << exponent)
            steps = steps.copy()
            steps[chosen] = adapted(steps[chosen], moved, guarantee.noise_deviation(sensitivity))
        ordered = in_quantile_order(points, self.path.quantiles)
        values = in_quantile_order(values, self.path.quantiles)
        crossed = (ordered != points).any(axis=1, keepdims=True)  # then each value may carry the noise of any
        shown = np.where(crossed, exponent.max(axis=1, keepdims=True, initial=0), exponent)
        estimates, anchors = ordered, values
        if keys is not None:
            estimates, anchors = self.estimates.copy(), np.array(self.anchors)
            estimates[keys], anchors[keys] = ordered, values
        return (
            values,
            shown,
            replace(
                self,
                estimates=estimates,
                steps=steps,
                anchors=self.anchors if steps is None else anchors,
                clock=self.clock.copy(),
                released_at=self.items,
                farthest=max(self.farthest, int(np.abs(points).max(initial=0))),
                widest=1 if steps is None else 1 << int(exponents(steps).max(initial=0)),
            ),
        )


def starts_of(start: float | Sequence[float], grid: Grid, keys: int) -> NDArray[np.int64]:
    """The grid points of the public starts: one for all keys, or one for each."""
    if np.ndim(start) == 0:
        return np.full(keys, grid.start(start), dtype=np.int64)  # type: ignore[arg-type]
    points = np.array([grid.start(one) for one in start], dtype=np.int64)  # type: ignore[union-attr]
    if points.size != keys:
        raise ParameterError(f"start must be one number, or one for each of {keys:,} keys; there are {points.size:,}.")
    return points
