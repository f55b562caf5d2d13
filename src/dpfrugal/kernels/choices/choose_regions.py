"""One choice for each of many groups of rows: ``estimators.table.mechanism.choose_code`` is its readable twin.

A group's choice is made from 64-bit words that are given. Floats decide only where they are certain, with the margins
of ``privacy.choice.by_floats``; a group that they cannot decide, or that would need more words, is left to the twin.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.bit_layout import FLOAT_ERROR, LARGEST_TOTAL, SMALLEST_TOTAL, SUM_ERROR
from dpfrugal.kernels.choices.base_masses import (
    bits_of,
    code_at,
    mass_between,
    number_between,
    places,
)
from dpfrugal.kernels.compiler import cached, inlined

_0, _1, _64 = np.uint64(0), np.uint64(1), np.uint64(64)
UNCERTAIN: Final = -1


@inlined
def chosen_by(weights: Any, size: Any, word: Any) -> Any:
    """The index at a point, given by its first 64 bits, or ``UNCERTAIN``; weights become their cumulative sums."""
    total = 0.0
    for index in range(size):
        total += weights[index]
        weights[index] = total
    if not SMALLEST_TOTAL < total < LARGEST_TOTAL:
        return UNCERTAIN
    margin = total * (4 * FLOAT_ERROR + size * SUM_ERROR)
    place = np.float64(word) / 2.0**64 * total
    low, high = 0, size  # the first index whose sum is above the place
    while low < high:
        middle = (low + high) // 2
        if weights[middle] > place:
            high = middle
        else:
            low = middle + 1
    if low >= size or (low > 0 and place - weights[low - 1] <= margin):
        return UNCERTAIN
    return low if low == size - 1 or weights[low] - place > margin else UNCERTAIN


@inlined
def bit_length(number: Any) -> Any:
    """Of an integer of 64 bits."""
    length = _0
    while number > _0:
        number >>= _1
        length += _1
    return length


@inlined
def number_below(high: Any, low: Any, words: Any, used: Any) -> Any:
    """A uniform integer below one of 128 bits, which is not 0, and how many words are used; 0 if there were too few."""
    most_high, most_low = (high, low - _1) if low > _0 else (high - _1, low - _1)
    if most_high == _0 and most_low == _0:
        return _0, _0, used
    length = bit_length(most_high) + _64 if most_high > _0 else bit_length(most_low)
    while used + (2 if length > _64 else 1) <= words.shape[0]:
        if length > _64:
            # The upper bits of 128: the lower 128 − length bits are dropped.
            drop = _64 + _64 - length
            upper, lower = words[used], words[used + 1]
            used += 2
            if drop > _0:
                lower = (lower >> drop) | (upper << (_64 - drop))
                upper = upper >> drop
        else:
            upper, lower = _0, words[used] >> (_64 - length)
            used += 1
        if upper < most_high or (upper == most_high and lower <= most_low):
            return upper, lower, used
    return _0, _0, 0


@inlined
def window_of(codes: Any, start: Any, end: Any, floor: Any, ceiling: Any, reach: Any) -> Any:
    """The first and last + 1 row of a group whose ranks are near the target."""
    return start + min(max(floor - reach, 0), end - start), start + min(max(ceiling + reach + 1, 0), end - start)


@inlined
def first_equal(codes: Any, start: Any, at: Any) -> Any:
    """The first row of a group that is equal to a given one."""
    low, high = start, at
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < codes[at]:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def last_equal(codes: Any, at: Any, end: Any) -> Any:
    """One more than the last row of a group that is equal to a given one."""
    low, high = at, end
    while low < high:
        middle = (low + high) // 2
        if codes[middle] > codes[at]:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def distinct(codes: Any, start: Any, end: Any, first: Any, last: Any, at: Any, below: Any, upto: Any) -> Any:
    """The different codes of a window, with the numbers of rows below each and up to it."""
    number, row = 0, first
    while row < last:
        begin = first_equal(codes, start, row) if number == 0 else row
        row += 1
        while row < last and codes[row] == codes[row - 1]:
            row += 1
        at[number], below[number], upto[number] = codes[row - 1], begin - start, row - start
        number += 1
    if number:
        upto[number - 1] = last_equal(codes, last - 1, end) - start
    return number


@inlined
def add_masses(part: Any, weight: Any, ends: Any, at: Any, number: Any, masses: Any) -> Any:
    """Add the masses that a component gives to all regions: gap, code, gap, …, gap."""
    bits = bits_of(part[1])
    high, low, last_high, last_low = ends
    for index in range(number):
        below_high, below_low, upto_high, upto_low = places(part, at[index])
        masses[2 * index] += weight * mass_between(high, low, below_high, below_low, bits)
        masses[2 * index + 1] += weight * mass_between(below_high, below_low, upto_high, upto_low, bits)
        high, low = upto_high, upto_low
    masses[2 * number] += weight * mass_between(high, low, last_high, last_low, bits)


@inlined
def part_of(kinds: Any, numbers: Any, scales: Any, component: Any) -> Any:
    """A component as ``base_masses`` takes it."""
    spacing, spread = kinds[component, 0], kinds[component, 1]
    one, two, centre = numbers[component, 0], numbers[component, 1], numbers[component, 2]
    return spacing, spread, one, two, scales[component], centre


@inlined
def gap_ends(part: Any, ends: Any, at: Any, number: Any, gap: Any) -> Any:
    """The cumulative masses of a component at both ends of a gap."""
    high, low, next_high, next_low = ends
    if gap > 0:
        _, _, high, low = places(part, at[gap - 1])
    if gap < number:
        next_high, next_low, _, _ = places(part, at[gap])
    return high, low, next_high, next_low


@inlined
def draw_from_gap(
    kinds: Any, numbers: Any, scales: Any, weights: Any, highs: Any, lows: Any, at: Any, number: Any, gap: Any,
    words: Any, masses: Any,
) -> Any:  # fmt: skip
    """A code of a gap, whether it is certain, and how many words it took: first a component, then a place in it."""
    for component in range(weights.shape[0]):
        part = part_of(kinds, numbers, scales, component)
        ends = highs[component, 0], lows[component, 0], highs[component, 1], lows[component, 1]
        high, low, next_high, next_low = gap_ends(part, ends, at, number, gap)
        masses[component] = weights[component] * mass_between(high, low, next_high, next_low, bits_of(part[1]))
    component = chosen_by(masses, weights.shape[0], words[0])
    if component == UNCERTAIN:
        return np.int64(0), False, 0
    part = part_of(kinds, numbers, scales, component)
    ends = highs[component, 0], lows[component, 0], highs[component, 1], lows[component, 1]
    high, low, next_high, next_low = gap_ends(part, ends, at, number, gap)
    most_high, most_low = number_between(high, low, next_high, next_low, bits_of(part[1]))
    more_high, more_low, used = number_below(most_high, most_low, words, 1)
    return code_at(part, high, low, more_high, more_low), used > 0, used


@cached
def choose(
    codes: Any, starts: Any, floors: Any, ceilings: Any, fractions: Any, cap: Any, steep_above: Any, steep_below: Any,
    kinds: Any, numbers: Any, scales: Any, weights: Any, highs: Any, lows: Any, words: Any,
    at: Any, below: Any, upto: Any, masses: Any, answers: Any, certain: Any,
) -> Any:  # fmt: skip
    """The answer of each group, and whether it is certain; ``at`` to ``masses`` are room to work in."""
    for group in range(answers.shape[0]):
        start, end = starts[group], starts[group + 1]
        floor, fraction = floors[group], fractions[group]
        first, last = window_of(codes, start, end, floor, ceilings[group], cap + 1)
        number = distinct(codes, start, end, first, last, at, below, upto)
        size = 2 * number + 1
        masses[:size] = 0.0
        for component in range(weights.shape[0]):
            part = part_of(kinds, numbers, scales, component)
            ends = highs[component, 0], lows[component, 0], highs[component, 1], lows[component, 1]
            add_masses(part, weights[component], ends, at, number, masses)
        for region in range(size):
            index = region // 2
            if region % 2:
                low, high = below[index], upto[index]
            else:
                low = upto[index - 1] if index > 0 else 0
                high = below[index] if index < number else end - start
            too_high = min(max((low - floor) - fraction, np.float64(-cap)), np.float64(cap))
            too_low = min(max((floor - high) + fraction, np.float64(-cap)), np.float64(cap))
            masses[region] *= np.exp(-max(steep_above * too_high, steep_below * too_low))
        region = chosen_by(masses, size, words[group, 0])
        if region == UNCERTAIN:
            certain[group] = False
        elif region % 2:
            answers[group], certain[group] = at[region // 2], True
        else:
            code, is_certain, _ = draw_from_gap(
                kinds, numbers, scales, weights, highs, lows, at, number, region // 2, words[group, 1:], masses
            )
            answers[group], certain[group] = code, is_certain
