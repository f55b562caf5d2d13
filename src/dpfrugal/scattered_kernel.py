"""The walk of many keys over rows in any order, each with its own position, compiled; see ``scattered``."""

from typing import Any

from dpfrugal.compiler import cached
from dpfrugal.kernels import coin
from dpfrugal.keyed_kernel import move_key


@cached
def walk_rows(
    codes: Any,
    items: Any,
    scale: Any,
    positions: Any,
    estimates: Any,
    steps: Any,
    up_from: Any,
    down_from: Any,
    key: Any,
) -> Any:
    """Move the estimates past all rows, in place; a negative code moves nothing."""
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            own = coin(key, positions[i])
            move_key(codes[i], items[i], scale, own, estimates, steps, up_from, down_from)
