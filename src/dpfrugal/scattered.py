"""The walk of many keys on many machines: a row brings its position with it, and so its coin.

On a cluster rows of a key come in an order that nobody fixes, cut into batches of any size. The coin of a row belongs
to the row's position in the table, so it is the same however rows are cut, sent and sent again; and whatever the order,
a replaced row moves the estimates no farther than on one machine (docs/proofs.md, Theorem 13).

No Spark is needed here: this is what runs beside the data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal import coins
from dpfrugal.compiler import loading, read_only
from dpfrugal.frugal import step
from dpfrugal.grid import Grid
from dpfrugal.keyed_walk import comparable
from dpfrugal.packets import COUNTS, UNDECLARED, pieces
from dpfrugal.steps import EXPONENT, exponents
from dpfrugal.walk import Path


def walk_rows_plainly(
    estimates: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    positions: NDArray[np.int64],
    codes: NDArray[np.int32],
    values: NDArray[Any],
    path: Path,
) -> None:
    """The specification of ``walk_rows_compiled``."""
    for code, value, position in zip(codes.tolist(), values.tolist(), positions.tolist(), strict=True):
        if code >= 0:
            item, coin = path.grid.index(value), coins.coin(path.key, position)
            for k, (up_from, down_from) in enumerate(path.thresholds):
                estimate = int(estimates[code, k])
                size = 1 if steps is None else 1 << int(steps[code, k] & EXPONENT)
                estimates[code, k] += size * (step(estimate, item, coin, up_from, down_from) - estimate)


def walk_rows_compiled(
    estimates: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    positions: NDArray[np.int64],
    codes: NDArray[np.int32],
    values: NDArray[Any],
    path: Path,
    reach: int,
) -> None:
    """Move the estimates past rows; ``reach`` bounds every estimate, now and afterwards."""
    items, scale = comparable(values, path, reach)
    with loading(("walk_rows", items.dtype)):
        from dpfrugal.scattered_kernel import walk_rows

        flat, own_steps = estimates.reshape(-1), None if steps is None else read_only(steps.reshape(-1))
        with np.errstate(over="ignore"):
            walk_rows(
                read_only(codes),
                read_only(items),
                scale,
                read_only(positions),
                flat,
                own_steps,
                path.up_from,
                path.down_from,
                np.uint64(path.key),
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
        """Batches of packets, or of code, item, row and perhaps points: the state of a key, before its rows."""
        path = Path(self.quantiles, Grid(self.decimals), self.coin_key)
        estimates, met = self.starts.copy(), np.zeros(len(self.starts), dtype=np.bool_)
        widest = 1 if self.steps is None else 1 << int(exponents(self.steps).max(initial=0))
        seen = np.zeros(COUNTS, dtype=np.int64)
        for rows, counts in (piece for batch in batches for piece in pieces(batch)):
            seen += counts
            codes = rows.column("code").to_numpy()
            met[codes] = True
            if "points" in rows.schema.names:
                estimates[codes] = rows.column("points").flatten().to_numpy().reshape(-1, len(self.quantiles))
                continue
            positions, values = rows.column("row").to_numpy(), rows.column("item").to_numpy()
            reach = int(np.abs(estimates).max(initial=0)) + widest * codes.size
            walk_rows_compiled(estimates, self.steps, positions, codes, values, path, reach)
        found = np.flatnonzero(met).astype(np.int32)
        yield _result(np.full(1, UNDECLARED, dtype=np.int32), np.zeros((1, len(self.quantiles)), dtype=np.int64), seen)
        if found.size:
            yield _result(found, estimates[found], np.zeros(COUNTS, dtype=np.int64))


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
