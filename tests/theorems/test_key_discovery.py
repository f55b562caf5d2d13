"""Theorem 11: which keys are shown, (ε, δ) exactly, by enumeration of small streams; mistakes are caught."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product

import pytest

from dpfrugal import ApproxDP, PureDP
from dpfrugal.keys.discovery import sensitivity_of_counts, threshold_for
from tests.support.naive import passes

KEYS = "abc"
Transcript = tuple[frozenset[str], ...]
Law = dict[Transcript, float]


def chances(threshold: int, scale: float, most: int) -> list[float]:
    return [passes(count, threshold, scale) for count in range(most + 1)]


def law(segments: Iterable[str], chance: list[float], *, cumulative: bool = False) -> Law:
    """How probable each transcript is: the sets of new keys, release after release."""
    laws: Law = {(): 1.0}
    so_far: Counter[str] = Counter()
    for segment in segments:
        so_far = so_far + Counter(segment) if cumulative else Counter(segment)
        after: Law = {}
        for transcript, probability in laws.items():
            known = frozenset().union(*transcript)
            candidates = [key for key in KEYS if key not in known and so_far[key]]
            for shown in itertools.product((False, True), repeat=len(candidates)):
                chosen = frozenset(key for key, yes in zip(candidates, shown, strict=True) if yes)
                p = math.prod(
                    chance[so_far[key]] if yes else 1 - chance[so_far[key]]
                    for key, yes in zip(candidates, shown, strict=True)
                )
                after[(*transcript, chosen)] = after.get((*transcript, chosen), 0.0) + probability * p
        laws = after
    return laws


def delta_between(one: Law, other: Law, epsilon: float) -> float:
    """The smallest δ for this ordered pair."""
    return sum(max(0.0, p - math.exp(epsilon) * other.get(seen, 0.0)) for seen, p in one.items())


def largest_delta(epsilon: float, rows: int, replaced: int, cut: int, laws: Callable[[tuple[str, str]], Law]) -> float:
    """Over all streams of so many rows in two segments, and all neighbours in the first rows."""
    found = 0.0
    for rest in itertools.product(KEYS, repeat=rows - replaced):
        versions = ["".join((*head, *rest)) for head in itertools.product(KEYS, repeat=replaced)]
        # The person's rows lie on both sides of the cut.
        shuffled = [version[::2] + version[1::2] for version in versions]
        at = [laws((stream[:cut], stream[cut:])) for stream in shuffled]
        found = max([found, *(delta_between(p, q, epsilon) for p, q in itertools.permutations(at, 2))])
    return found


SETTINGS = [(1.0, 0.05, 1), (0.3, 0.2, 1), (2.5, 0.01, 1), (1.0, 0.05, 2), (0.4, 0.3, 2), (3.0, 0.02, 2)]


@pytest.mark.parametrize(("epsilon", "delta", "items"), SETTINGS)
@pytest.mark.parametrize("cut", [0, 2, 4])
def test_theorem_11__all_small_streams_keep_the_promise(epsilon: float, delta: float, items: int, cut: int) -> None:
    cost = ApproxDP(epsilon=epsilon, delta=delta)
    scale = PureDP(epsilon=epsilon).noise_scale(sensitivity_of_counts(items))
    chance = chances(threshold_for(cost, items), scale, 4)
    assert largest_delta(epsilon, 4, items, cut, lambda segments: law(segments, chance)) <= delta


@pytest.mark.parametrize(("epsilon", "delta", "items"), SETTINGS)
def test_theorem_11__the_threshold_is_no_higher_than_it_must_be(epsilon: float, delta: float, items: int) -> None:
    cost = ApproxDP(epsilon=epsilon, delta=delta)
    scale = PureDP(epsilon=epsilon).noise_scale(sensitivity_of_counts(items))
    lower = threshold_for(cost, items) - 1
    most = min(delta, 1 - math.exp(-1 / scale))
    assert max(passes(items, lower, scale), items * passes(1, lower, scale)) > most


def test_theorem_11__enumeration_catches_mistakes() -> None:
    cost, scale = ApproxDP(epsilon=1.0, delta=0.05), 2.0
    threshold = threshold_for(cost, 1)
    right = chances(threshold, scale, 4)

    def broken(laws: Callable[[tuple[str, str]], Law]) -> bool:
        return largest_delta(1.0, 4, 1, 2, laws) > 0.05

    assert not broken(lambda segments: law(segments, right))
    assert broken(lambda segments: law(segments, chances(threshold - 1, scale, 4)))
    assert broken(lambda segments: law(segments, right, cumulative=True))  # a row counted in two releases
    assert broken(lambda segments: law(segments, [float(count >= 2) for count in range(5)]))  # no noise

    def between(scale: float) -> float:
        threshold = next(t for t in itertools.count(2) if passes(1, t, scale) <= 0.05)
        chance = chances(threshold, scale, threshold)
        rows, neighbour = "a" * (threshold - 1) + "b" * threshold, "a" * threshold + "b" * (threshold - 1)
        return delta_between(law([rows], chance), law([neighbour], chance), 1.0)

    assert between(scale) <= 0.05
    assert between(scale / 2) > 0.05  # noise as if a row changed one count only


@pytest.mark.parametrize(("epsilon", "delta", "items"), SETTINGS)
def test_theorem_11__a_persons_rows_may_count_before_other_releases(epsilon: float, delta: float, items: int) -> None:
    """Up to m rows of a person in each stream, in any of two segments and of any keys: k + k′ in one segment."""
    cost = ApproxDP(epsilon=epsilon, delta=delta)
    scale = PureDP(epsilon=epsilon).noise_scale(sensitivity_of_counts(items))
    chance = chances(threshold_for(cost, items), scale, 4)
    rows = [("", ""), *((key, "") for key in KEYS), *(("", key) for key in KEYS)]
    own = {tuple("".join(parts) for parts in zip(*chosen, strict=True)) for chosen in product(rows, repeat=items)}
    found = 0.0
    for rest in product(KEYS, repeat=2):
        laws = [law((first + rest[0], second + rest[1]), chance) for first, second in own]
        found = max([found, *(delta_between(p, q, epsilon) for p, q in itertools.permutations(laws, 2))])
    assert found <= delta
    assert found > 0
