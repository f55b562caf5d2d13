"""The walk of many keys on many machines: a row brings its word with it, which says when it is walked, and its coin.

On a cluster rows of a key come in an order that nobody fixes, cut into batches of any size. They are walked in the
order of their words, which are random: so the order has nothing to do with what rows hold, however rows are cut, sent
and sent again, and a table in order of time is walked like a shuffled one (docs/proofs.md, Theorem 13).

No Spark is needed here: this is what runs beside the data.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.engines.spark.unordered_walk.packets import COUNTS, UNDECLARED, pieces, with_words
from dpfrugal.engines.spark.unordered_walk.secret_words import COIN_BITS
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.keyed.adaptive_steps import exponents
from dpfrugal.estimators.keyed.walk import comparable
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.estimators.walk.kernel_choice import Path
from dpfrugal.kernels.bit_layout import STEP_EXPONENT
from dpfrugal.kernels.compiler import loading, read_only


def walk_rows_plainly(
    estimates: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    words: NDArray[np.uint64],
    codes: NDArray[np.int32],
    values: NDArray[Any],
    path: Path,
) -> None:
    """The specification of ``walk_rows_compiled``: the rows as they come."""
    for code, value, word in zip(codes.tolist(), values.tolist(), words.tolist(), strict=True):
        if code >= 0:
            item, coin = path.grid.index(value), word % (1 << COIN_BITS)
            for k, (up_from, down_from) in enumerate(path.thresholds):
                estimate = int(estimates[code, k])
                size = 1 if steps is None else 1 << int(steps[code, k] & STEP_EXPONENT)
                estimates[code, k] += size * (step(estimate, item, coin, up_from, down_from) - estimate)


def walk_rows_compiled(
    estimates: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    words: NDArray[np.uint64],
    codes: NDArray[np.int32],
    values: NDArray[Any],
    path: Path,
    reach: int,
) -> None:
    """Move the estimates past rows; ``reach`` bounds every estimate, now and afterwards."""
    items, scale = comparable(values, path, reach)
    with loading(("walk_rows", items.dtype)):
        from dpfrugal.engines.spark.unordered_walk.kernel import walk_rows

        flat, own_steps = estimates.reshape(-1), None if steps is None else read_only(steps.reshape(-1))
        with np.errstate(over="ignore"):
            walk_rows(
                read_only(codes),
                read_only(items),
                scale,
                read_only(words),
                flat,
                own_steps,
                path.up_from,
                path.down_from,
            )


@dataclass(frozen=True)
class Walker:
    """Walks Arrow batches of rows and yields the estimates of the keys that it met. All it brings is public."""

    quantiles: tuple[float, ...]
    decimals: int
    coin_key: int
    starts: NDArray[np.int64]  # keys × quantiles
    steps: NDArray[np.uint8] | None = None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Batches of packets, their groups in order, or of code, item, row and perhaps points, in the order they have.

        The state of a key comes before its rows.
        """
        path = Path(self.quantiles, Grid(self.decimals), self.coin_key)
        estimates, met = self.starts.copy(), np.zeros(len(self.starts), dtype=np.bool_)
        widest = 1 if self.steps is None else 1 << int(exponents(self.steps).max(initial=0))
        seen = np.zeros(COUNTS, dtype=np.int64)
        pairs = (piece for batch in batches for piece in pieces(batch))
        for group, parts in itertools.groupby(pairs, key=lambda piece: piece[1]):
            waiting: list[tuple[NDArray[Any], ...]] = []
            for rows, _, counts in parts:
                seen += counts
                codes = rows.column("code").to_numpy()
                met[codes] = True
                if "points" in rows.schema.names:
                    estimates[codes] = rows.column("points").flatten().to_numpy().reshape(-1, len(self.quantiles))
                    continue
                rows = rows if "word" in rows.schema.names else with_words(rows, self.coin_key)
                waiting.append((rows.column("word").to_numpy(), codes, rows.column("item").to_numpy()))
                if group is None:
                    self._walk(waiting, estimates, path, widest, in_order=False)
                    waiting = []
            self._walk(waiting, estimates, path, widest, in_order=True)
        found = np.flatnonzero(met).astype(np.int32)
        yield _result(np.full(1, UNDECLARED, dtype=np.int32), np.zeros((1, len(self.quantiles)), dtype=np.int64), seen)
        if found.size:
            yield _result(found, estimates[found], np.zeros(COUNTS, dtype=np.int64))

    def _walk(
        self,
        waiting: list[tuple[NDArray[Any], ...]],
        estimates: NDArray[np.int64],
        path: Path,
        widest: int,
        *,
        in_order: bool,
    ) -> None:
        """Walk rows in the order of their words, or as they are."""
        if not waiting:
            return
        words, codes, values = (np.concatenate(column) for column in zip(*waiting, strict=True))
        if in_order:
            order = np.argsort(words)
            words, codes, values = words[order], codes[order], values[order]
        reach = int(np.abs(estimates).max(initial=0)) + widest * codes.size
        walk_rows_compiled(estimates, self.steps, words, codes, values, path, reach)


def _result(codes: NDArray[np.int32], points: NDArray[np.int64], seen: NDArray[np.int64]) -> Any:
    import pyarrow as pa

    offsets = np.arange(len(codes) + 1, dtype=np.int32) * points.shape[1]
    counts = pa.array(np.broadcast_to(seen, (len(codes), COUNTS)).reshape(-1))
    each = pa.array(np.arange(len(codes) + 1, dtype=np.int32) * COUNTS)
    columns = {
        "code": pa.array(codes),
        "points": pa.ListArray.from_arrays(pa.array(offsets), pa.array(points.reshape(-1))),
        "seen": pa.ListArray.from_arrays(each, counts),
    }
    return pa.RecordBatch.from_pydict(columns)
