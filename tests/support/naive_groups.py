"""Rows by group and the limits per person as one would write them down: what the compiled forms must equal."""

from collections import Counter, defaultdict
from collections.abc import Sequence


def chosen(
    priorities: Sequence[int], person: Sequence[int], keys: Sequence[int], most_items: int, most_keys: int | None
) -> list[bool]:
    """In order of priority, a row counts while its person has room for it."""
    counts = [False] * len(person)
    had: dict[int, Counter[int]] = defaultdict(Counter)
    for row in sorted(range(len(person)), key=lambda row: priorities[row]):
        rows = had[person[row]]
        key = keys[row] if most_keys is not None else min(keys[row], 0)
        if key >= 0 and rows[key] < most_items and (rows[key] or len(+rows) < (most_keys or 1)):
            rows[key] += 1
            counts[row] = True
    return counts


def by_group(groups: Sequence[int], values: Sequence[int], there: int) -> list[list[int]]:
    """The values of each group in ascending order."""
    return [sorted(value for group, value in zip(groups, values, strict=True) if group == g) for g in range(there)]
