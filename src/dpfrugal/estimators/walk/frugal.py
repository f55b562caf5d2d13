"""Frugal-1U: a quantile of a stream in one integer (the paper, Algorithm 1). Not private.

Each item uses one coin and moves the estimate by at most one grid unit: 8 bytes of state per quantile, whatever the
length of the stream. Convergence from a start D grid units away takes at least D items. Then the estimate fluctuates
around the quantile with a standard deviation of √(q(1-q)/f) grid units, f being the density there.

Worked number: the 0.99-quantile of normal(50, 2) is 54.65; with ``decimals=3`` the estimate converges from 0 in about
55,000 items, and then stays within about ±0.04.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpfrugal import parameters
from dpfrugal.errors import ItemError, ParameterError
from dpfrugal.estimators.grid import HIGHEST_ITEM, Grid
from dpfrugal.estimators.walk.kernel_choice import Path, advance, advance_by_numpy
from dpfrugal.inputs.numbers import Chunk, chunks, number
from dpfrugal.kernels import coins
from dpfrugal.kernels.compiler import worth_loading
from dpfrugal.parameters import NanPolicy
from dpfrugal.storage import checkpoint_file, json_values
from dpfrugal.storage.checkpoint_file import Contents

# Single items are buffered up to this many; whatever reads the state processes them first.
MOST_PENDING: Final = 1 << 10
# numpy walks so many items in a fifth of the time that loading the compiler takes.
WORTH_COMPILING: Final = 1 << 20
# So few are walked fastest one by one.
A_HANDFUL: Final = 16


def step(estimate: int, item: float, coin: int, up_from: int, down_from: int) -> int:
    """One item: the specification that every kernel is held to. docs/proofs.md, Theorem 1, rests on it.

    ``coin >= up_from`` is the paper's ``rand > 1 - q`` and ``coin >= down_from`` its ``rand > q``.
    """
    if item > estimate and coin >= up_from:
        return estimate + 1
    if item < estimate and coin >= down_from:
        return estimate - 1
    return estimate


def walk_plainly(estimates: NDArray[np.int64], position: int, chunk: Chunk, path: Path) -> int:
    """``kernel_choice.advance`` in plain Python: the oracle, and the fastest way for a handful of items."""
    absent = 0
    for i, item in enumerate(chunk.values.tolist()):
        if item != item or (chunk.missing is not None and chunk.missing[i]):
            absent += 1  # it moves nothing, but its position's coin is used up all the same
            continue
        point, coin = path.grid.index(item), coins.coin(path.key, position + i)
        for k, (up_from, down_from) in enumerate(path.thresholds):
            estimates[k] = step(int(estimates[k]), point, coin, up_from, down_from)
    return absent


def admitted(item: Any, nan_policy: NanPolicy) -> int | float:
    """One item as a plain number, unless the policy refuses it."""
    plain = number(item)
    if plain != plain and nan_policy == "raise":
        raise ItemError('An item is NaN; clean the data, or use nan_policy="omit".')
    return plain


def points_of(record: Any, size: int) -> NDArray[np.int64]:
    """Grid points out of a checkpoint."""
    points = [json_values.integer_of(point, -HIGHEST_ITEM) for point in json_values.list_of(record, size)]
    return np.array(points, dtype=np.int64)


class Frugal1U:
    """The paper's algorithm for one quantile, or for several in one pass. **Not private**: see ``DPFrugal1U``.

    Several quantiles share each position's coin; their estimates then never cross (docs/proofs.md, Theorem 3).
    Not thread-safe. State: one integer per quantile, and the number of items.

    >>> import numpy as np
    >>> f = Frugal1U(0.5, decimals=1, coin_seed=7)
    >>> f.update_many(np.full(1000, 12.5))
    >>> f.update(12.5)
    >>> f.estimate, f.items
    (12.5, 1001)
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        *,
        decimals: int = 0,
        start: float = 0.0,
        nan_policy: NanPolicy = "raise",
        coin_seed: int | None = None,
    ) -> None:
        self._path = Path(parameters.quantiles(quantile), Grid(decimals), coins.key_from_seed(coin_seed))
        self._nan_policy = parameters.nan_policy(nan_policy)
        self._estimates = np.full(len(self.quantiles), self._path.grid.start(start), dtype=np.int64)
        self._position = 0
        self._pending: list[int | float] = []

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are estimated, in the caller's order."""
        return self._path.quantiles

    @property
    def items(self) -> int:
        """How many items have been taken in, omitted ones included."""
        return self._position + len(self._pending)

    @property
    def estimates(self) -> tuple[float, ...]:
        """The current estimates in the data's units, in the order of ``quantiles``."""
        return tuple(self._path.grid.value(int(point)) for point in self._settled())

    @property
    def estimate(self) -> float:
        """The current estimate, where only one quantile is estimated."""
        if len(self.quantiles) != 1:
            raise ParameterError(f"estimate is for one quantile; there are {len(self.quantiles)}: use estimates.")
        return self.estimates[0]

    def update(self, item: float) -> None:
        """Take in one item."""
        if (kind := type(item)) is not int and (kind is not float or item != item):
            item = admitted(item, self._nan_policy)
        self._pending.append(item)
        if len(self._pending) >= MOST_PENDING:
            self._settled()

    def update_many(self, items: Iterable[float] | Any) -> None:
        """Take in a batch: all of it, or, where any of it is refused, nothing."""
        self._settled()
        self._take(chunks(items))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, whole or not at all: raw state, readable by its owner only."""
        checkpoint_file.write(path, self._contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Continue from a checkpoint exactly as the saved estimator would have."""
        contents = checkpoint_file.read(path, cls.__name__)
        return checkpoint_file.restored(path, lambda: cls._of_contents(contents))

    def _contents(self) -> Contents:
        estimates = self._settled().tolist()
        parameters = {
            "quantiles": json_values.packed(self.quantiles),
            "decimals": self._path.grid.decimals,
            "nan_policy": self._nan_policy,
        }
        state = {"key": self._path.key, "position": self._position, "estimates": estimates}
        return Contents(type(self).__name__, parameters, state)

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        parameters, state = contents.parameters, contents.state
        quantiles = json_values.floats_of(parameters["quantiles"]).tolist()
        walk = cls(quantiles, decimals=parameters["decimals"], nan_policy=parameters["nan_policy"], coin_seed=0)
        walk._path = replace(walk._path, key=json_values.integer_of(state["key"], 0, coins.WORD_MASK))
        walk._position = json_values.integer_of(state["position"])
        walk._estimates = points_of(state["estimates"], len(quantiles))
        return walk

    def __repr__(self) -> str:
        shown = self.quantiles[0] if len(self.quantiles) == 1 else list(self.quantiles)
        return f"{type(self).__name__}({shown}, decimals={self._path.grid.decimals}, items={self.items})"

    def _settled(self) -> NDArray[np.int64]:
        """The estimates after every pending item, as grid points."""
        if self._pending:
            self._take(chunks(self._pending))
        return self._estimates

    def _take(self, batch: Iterator[Chunk]) -> None:
        """Walk on a copy and keep it only if the whole batch is accepted."""
        estimates, position = self._estimates.copy(), self._position
        for chunk in batch:
            end = position + chunk.values.size
            absent = self._way(chunk, end)(estimates, position, chunk, self._path)
            if absent and self._nan_policy == "raise":
                raise ItemError('The batch has NaN or null items; clean the data, or use nan_policy="omit".')
            position = end
        # Pending items are always taken in first, so none is left now. No interrupt can come between these stores.
        self._estimates, self._position, self._pending = estimates, position, []

    def _way(self, chunk: Chunk, end: int) -> Callable[[NDArray[np.int64], int, Chunk, Path], int]:
        """How to walk past a chunk that ends the stream so far. All ways give the same bits."""
        if chunk.values.size < A_HANDFUL:
            return walk_plainly
        return advance if worth_loading(end * len(self.quantiles), WORTH_COMPILING) else advance_by_numpy
