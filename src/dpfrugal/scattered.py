"""The walk of many keys on many machines: a row brings its position with it, and so its coin.

On a cluster rows of a key come in an order that nobody fixes, cut into batches of any size. The coin of a row belongs
to the row's position in the table, so it is the same however rows are cut, sent and sent again; and whatever the order,
a replaced row moves the estimates no farther than on one machine (docs/proofs.md, Theorem 13).

No Spark is needed here: this is what runs beside the data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal import coins
from dpfrugal.compiler import loading, read_only
from dpfrugal.frugal import step
from dpfrugal.grid import Grid
from dpfrugal.keyed_walk import comparable
from dpfrugal.steps import EXPONENT, exponents
from dpfrugal.walk import Path

UNDECLARED: Final = -1
NULL_KEY: Final = -2
SET_ASIDE: Final = -3  # more rows than their person may have


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
        """Batches of code, item, row and perhaps points: a row with points is a key's state, and comes first."""
        import pyarrow as pa

        path = Path(self.quantiles, Grid(self.decimals), self.coin_key)
        estimates, met = self.starts.copy(), np.zeros(len(self.starts), dtype=np.bool_)
        widest = 1 if self.steps is None else 1 << int(exponents(self.steps).max(initial=0))
        seen = np.zeros(4, dtype=np.int64)  # rows, missing items, null keys, rows set aside
        for batch in batches:
            codes = np.array(batch.column("code").to_numpy(zero_copy_only=False), dtype=np.int32)
            if "points" in batch.schema.names and batch.column("points").null_count < len(batch):
                state = batch.column("points").is_valid().to_numpy(zero_copy_only=False)
                kept = batch.filter(pa.array(state)).column("points").flatten().to_numpy()
                estimates[codes[state]] = kept.reshape(-1, len(self.quantiles))
                met[codes[state]] = True
                batch = batch.filter(pa.array(~state))
                codes = codes[~state]
            values, missing = _values(batch.column("item"))
            seen += [len(batch), missing.sum(), (codes == NULL_KEY).sum(), (codes == SET_ASIDE).sum()]
            codes[missing] = UNDECLARED
            met[codes[codes >= 0]] = True
            positions = batch.column("row").to_numpy()
            farthest = int(np.abs(estimates).max(initial=0))
            reach = farthest + widest * codes.size
            walk_rows_compiled(estimates, self.steps, positions, codes, values, path, reach)
        found = np.flatnonzero(met).astype(np.int32)
        yield _result(np.full(1, UNDECLARED, dtype=np.int32), np.zeros((1, len(self.quantiles)), dtype=np.int64), seen)
        if found.size:
            yield _result(found, estimates[found], np.zeros(4, dtype=np.int64))


def _values(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Plain numbers, and which of them are missing."""
    import pyarrow as pa

    missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if column.null_count:
        column = column.fill_null(pa.scalar(0, column.type))
    return column.to_numpy(zero_copy_only=False), missing


def _result(codes: NDArray[np.int32], points: NDArray[np.int64], seen: NDArray[np.int64]) -> Any:
    import pyarrow as pa

    offsets = np.arange(len(codes) + 1, dtype=np.int32) * points.shape[1]
    counts = pa.array(np.broadcast_to(seen, (len(codes), 4)).reshape(-1))
    each = pa.array(np.arange(len(codes) + 1, dtype=np.int32) * 4)
    columns = {
        "code": pa.array(codes),
        "points": pa.ListArray.from_arrays(pa.array(offsets), pa.array(points.reshape(-1))),
        "seen": pa.ListArray.from_arrays(each, counts),
    }
    return pa.RecordBatch.from_pydict(columns)
