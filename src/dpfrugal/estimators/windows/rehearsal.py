"""A release of made-up rows, once in a process and before one that counts: it loads and compiles what that will need.

A process that is killed after the ledger has counted a window and before the release is out loses the window, so
nothing that can be done before is done in between. Compiling alone takes half a minute where nothing is cached yet.
"""

from functools import lru_cache

import numpy as np

from dpfrugal.estimators.table.base.kinds import FLOATS
from dpfrugal.estimators.table.choices.answers import answers, intervals_around
from dpfrugal.estimators.table.choices.group_answers import FEW_GROUPS, answer_groups
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows
from dpfrugal.estimators.table.rows.order_statistics import SortedRows
from dpfrugal.kernels.compiler import worth_loading
from dpfrugal.privacy import noise


def rehearse(plan: Plan, groups: int | None) -> None:
    """Answer once as for so many groups, of which many are answered by compiled code; None: as for a whole table."""
    many = groups is not None and groups >= FEW_GROUPS
    _rehearse(plan, grouped=groups is not None, many=many, compiled=worth_loading(0, 1))


@lru_cache(maxsize=64)
def _rehearse(plan: Plan, *, grouped: bool, many: bool, compiled: bool) -> None:
    base, rows = FLOATS.base, SortedRows(np.zeros(1, dtype=np.int64))
    intervals_around(rows, plan, base, answers(rows, plan, base))  # among groups, that of which floats are not certain
    if not grouped:
        return
    noise.load()
    each = np.arange(FEW_GROUPS if many else 1, dtype=np.int32)
    made_up = KeyedRows("raise", 1)
    made_up.add_coded(FLOATS, np.zeros(each.size, dtype=np.int64), each, None, None)
    codes, starts = made_up.by_group(each, each.size, FLOATS)
    answer_groups(GroupedRows(FLOATS, {}, each.size, starts, codes), plan, base)
