"""What a window holds: the smallest of all priorities, however items are cut and whichever windows they came in."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from dpfrugal.estimators.windows import held_items
from dpfrugal.estimators.windows.held_items import HeldItems


def naive(hold: int, priorities: list[int], groups: list[int] | None, who: list[int] | None) -> list[int]:
    """The definition: positions of the items of the smallest priorities, in all or of each group; the first of ties.

    With persons only the first two of each of them.
    """
    order = sorted(range(len(priorities)), key=lambda at: (priorities[at], at))
    if who is not None:
        order = [at for place, at in enumerate(order) if [who[other] for other in order[:place]].count(who[at]) < 2]
    found = []
    for group in set(groups or [0]):
        found += [at for at in order if groups is None or groups[at] == group][:hold]
    return found


def held(hold: int, per_group: bool, persons: bool, parts: list[tuple[Any, Any, Any]]) -> HeldItems:
    name = "who" if persons else "groups"
    items = HeldItems(hold, (name,), per_group=per_group, per_person=2 if persons else None)
    for codes, beside, priorities in parts:
        items.add(codes, priorities, **{name: beside})
    return items


@settings(max_examples=300)
@given(
    stream=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    hold=st.integers(1, 12),
    kind=st.sampled_from(["all", "groups", "persons"]),
)
def test_held_items__have_the_smallest_priorities_wherever_they_came(
    stream: list[tuple[int, int]], cuts: list[int], hold: int, kind: str
) -> None:
    """Cut anywhere, in one window or merged from several: exactly what the definition holds, ties included."""
    beside, priorities = ([row[at] for row in stream] for at in (0, 1))
    columns: list[NDArray[Any]] = [np.arange(len(stream)), np.array(beside, np.int32), np.array(priorities, np.uint32)]
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts: list[Any] = [tuple(c[a:b] for c in columns) for a, b in itertools.pairwise(places)]
    how = kind == "groups", kind == "persons"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_items, "BLOCK", 4)  # so that samples are taken again and again
        one, merged = (held(hold, *how, given) for given in (parts, []))
        for part in parts:
            merged.merge(held(hold, *how, [part]))
    expected = naive(hold, priorities, beside if how[0] else None, beside if how[1] else None)
    for items in (one, merged):
        assert items.column("codes").tolist() == sorted(expected)
        assert items.column("priorities").tolist() == [priorities[at] for at in sorted(expected)]


def test_held_items__are_a_uniform_sample() -> None:
    """Each item is held equally often: a chi-square test with a false-alarm rate of 1e-6, and a bent one that fails."""
    counts = {"uniform": np.zeros(20), "bent": np.zeros(20)}
    for _ in range(2_000):
        for name, tally in counts.items():
            items = HeldItems(5)
            priorities = items.priorities(20)
            if name == "bent":
                priorities[0] //= 2
            items.add(np.arange(20), priorities)
            tally[items.arrays()["codes"]] += 1
    # Counts of a sample without replacement vary less than those of independent draws: fewer false alarms.
    p_values = {name: stats.chisquare(tally).pvalue for name, tally in counts.items()}
    assert p_values["uniform"] > 1e-6
    assert p_values["bent"] < 1e-6


def test_held_items__stay_within_their_bound() -> None:
    items = HeldItems(1_000, ("groups",))
    for _ in range(300):
        codes = np.zeros(2_000, dtype=np.int64)
        items.add(codes, items.priorities(2_000), groups=codes.astype(np.int32))
        assert items.size <= 1_000 + held_items.BLOCK + 2_000
    assert items.column("codes").size == 1_000


@pytest.mark.parametrize("broken", ["short", "type", "limit"])
def test_held_items__refuse_what_they_did_not_write(broken: str) -> None:
    items, other = HeldItems(3), HeldItems(3)
    items.add(np.arange(9), np.arange(9, dtype=np.uint32))
    arrays, (limit, limits) = items.arrays(), items.limits
    if broken == "short":
        arrays["codes"] = arrays["codes"][1:]
    if broken == "type":
        arrays["codes"] = arrays["codes"].astype(np.float64)
    with pytest.raises(ValueError, match="not"):
        other.replace({n: a[:2] for n, a in arrays.items()} if broken == "limit" else arrays, limit, limits)
    other.replace(items.arrays(), limit, limits)
    assert other.arrays()["codes"].tolist() == [0, 1, 2]
