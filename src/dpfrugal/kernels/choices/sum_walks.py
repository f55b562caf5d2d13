"""The sums of ``estimators.table.choices.chain``, compiled: states after each answer, and the exact order of places.

Places are multiples of half a row, less one of a few fractions of it: the fraction of 2·target for each answer. A key
holds both, so that places are compared as integers; distances are taken between floats.
"""

import math
from typing import Any

import numpy as np

from dpfrugal.kernels.compiler import cached, inlined


@inlined
def first_near(last: Any, size: Any, floor: Any, part: Any, reach: Any) -> Any:
    """The first region that ends at most ``reach`` half rows before a target, floor + part in half rows."""
    least = floor - reach + (1 if part > 0 else 0)
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if last[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def end_near(first: Any, size: Any, floor: Any, reach: Any) -> Any:
    """One more than the last region that begins at most ``reach`` half rows after a target."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if first[middle] <= floor + reach:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def scale_masses(masses: Any, first: Any, last: Any, size: Any, floors: Any, orders: Any, reach: Any) -> Any:
    """Bring all masses that count to at most 1, by a power of two, which is returned."""
    largest = 0.0
    for answer in range(floors.shape[0]):
        begin = first_near(last, size, floors[answer], orders[answer], reach)
        for region in range(begin, end_near(first, size, floors[answer], reach)):
            largest = max(largest, masses[region])
    scale = 0
    if largest > 0.0:
        scale = math.frexp(largest)[1]
    for region in range(size):
        masses[region] = np.ldexp(masses[region], np.int32(-scale))
    return scale


@inlined
def group_places(
    start: Any, end: Any, keys: Any, places: Any, weights: Any, regions: Any,
    at_keys: Any, at_places: Any, at_weights: Any, at_starts: Any,
) -> Any:  # fmt: skip
    """The different places of states, which are one after the other, with the weights of all states there."""
    number = -1
    for at in range(start, end):
        if number < 0 or keys[at] != at_keys[number]:
            number += 1
            at_keys[number], at_places[number], at_weights[number] = keys[at], places[at], weights[at]
            at_starts[number] = at
        else:
            at_weights[number] += weights[at]
    at_starts[number + 1] = end
    return number + 1


@inlined
def normalise(weights: Any, start: Any, end: Any) -> Any:
    """Divide weights by a power of two, which is returned, so that the largest is between 1/2 and 1."""
    largest = 0.0
    for at in range(start, end):
        largest = max(largest, weights[at])
    if largest == 0.0:
        return 0
    scale = math.frexp(largest)[1]
    for at in range(start, end):
        weights[at] = np.ldexp(weights[at], np.int32(-scale))
    return scale


@cached
def sum_walks(
    first: Any, last: Any, masses: Any, size: Any, floors: Any, orders: Any, parts: Any, reach: Any, steep: Any,
    keys: Any, places: Any, weights: Any, regions: Any, counts: Any, sources: Any, source_ends: Any,
    at_keys: Any, at_places: Any, at_weights: Any, at_starts: Any, upto: Any, offsets: Any, scales: Any,
) -> Any:  # fmt: skip
    """All states, those of answer j at ``offsets[j + 1]`` to ``offsets[j + 2]``; False where there is no room for them.

    Regions cover ranks ``first`` to ``last`` in half rows, targets are ``floors`` + ``parts``, which ``orders`` puts in
    order from 1 on (0 for none), and ``steep`` is the slope per half row. ``scales`` says by what powers of two the
    weights of each answer were divided in turn. ``at_keys`` to ``upto`` are room to work in.
    """
    room, base = keys.shape[0], floors.shape[0] + 2
    keys[0], places[0], weights[0], regions[0], counts[0], sources[0], source_ends[0] = 0, 0.0, 1.0, -1, 0, 0, 0
    offsets[0], offsets[1], scales[0] = 0, 1, 0
    for answer in range(floors.shape[0]):
        start, end, out = offsets[answer], offsets[answer + 1], offsets[answer + 1]
        group_places(start, end, keys, places, weights, regions, at_keys, at_places, at_weights, at_starts)
        floor, order, part = floors[answer], orders[answer], parts[answer]
        same, earlier, number, below = start, 0, 0, 0.0
        middle, summed, beyond = 0, 0, 0.0
        for region in range(first_near(last, size, floor, order, reach), end_near(first, size, floor, reach)):
            mass = masses[region]
            if mass == 0.0:
                continue
            while same < end and regions[same] < region:
                same += 1
            while at_starts[earlier] < same:  # places of one region are those of no other
                earlier += 1
            low_key, high_key = (first[region] - floor) * base - order, (last[region] - floor) * base - order
            low, high = (first[region] - floor) - part, (last[region] - floor) - part
            # The states below the region, in it, and above it; at a single place all are one state.
            while number < earlier and at_keys[number] < low_key:
                if number > 0:
                    below *= np.exp(-steep * (at_places[number] - at_places[number - 1]))
                below += at_weights[number]
                number += 1
            total = below * np.exp(-steep * (low - at_places[number - 1])) if number > 0 else 0.0
            if low_key < high_key and number > 0:
                if out >= room:
                    return False
                keys[out], places[out], weights[out], regions[out] = low_key, low, total * mass, region
                counts[out], sources[out], source_ends[out] = 1, start, at_starts[number]
                out += 1
                total = 0.0
            right = number
            while right < earlier and at_keys[right] <= high_key:
                if low_key == high_key:
                    total += at_weights[right]
                else:
                    if out >= room:
                        return False
                    keys[out], places[out] = at_keys[right], at_places[right]
                    weights[out], regions[out], counts[out] = at_weights[right] * mass, region, 1
                    sources[out], source_ends[out] = at_starts[right], at_starts[right + 1]
                    out += 1
                right += 1
            if right < earlier:
                # The sum over places from ``right`` to ``earlier``; rebuilt where it begins beyond ``middle``.
                if right >= middle:
                    middle, summed, beyond = earlier, earlier, 0.0
                    upto[earlier - 1] = at_weights[earlier - 1]
                    at = earlier - 2
                    while at >= right:
                        upto[at] = at_weights[at] + upto[at + 1] * np.exp(-steep * (at_places[at + 1] - at_places[at]))
                        at -= 1
                while summed < earlier:
                    beyond += at_weights[summed] * np.exp(-steep * (at_places[summed] - at_places[middle]))
                    summed += 1
                above = upto[right]
                if summed > middle:
                    above += beyond * np.exp(-steep * (at_places[middle] - at_places[right]))
                total += above * np.exp(-steep * (at_places[right] - high))
            if (low_key == high_key and earlier > 0) or right < earlier:
                if out >= room:
                    return False
                keys[out], places[out], weights[out], regions[out] = high_key, high, total * mass, region
                counts[out], sources[out] = 1, start if low_key == high_key else at_starts[right]
                source_ends[out] = at_starts[earlier]
                out += 1
            # One more answer in the region of the one before.
            distance, factor = 0.0, mass
            while same < end and regions[same] == region:
                if out >= room:
                    return False
                keys[out], places[out], weight = keys[same], places[same], weights[same] * mass
                if keys[same] > high_key:
                    if places[same] - high != distance:
                        distance = places[same] - high
                        factor = mass * np.exp(-steep * distance)
                    keys[out], places[out], weight = high_key, high, weights[same] * factor
                counts[out] = counts[same] + 1
                weights[out], regions[out] = weight / counts[out], region
                sources[out], source_ends[out] = same, same + 1
                same += 1
                out += 1
        offsets[answer + 2], scales[answer + 1] = out, normalise(weights, end, out)
    return True
