"""The sums behind a joint choice: over all ascending answers, of mass · exp(−slope · distance walked).

Regions of answers are in ascending order. Each has a mass, and covers ranks from ``first`` to ``last``. The j-th answer
wants the rank ``targets[j]``; seen from there its region covers places from first − target to last − target. A walk
begins at the place 0, is made as short as can be through the regions of all answers in order, and ends at 0 again. The
shortest walk stays where it is while that lies in the next region, and otherwise goes to the nearer end of it. So a
prefix of answers matters to the others only by its last region, by the place of the walk there, and by how many of its
answers lie in that region: k answers in one region have mass^k / k!, that of k unordered answers.

``following`` is the specification of one answer. Numbers are floats, or decimals of any precision: everything is added
and multiplied, and nothing subtracted, so errors stay relative to each sum. States are in ascending order of regions
and of places, so a region's sums run over consecutive states, and all regions together take time linear in the states.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Number = Any  # a float or a Decimal
Decay = Callable[[int], Number]  # exp(−slope · distance)


class State(NamedTuple):
    """All prefixes of answers with the walk at one place in one region, the last ``run`` answers being in it.

    Before the last answer they were states ``first`` to ``last`` − 1 of the answer before.
    """

    at: int
    weight: Number
    region: int
    run: int
    first: int
    last: int


BEGINNING = -1  # the region before all answers


@dataclass(frozen=True)
class Chain:
    """The ranks of regions and targets, in equal parts of a row, and the regions that each answer may lie in."""

    first: Sequence[int]
    last: Sequence[int]
    targets: Sequence[int]
    allowed: Sequence[Sequence[int]]

    def ends(self, answer: int, region: int) -> tuple[int, int]:
        """The places that a region covers, seen from the target of an answer."""
        return self.first[region] - self.targets[answer], self.last[region] - self.targets[answer]

    def distance(self, regions: Sequence[int]) -> int:
        """How far the walk through the regions of all answers goes."""
        at = walked = 0
        for answer, region in enumerate(regions):
            low, high = self.ends(answer, region)
            there = min(max(at, low), high)
            at, walked = there, walked + abs(there - at)
        return walked + abs(at)


def beginning(one: Number) -> list[State]:
    """Before the first answer."""
    return [State(0, one, BEGINNING, 0, 0, 0)]


def following(
    chain: Chain, answer: int, states: Sequence[State], masses: Mapping[int, Number], decay: Decay
) -> list[State]:
    """The states after one more answer."""
    found: list[State] = []
    if not states:
        return found
    below = Below(states, decay)
    above = Above(states, decay)
    earlier = 0  # so many states are of regions before this one
    for region in chain.allowed[answer]:
        mass = masses[region]
        low, high = chain.ends(answer, region)
        while earlier < len(states) and states[earlier].region < region:
            earlier += 1
        left = below.reaches(low, earlier)
        if low == high:
            parts = [below.sum(low)] if left else []
            right = left
            while right < earlier and states[right].at == low:
                parts.append(states[right].weight)
                right += 1
            parts += [above.sum(right, earlier, high)] if right < earlier else []
            if parts:
                found.append(State(low, sum(parts[1:], parts[0]) * mass, region, 1, 0, earlier))
        else:
            if left:
                found.append(State(low, below.sum(low) * mass, region, 1, 0, left))
            right = left
            while right < earlier and states[right].at <= high:
                at, weight, begin = states[right].at, states[right].weight, right
                right += 1
                while right < earlier and states[right].at == at:
                    weight, right = weight + states[right].weight, right + 1
                found.append(State(at, weight * mass, region, 1, begin, right))
            if right < earlier:
                found.append(State(high, above.sum(right, earlier, high) * mass, region, 1, right, earlier))
        same = earlier
        while same < len(states) and states[same].region == region:
            state = states[same]
            at, run = min(state.at, high), state.run + 1
            found.append(State(at, state.weight * decay(state.at - at) * mass / run, region, run, same, same + 1))
            same += 1
    return found


class Below:
    """Σ weight · decay(place − at) over the states before a place that moves forwards."""

    def __init__(self, states: Sequence[State], decay: Decay) -> None:
        self._states, self._decay = states, decay
        self._number, self._sum = 0, states[0].weight * 0

    def reaches(self, place: int, most: int) -> int:
        """Take in all states before a place, of the first so many; how many there are."""
        states = self._states
        while self._number < most and states[self._number].at < place:
            state = states[self._number]
            if self._number:
                self._sum = self._sum * self._decay(state.at - states[self._number - 1].at)
            self._sum = self._sum + state.weight
            self._number += 1
        return self._number

    def sum(self, place: int) -> Number:
        """The sum over the states that were taken in, at least one."""
        return self._sum * self._decay(place - self._states[self._number - 1].at)


class Above:
    """Σ weight · decay(at − place) over the states from one to another, both of which move forwards.

    Nothing leaves a sum by subtraction: sums up to ``middle`` are kept for every first state, and rebuilt when the
    first one passes it.
    """

    def __init__(self, states: Sequence[State], decay: Decay) -> None:
        self._states, self._decay = states, decay
        self._middle, self._end = 0, 0
        self._upto: list[Number] = [states[0].weight * 0] * len(states)
        self._beyond = self._upto[0]

    def sum(self, first: int, end: int, place: int) -> Number:
        """The sum over the states from ``first``, beyond the place, to ``end`` − 1."""
        states, decay = self._states, self._decay
        if first >= self._middle:
            self._middle = self._end = end
            self._beyond = self._beyond * 0
            total = self._upto[end - 1] = states[end - 1].weight
            for at in range(end - 2, first - 1, -1):
                total = self._upto[at] = states[at].weight + total * decay(states[at + 1].at - states[at].at)
        for at in range(self._end, end):
            self._beyond = self._beyond + states[at].weight * decay(states[at].at - states[self._middle].at)
        self._end = end
        total = self._upto[first]
        if end > self._middle:
            total = total + self._beyond * decay(states[self._middle].at - states[first].at)
        return total * decay(states[first].at - place)
