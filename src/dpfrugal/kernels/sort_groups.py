"""Rows by group: a counting sort by the code of the group, and the choice of a person's rows.

Rows of group g end up together, in ``out[starts[g] : starts[g + 1]]``; what has a negative code is left out. The
readable twins are in ``tests/support/naive_groups.py``.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.compiler import cached, inlined

# So many rows of a person are sorted by insertion.
FEW_ROWS: Final = 32


@cached
def count_rows(groups: Any, relabel: Any, counts: Any) -> Any:
    """Count each row for the group that ``relabel`` makes of its own."""
    for i in range(groups.shape[0]):
        if groups[i] >= 0 and relabel[groups[i]] >= 0:
            counts[relabel[groups[i]]] += 1


@cached
def place_rows(groups: Any, relabel: Any, values: Any, following: Any, out: Any) -> Any:
    """Put each row's value at the next place of its group, in order of rows."""
    for i in range(groups.shape[0]):
        if groups[i] >= 0 and relabel[groups[i]] >= 0:
            group = relabel[groups[i]]
            out[following[group]] = values[i]
            following[group] += 1


@inlined
def sort_by_priority(rows: Any, priorities: Any) -> Any:
    """Sort ascending row numbers by the rows' priorities, in place; of two with the same one the first comes first."""
    if rows.shape[0] > FEW_ROWS:
        keys = np.empty(rows.shape[0], np.uint64)
        for i in range(rows.shape[0]):
            keys[i] = priorities[rows[i]]
        rows[:] = rows[np.argsort(keys, kind="mergesort")]
        return
    for i in range(1, rows.shape[0]):
        row, place = rows[i], i
        while place > 0 and priorities[rows[place - 1]] > priorities[row]:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row


@cached
def choose_rows(
    rows: Any, starts: Any, priorities: Any, keys: Any, keys_there: Any, most_items: Any, most_keys: Any, chosen: Any
) -> Any:
    """Mark the rows that count, of each person's, which are ``rows[starts[p] : starts[p + 1]]``, ascending.

    In order of priority, a person's first ``most_keys`` keys are open, and ``most_items`` rows of each open key count.
    Rows with a negative key do not count, and take nobody's place. ``chosen`` is false for all rows before; keys are
    below ``keys_there``.
    """
    owner, tally = np.full(keys_there, -1, np.int64), np.zeros(keys_there, np.int64)
    for person in range(starts.shape[0] - 1):
        own = rows[starts[person] : starts[person + 1]]
        if own.shape[0] > min(most_items, most_keys):
            sort_by_priority(own, priorities)
        open_keys = 0
        for place in range(own.shape[0]):
            key = keys[own[place]]
            if key < 0:
                continue
            if owner[key] != person:
                if open_keys == most_keys:
                    continue
                owner[key], tally[key] = person, 0
                open_keys += 1
            if tally[key] < most_items:
                tally[key] += 1
                chosen[own[place]] = True
