"""One interval for each of many groups of rows: ``estimators.table.radius.choose_interval`` is its readable twin.

A group's choice is made from a 64-bit word that is given. Floats decide only where they are certain, with the margins
of ``privacy.choice.by_floats``; a group that they cannot decide is left to the twin. Lists of radii are the twin's, bit
for bit: both read radii and masses from the same tables, of which ``place`` says where a value's list begins to count.
"""

from typing import Any

import numpy as np

from dpfrugal.kernels.choices.base_masses import code_of, double_of
from dpfrugal.kernels.choices.choose_regions import UNCERTAIN, chosen_by
from dpfrugal.kernels.compiler import cached, inlined


@inlined
def ends_of_doubles(
    value: Any, place: Any, least: Any, most: Any, offsets: Any, radii: Any, low: Any, high: Any
) -> Any:  # fmt: skip
    """The codes of both ends of all intervals around a double."""
    number = double_of(value)
    for at in range(offsets.shape[0]):
        radius = radii[place + offsets[at]]
        low[at] = max(code_of(number - radius), least)
        high[at] = min(code_of(number + radius), most)


@inlined
def ends_of_integers(
    value: Any, place: Any, least: Any, most: Any, offsets: Any, whole: Any, low: Any, high: Any
) -> Any:  # fmt: skip
    """The same around an integer: words of 64 bits have all differences."""
    middle = np.int64(value).view(np.uint64)
    room_below, room_above = middle - np.int64(least).view(np.uint64), np.int64(most).view(np.uint64) - middle
    for at in range(offsets.shape[0]):
        radius = whole[place + offsets[at]]
        low[at] = np.uint64(middle - radius).view(np.int64) if radius < room_below else least
        high[at] = np.uint64(middle + radius).view(np.int64) if radius < room_above else most


@inlined
def rows_below(codes: Any, start: Any, end: Any, value: Any) -> Any:
    """How many rows of a group are below a code."""
    low, high = start, end
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low - start


@inlined
def likelihood(over: Any, under: Any, cap: Any, slope: Any) -> Any:
    """That of an interval with so many rows too many without its last step, and so many too few with it."""
    return np.exp(-slope * min(max(max(over, under), -cap), cap))


@inlined
def weigh(
    codes: Any, start: Any, end: Any, value: Any, wanted: Any, cap: Any, slope: Any,
    listed: Any, place: Any, least: Any, most: Any, offsets: Any, masses: Any, factors: Any, itself: Any,
    low: Any, high: Any, kept: Any, weights: Any,
) -> Any:  # fmt: skip
    """The weights of a value's list, the number of intervals in it, and which of ``low`` and ``high`` it has."""
    if least == most:
        weights[0] = 1.0
        return 1
    rows = end - start
    below = rows_below(codes, start, end, value)
    upto = below
    while upto < rows and codes[start + upto] == value:
        upto += 1
    first, first_part, last, last_part = wanted
    excess = min((first - below) + first_part, (upto - last) - last_part)
    factor = likelihood(-np.inf, -excess, cap, slope)
    weights[0], mass, size = itself * factor, itself, 1
    last_low, last_high = value, value
    moved = True  # whether the excess differs from that of the interval before
    for at in range(listed):
        if low[at] == last_low and high[at] == last_high:
            continue
        last_low, last_high = low[at], high[at]
        if last_low == least and last_high == most:
            break
        was_moved, moved = moved, False
        while below > 0 and codes[start + below - 1] >= last_low:
            below -= 1
            moved = True
        while upto < rows and codes[start + upto] <= last_high:
            upto += 1
            moved = True
        if moved or was_moved:
            over, excess = excess, min((first - below) + first_part, (upto - last) - last_part)
            factor = likelihood(over, -excess, cap, slope)
        mass_here = masses[at] * factors[place + offsets[at]]
        mass += mass_here
        kept[size], weights[size] = at, mass_here * factor
        size += 1
    weights[size] = mass * likelihood(excess, -np.inf, cap, slope)
    return size + 1


@cached
def choose(
    codes: Any, starts: Any, values: Any, places: Any, of_doubles: Any, least: Any, most: Any,
    firsts: Any, first_parts: Any, lasts: Any, last_parts: Any, cap: Any, slope: Any, words: Any,
    offsets: Any, masses: Any, radii: Any, factors: Any, whole: Any, itself: Any,
    low: Any, high: Any, kept: Any, weights: Any, answers_low: Any, answers_high: Any, bounded: Any, certain: Any,
) -> Any:  # fmt: skip
    """The interval of each group, whether it is bounded, and certain; ``low`` to ``weights`` are room to work in."""
    for group in range(values.shape[0]):
        value, place = values[group], places[group]
        listed = offsets.shape[0] if place >= 0 else 0
        if listed and of_doubles:
            ends_of_doubles(value, place, least, most, offsets, radii, low, high)
        elif listed:
            ends_of_integers(value, place, least, most, offsets, whole, low, high)
        wanted = firsts[group], first_parts[group], lasts[group], last_parts[group]
        size = weigh(
            codes, starts[group], starts[group + 1], value, wanted, cap, slope,
            listed, place, least, most, offsets, masses, factors, itself, low, high, kept, weights,
        )  # fmt: skip
        chosen = chosen_by(weights, size, words[group, 0])
        certain[group], bounded[group] = chosen != UNCERTAIN, chosen != size - 1
        if chosen == size - 1 or chosen == UNCERTAIN:
            answers_low[group], answers_high[group] = least, most
        elif chosen == 0:
            answers_low[group], answers_high[group] = value, value
        else:
            answers_low[group], answers_high[group] = low[kept[chosen]], high[kept[chosen]]
