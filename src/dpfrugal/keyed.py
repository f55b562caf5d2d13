"""DP-Frugal-1U for every key of a stream: a private GROUP BY quantile in 8 bytes per key and quantile.

A row is a key and a value. Replacing a row, its value and its key, moves the estimate of one key by at most two steps,
or those of two keys by at most one step each: over all keys together 2 in L1 and at most 2 in L2, so that a table of a
million keys costs one guarantee (docs/proofs.md, Theorem 10). A release adds noise to *every* key, whether or not it
has had rows, and re-anchors all of them: any number of releases costs the one guarantee.

Worked number: ``decimals=1``, ε = 1: noise of scale 2 steps of 0.1, so |noise| < 0.7 with probability 95%, for a key
with a hundred rows as for one with a million.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal import coins, noise
from dpfrugal.errors import ItemError, ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.frugal import NanPolicy, checked_nan_policy, quantiles_of
from dpfrugal.grid import LARGEST_ESTIMATE, Grid
from dpfrugal.guarantees import Guarantee, Sensitivity, checked_guarantee, checked_max_items
from dpfrugal.guard import Guarded
from dpfrugal.items import chunks
from dpfrugal.key_arrays import parts
from dpfrugal.key_index import UNDECLARED, KeyIndex, NullKeys, checked_null_keys
from dpfrugal.keyed_release import KeyedClaim, table_of
from dpfrugal.keyed_walk import advance_keys, comparable, is_small, walk_keys_plainly
from dpfrugal.noise import Progress
from dpfrugal.release import SHOWN_BETA
from dpfrugal.steps import adapted, exponents, usual_noise
from dpfrugal.walk import Path

# So many rows are looked up and walked at once: their codes take 4 MB.
PIECE: Final = 1 << 20
MOST_THREADS: Final = 64


def keyed_sensitivity(quantiles: int, max_items_per_person: int, max_keys_per_person: int | None) -> Sensitivity:
    """How far the rows of one person can move all estimates of all keys and releases together, in steps (Theorem 10).

    ``max_keys_per_person=None``: up to ``max_items_per_person`` rows, in whatever keys. Otherwise up to so many rows
    in each of up to ``max_keys_per_person`` keys.
    """
    keys = 1 if max_keys_per_person is None else max_keys_per_person
    steps = 2 * max_items_per_person
    return Sensitivity(l1=steps * keys * quantiles, l2_squared=steps**2 * keys * quantiles)


class KeyedDPFrugal1U(Guarded):
    """Private quantiles for each of many keys, one integer per key and quantile, all under one guarantee.

    The guarantee (Theorem 10) is for neighbours that differ by one replaced row, whose value and key may both change;
    or by the rows of one person: at most ``max_items_per_person`` of them or, with ``max_keys_per_person``, at most so
    many in each of at most so many keys. The number of rows and the release times are public, and so are the declared
    keys, the starts and the steps.

    Rows with a key that was not declared are dropped. ``start`` is one public number, or one for each key. With
    ``adaptive_steps`` the step of a key doubles while its releases move on, and halves when they have arrived; see
    ``steps``. State: 8 bytes per key and quantile; with adaptive steps one more, and the last release, which is
    public.

    >>> from dpfrugal import PureDP
    >>> k = KeyedDPFrugal1U(0.5, PureDP(epsilon=1.0), keys=["/home", "/pay"], decimals=1, start=20.0)
    >>> k.update_many(["/home", "/pay", "/else"] * 5_000, [20.5, 21.5, 3.0] * 5_000)
    >>> table = k.release()
    >>> table.column_names, table["key"].to_pylist(), k.items
    (['key', 'quantile', 'value', 'alpha'], ['/home', '/pay'], 15000)
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        guarantee: Guarantee,
        *,
        keys: Any = None,
        decimals: int = 0,
        start: float | Sequence[float] = 0.0,
        max_items_per_person: int = 1,
        max_keys_per_person: int | None = None,
        adaptive_steps: bool = True,
        nan_policy: NanPolicy = "raise",
        null_keys: NullKeys = "raise",
        threads: int = 1,
        coin_seed: int | None = None,
    ) -> None:
        super().__init__()
        self._guarantee = checked_guarantee(guarantee)
        self._max_items_per_person = checked_max_items(max_items_per_person)
        self._max_keys_per_person = checked_max_keys_per_person(max_keys_per_person)
        self._path = Path(quantiles_of(quantile), Grid(decimals), coins.key_from_seed(coin_seed))
        self._nan_policy, self._null_keys = checked_nan_policy(nan_policy), checked_null_keys(null_keys)
        self._threads = checked_threads(threads)
        self._sensitivity = keyed_sensitivity(
            len(self.quantiles), self._max_items_per_person, self._max_keys_per_person
        )
        guarantee.noise_scale(self._sensitivity)  # what cannot be calibrated is refused here, not at the release
        if keys is None:
            raise ParameterError(
                "keys must be given: which keys there are is data too, and must not be read off the rows."
            )
        self._index = KeyIndex(keys)
        shape = (self._index.size, len(self.quantiles))
        starts = starts_of(start, self._path.grid, self._index.size)
        self._estimates = np.empty(shape, dtype=np.int64)
        self._estimates[:] = starts[:, np.newaxis]
        self._steps = np.zeros(shape, dtype=np.uint8) if adaptive_steps else None
        self._anchors: NDArray[np.float64] = np.broadcast_to(starts[:, np.newaxis] / self._path.grid.scale, shape)
        self._clock = np.zeros(1, dtype=np.int64)  # the position of the next row
        self._last: Any = None
        self._last_items = 0
        self._farthest, self._widest = int(np.abs(starts).max()), 1

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are estimated, in the caller's order."""
        return self._path.quantiles

    @property
    def guarantee(self) -> Guarantee:
        """What covers every release of every key together."""
        return self._guarantee

    @property
    def keys(self) -> Any:
        """The declared keys, as a pyarrow.Array."""
        return self._index.keys

    @property
    def items(self) -> int:
        """How many rows have been taken in, omitted and dropped ones included."""
        return int(self._clock[0])

    def update_many(self, keys: Any, values: Any) -> None:
        """Take in a batch of rows: all of it, or, where any of it is refused, nothing."""
        with self._alone():
            key_parts, values = list(parts(keys)), sized(values)
            rows = sum(len(part) for part in key_parts)
            if rows != len(values):
                raise ItemError(
                    f"keys and values must be of the same length; there are {rows:,} keys and {len(values):,} values."
                )
            self._take(Rows(self._index, key_parts, self._null_keys, values, self._nan_policy), rows)

    def _take(self, batch: "Rows", rows: int) -> None:
        """A batch of one piece is one call of compiled code on the state itself; all else walks on a copy of it."""
        pieces: Iterator[Piece] | list[Piece] = iter(batch)
        if rows <= PIECE:
            pieces = list(pieces)
            if len(pieces) == 1 and self._threads == 1 and not is_small(self.items + rows):
                self._walk(self._estimates, self._clock, pieces[0])
                return
        estimates, clock = self._estimates.copy(), self._clock.copy()
        for piece in pieces:
            self._walk(estimates, clock, piece)
        if int(clock[0]) != self.items + rows:
            raise ItemError("values must hold as many items as their length says.")
        # No interrupt can come between these two stores.
        self._estimates, self._clock = estimates, clock

    def _walk(self, estimates: NDArray[np.int64], clock: NDArray[np.int64], piece: "Piece") -> None:
        end = int(clock[0]) + piece.codes.size
        steps = self._steps if self._widest > 1 else None
        if is_small(end):
            walk_keys_plainly(estimates, steps, clock, piece.codes, piece.values, self._path)
            return
        reach = self._farthest + self._widest * (end - self._last_items)
        items, scale = comparable(piece.values, self._path, reach)
        advance_keys(estimates, steps, clock, piece.codes, items, scale, self._path, self._threads)

    def release(self, progress: Progress | None = None) -> Any:
        """A pyarrow.Table with a private value for every key and quantile, and its α at β = 0.05.

        The same table again where no row has come since the last release. ``progress`` is called with the number of
        values that have their noise, and the number of all.
        """
        with self._alone():
            if self._last is None or self._last_items < self.items:
                self._fresh_release(progress)
            return self._last

    def _fresh_release(self, progress: Progress | None) -> None:
        """Noise in steps, on the lattice that each estimate walks on; then re-anchor. Theorem 10 rests on this."""
        raw, shape = self._estimates, self._estimates.shape
        exponent = np.zeros(shape, dtype=np.int64) if self._steps is None else exponents(self._steps)
        lattice, offset = raw >> exponent, raw & ((1 << exponent) - 1)  # the offset is that of the last, public, anchor
        noisy = noise.add_noise_to_many(lattice.reshape(-1), self._guarantee, self._sensitivity, progress)
        ends = LARGEST_ESTIMATE >> exponent
        points = (np.clip(noisy.reshape(shape), -ends, ends - 1) << exponent) + offset
        values = points / self._path.grid.scale
        steps = self._steps
        if steps is not None:
            moved = (values - self._anchors) * self._path.grid.scale / (1 << exponent)
            steps = adapted(steps, moved, usual_noise(self._guarantee, self._sensitivity))
        order = np.argsort(np.argsort(self.quantiles))
        points, values = np.sort(points, axis=1)[:, order], np.sort(values, axis=1)[:, order]
        alpha = self._guarantee.alpha(SHOWN_BETA, self._sensitivity, exact=True) * self._path.grid.step
        claim = KeyedClaim(
            guarantee=self._guarantee,
            max_items_per_person=self._max_items_per_person,
            max_keys_per_person=self._max_keys_per_person,
            items=self.items,
        )
        table = table_of(self.keys, self.quantiles, values, np.ldexp(alpha, exponent), claim.metadata())
        farthest, widest = int(np.abs(points).max()), 1 if steps is None else 1 << int(exponents(steps).max())
        items = self.items
        # Re-anchor. No interrupt can come between these stores.
        self._estimates, self._steps, self._anchors, self._last, self._last_items = points, steps, values, table, items
        self._farthest, self._widest = farthest, widest

    def __repr__(self) -> str:
        shown = self.quantiles[0] if len(self.quantiles) == 1 else list(self.quantiles)
        return f"{type(self).__name__}({shown}, {self._guarantee}, keys={self._index.size}, items={self.items})"


