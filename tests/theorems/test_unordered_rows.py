"""Theorem 13: rows in any order; a replaced row moves all keys together by two steps."""

import itertools

from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels.coins import thresholds


def test_theorem_13__in_any_order_a_replaced_row_moves_all_keys_by_two_steps() -> None:
    """Theorem 13 by enumeration: all orders of three rows, all pairs of neighbours, coins that follow the row.

    The leg that must fail: coins that follow the place in the key's own order, so that a row which leaves one key
    shifts the coins of all that come after it.
    """
    (up_from, down_from), coins = thresholds(0.5), (2**32 - 1, 0, 2**32 - 1, 0)
    kinds = list(itertools.product((0, 1), (-2, 0, 2)))

    def ends(rows: tuple[tuple[int, int], ...], order: tuple[int, ...], own: bool) -> list[int]:
        estimates, counts = [0, 0], [0, 0]
        for i in order:
            key, item = rows[i]
            coin = coins[i] if own else coins[counts[key]]
            counts[key] += 1
            estimates[key] = step(estimates[key], item, coin, up_from, down_from)
        return estimates

    def worst(size: int, orders: list[tuple[int, ...]], own: bool) -> int:
        farthest = 0
        for order, rows in itertools.product(orders, itertools.product(kinds, repeat=size)):
            before = ends(rows, order, own)
            for i, other in itertools.product(range(size), kinds):
                after = ends((*rows[:i], other, *rows[i + 1 :]), order, own)
                farthest = max(farthest, sum(abs(a - b) for a, b in zip(before, after, strict=True)))
        return farthest

    assert worst(3, list(itertools.permutations(range(3))), own=True) == 2
    assert worst(4, [(0, 1, 2, 3)], own=True) == 2
    assert worst(4, [(0, 1, 2, 3)], own=False) > 2
