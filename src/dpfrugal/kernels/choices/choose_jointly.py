"""Several answers for each of many groups: ``estimators.table.choices.joint_choice`` is the readable twin.

A group's answers are chosen from 64-bit words that are given. Floats decide only where they are certain, with the
twin's margins; a group that they cannot decide, that needs more words, or whose answers are chosen regardless of its
rows is left to the twin.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.bit_layout import FLOAT_ERROR, LARGEST_TOTAL, SMALLEST_TOTAL, SUM_ERROR
from dpfrugal.kernels.choices.choose_regions import (
    UNCERTAIN,
    add_masses,
    distinct,
    draw_from_gap,
    part_of,
)
from dpfrugal.kernels.choices.sum_walks import scale_masses, sum_walks
from dpfrugal.kernels.compiler import cached, inlined

# As in the twin.
ROUNDING: Final = 2.0**-52
MASS_ERROR: Final = 2.0**-45
SMALLEST: Final = 2.0**-1000
REGARDLESS_ERROR: Final = 2.0**-38


@inlined
def regions_of(
    codes: Any, starts: Any, ends: Any, before: Any, rows: Any, floors: Any, orders: Any, cap: Any,
    at: Any, below: Any, upto: Any, first: Any, last: Any,
) -> Any:  # fmt: skip
    """The different codes of rows near any target, and the ranks of all regions in half rows.

    Of each quantile the rows ``codes[starts:ends]`` are known, which have the ranks ``before`` and following; of equal
    rows beyond them all are too far from the target to matter.
    """
    number, done = 0, 0
    for answer in range(floors.shape[0]):
        start, end, first_rank = starts[answer], ends[answer], before[answer]
        ceiling = (floors[answer] + (2 if orders[answer] > 0 else 1)) // 2
        low = max(max(floors[answer] // 2 - cap - 1, done), first_rank)
        high = min(ceiling + cap + 2, first_rank + end - start)
        if low >= high:
            continue
        done = high
        first_row, end_row = start + low - first_rank, start + high - first_rank
        found = distinct(codes, start, end, first_row, end_row, at[number:], below[number:], upto[number:])
        for index in range(number, number + found):
            below[index] += first_rank
            upto[index] += first_rank
        # Rows equal to the last code of an earlier range.
        if number > 0 and at[number] == at[number - 1]:
            upto[number - 1] = max(upto[number - 1], upto[number])
            for index in range(number, number + found - 1):
                at[index], below[index], upto[index] = at[index + 1], below[index + 1], upto[index + 1]
            found -= 1
        number += found
    first[0], last[2 * number] = 0, 2 * rows
    for index in range(number):
        equal = 1 if upto[index] > below[index] else 0
        last[2 * index], first[2 * index + 2] = 2 * below[index], 2 * upto[index]
        first[2 * index + 1], last[2 * index + 1] = 2 * below[index] + equal, 2 * upto[index] - equal
    return number


@inlined
def state_at(
    word: Any, start: Any, end: Any, place: Any, steep: Any, regardless: Any, error: Any, lost: Any,
    places: Any, weights: Any, sums: Any,
) -> Any:  # fmt: skip
    """The state at a point, given by its first 64 bits, or ``UNCERTAIN``; also where none is at it.

    ``regardless`` is the weight beyond those of all states, negative where there is nothing beyond them.
    """
    total = 0.0
    for at in range(start, end):
        total += weights[at] * np.exp(-steep * abs(places[at] - place))
        sums[at] = total
    size, whole = end - start, total + max(regardless, 0.0)
    if not SMALLEST_TOTAL < whole < LARGEST_TOTAL:
        return UNCERTAIN
    error = error + REGARDLESS_ERROR + (size + 1) * lost / whole
    margin = whole * (4.0 * max(error, FLOAT_ERROR) + (size + 1) * SUM_ERROR)
    point = np.float64(word) / 2.0**64 * whole
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > point:
            high = middle
        else:
            low = middle + 1
    if low >= end or (low > start and point - sums[low - 1] <= margin):
        return UNCERTAIN
    if low == end - 1 and regardless < 0.0:
        return low
    return low if sums[low] - point > margin else UNCERTAIN


@inlined
def place_in_order(ascending: Any, code: Any) -> Any:
    """Put a code where it belongs among all but the last, which is free."""
    at = ascending.shape[0] - 1
    while at > 0 and ascending[at - 1] > code:
        ascending[at] = ascending[at - 1]
        at -= 1
    ascending[at] = code


@cached
def choose(
    codes: Any, starts: Any, ends: Any, before: Any, rows: Any, cap: Any, steep: Any,
    floors: Any, orders: Any, parts: Any, sizes: Any, whole: Any,
    kinds: Any, numbers: Any, scales: Any, weights: Any, highs: Any, lows: Any, words: Any,
    at: Any, below: Any, upto: Any, first: Any, last: Any, masses: Any, of_parts: Any,
    keys: Any, places: Any, likely: Any, regions: Any, counts: Any, sources: Any, source_ends: Any,
    at_keys: Any, at_places: Any, at_weights: Any, at_starts: Any, sums: Any,
    offsets: Any, shifts: Any, errors: Any, losses: Any, walk: Any, answers: Any, certain: Any,
) -> Any:  # fmt: skip
    """The answers of each group, whether they are certain, and whether there was room for all states.

    ``sizes`` has the row of ``floors``, ``orders`` and ``parts`` for each group, and ``whole`` the logarithm of base 2
    of the weight of all answers regardless of rows, before that of masses; ``at`` to ``walk`` are room to work in.
    """
    many = floors.shape[1]
    for group in range(answers.shape[0]):
        which = sizes[group]
        certain[group] = False
        number = regions_of(
            codes, starts[group], ends[group], before[group], rows[group], floors[which], orders[which], cap,
            at, below, upto, first, last,
        )  # fmt: skip
        size = 2 * number + 1
        masses[:size] = 0.0
        for component in range(weights.shape[0]):
            part = part_of(kinds, numbers, scales, component)
            of_base = highs[component, 0], lows[component, 0], highs[component, 1], lows[component, 1]
            add_masses(part, weights[component], of_base, at, number, masses)
        unit = scale_masses(masses, first, last, size, floors[which], orders[which], 2 * cap)
        if not sum_walks(
            first, last, masses, size, floors[which], orders[which], parts[which], 2 * cap, steep,
            keys, places, likely, regions, counts, sources, source_ends,
            at_keys, at_places, at_weights, at_starts, sums, offsets, shifts,
        ):  # fmt: skip
            return group
        shift, errors[0], losses[0] = 0, 0.0, 0.0
        for answer in range(many):
            states = offsets[answer + 1] - offsets[answer]
            shift += shifts[answer + 1]
            errors[answer + 1] = errors[answer] + MASS_ERROR + ROUNDING * (8 * states + 64 + 16 * steep * cap)
            losses[answer + 1] = np.ldexp(states * losses[answer] + SMALLEST, np.int32(-shifts[answer + 1]))
        exponent = whole - many * unit - shift
        if exponent > 1000.0:
            continue
        used = 1
        chosen = state_at(
            words[group, 0], offsets[many], offsets[many + 1], 0.0, steep, 2.0**exponent, errors[many], losses[many],
            places, likely, sums,
        )  # fmt: skip
        answer = many
        while chosen != UNCERTAIN and answer > 0:
            answer -= 1
            walk[answer] = regions[chosen]
            place, source, source_end = places[chosen], sources[chosen], source_ends[chosen]
            chosen = source
            if source_end > source + 1:
                chosen = state_at(
                    words[group, used], source, source_end, place, steep, -1.0, errors[answer], losses[answer],
                    places, likely, sums,
                )  # fmt: skip
                used += 1
        if chosen == UNCERTAIN:
            continue
        walked, place = 0.0, 0.0
        for answer in range(many):
            low = (first[walk[answer]] - floors[which, answer]) - parts[which, answer]
            high = (last[walk[answer]] - floors[which, answer]) - parts[which, answer]
            there = min(max(place, low), high)
            walked, place = walked + abs(there - place), there
        if walked + abs(place) > 4 * cap - 1:
            continue  # perhaps too far: the twin knows exactly
        certain[group] = True
        answer = 0
        while answer < many:
            region, first_of_run = walk[answer], answer
            while answer < many and walk[answer] == region:
                if region % 2:
                    answers[group, answer] = at[region // 2]
                elif used + 8 <= words.shape[1] and certain[group]:
                    code, is_certain, more = draw_from_gap(
                        kinds, numbers, scales, weights, highs, lows, at, number, region // 2, words[group, used:],
                        of_parts,
                    )  # fmt: skip
                    certain[group] = is_certain
                    place_in_order(answers[group, first_of_run : answer + 1], code)
                    used += more
                else:
                    certain[group] = False
                answer += 1
    return answers.shape[0]