@dataclass(frozen=True)
class Piece:
    """Rows to be walked: the codes of their keys, and their values; a negative code moves nothing."""

    codes: NDArray[np.int32]
    values: NDArray[Any]


class Rows:
    """A batch as pieces. Keys and values need not be cut at the same places."""

    def __init__(
        self, index: KeyIndex, key_parts: list[Any], null_keys: NullKeys, values: Any, nan_policy: NanPolicy
    ) -> None:
        self._index, self._key_parts, self._null_keys = index, key_parts, null_keys
        self._values, self._nan_policy = values, nan_policy

    def __iter__(self) -> Iterator[Piece]:
        part, first = 0, 0
        for chunk in chunks(self._values):
            for at in range(0, chunk.values.size, PIECE):
                values = chunk.values[at : at + PIECE]
                found, wanted = [], values.size
                while wanted:
                    if part == len(self._key_parts):
                        raise ItemError("values must hold as many items as their length says.")
                    piece = self._key_parts[part][first : first + wanted]
                    found.append(self._index.codes(piece, self._null_keys))
                    wanted, first = wanted - len(piece), first + len(piece)
                    if first == len(self._key_parts[part]):
                        part, first = part + 1, 0
                codes = found[0] if len(found) == 1 else np.concatenate(found)
                missing = None if chunk.missing is None else chunk.missing[at : at + PIECE]
                yield Piece(self._present(codes, values, missing), values)

    def _present(
        self, codes: NDArray[np.int32], values: NDArray[Any], missing: NDArray[np.bool_] | None
    ) -> NDArray[np.int32]:
        """The codes, negative where the value is NaN or null."""
        absent = np.isnan(values) if values.dtype.kind == "f" else None
        if missing is not None:
            absent = missing if absent is None else absent | missing
        if absent is None or not absent.any():
            return codes
        if self._nan_policy == "raise":
            raise ItemError('The batch has NaN or null items; clean the data, or use nan_policy="omit".')
        return np.where(absent, np.int32(UNDECLARED), codes)


def sized(values: Any) -> Any:
    """``values``, or a list of them where they have no length."""
    try:
        len(values)
    except TypeError:
        if isinstance(values, Iterable) and not hasattr(values, "__len__"):
            return list(values)
        for _ in chunks(values):  # says what is wrong with them
            break
        raise ItemTypeError(f"values must be a batch of real numbers, not {type(values).__name__}.") from None
    return values


def starts_of(start: float | Sequence[float], grid: Grid, keys: int) -> NDArray[np.int64]:
    """The grid points of the public starts: one for all keys, or one for each."""
    if np.ndim(start) == 0:
        return np.full(keys, grid.start(start), dtype=np.int64)  # type: ignore[arg-type]
    points = np.array([grid.start(one) for one in start], dtype=np.int64)  # type: ignore[union-attr]
    if points.size != keys:
        raise ParameterError(
            f"start must be one number, or one for each of the {keys:,} keys; there are {points.size:,}."
        )
    return points


def checked_max_keys_per_person(max_keys_per_person: int | None) -> int | None:
    """``max_keys_per_person``, if it can be one."""
    if max_keys_per_person is None:
        return None
    if isinstance(max_keys_per_person, bool) or not isinstance(max_keys_per_person, int | np.integer):
        raise ParameterTypeError(
            f"max_keys_per_person must be an integer or None, not {type(max_keys_per_person).__name__}."
        )
    if not 1 <= max_keys_per_person <= 10**9:
        raise ParameterError(f"max_keys_per_person must be between 1 and 10**9; {max_keys_per_person} is not.")
    return int(max_keys_per_person)


def checked_threads(threads: int) -> int:
    """``threads``, if it is a power of two."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer):
        raise ParameterTypeError(f"threads must be an integer, not {type(threads).__name__}.")
    if not 1 <= threads <= MOST_THREADS or threads & (threads - 1):
        raise ParameterError(f"threads must be a power of two between 1 and {MOST_THREADS}; {threads} is not.")
    return int(threads)
