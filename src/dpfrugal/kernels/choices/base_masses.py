"""Cumulative masses of a component of a base at one code, and the code at a cumulative mass.

The readable twin is ``estimators.table.base_measure.Component``, with its spacings and spreads. A component is a tuple
of numbers: the kinds of its spacing and spread, three integers and a scale of the spacing, the centre of the spread.
A cumulative mass is a pair high·2^bits + low, as there.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.bit_layout import (
    BESIDE,
    BINADES,
    DECIMALS,
    EVEN,
    EVEN_BITS,
    EVERY_CODE,
    MULTIPLES,
    SIZES,
    UNIT_BITS,
)
from dpfrugal.kernels.compiler import inlined

MOST_INDEX: Final = 2.0**53 - 1
MOST_NUMERATOR: Final = 2**49
INFINITY: Final = 0x7FF0000000000000

_0, _1, _52, _63, _1023 = (np.uint64(n) for n in (0, 1, 52, UNIT_BITS, 1023))
_UNIT = np.uint64(2**UNIT_BITS)
_WITHIN_UNIT = np.uint64(2**UNIT_BITS - 1)
_HALF = np.int64(2**EVEN_BITS - 1)
_SIGN = np.int64(-(2**63))
_I1 = np.int64(1)


@inlined
def double_of(code: Any) -> Any:
    """The double at a place among all doubles; what lies beyond ±inf is ±inf."""
    code = min(max(code, -INFINITY), INFINITY)
    return np.int64(code).view(np.float64) if code >= 0 else np.int64(-code | _SIGN).view(np.float64)


@inlined
def code_of(value: Any) -> Any:
    """The place of a double among all doubles."""
    bits = np.float64(value).view(np.int64)
    return np.int64(bits) if bits >= 0 else np.int64(-(bits & ~_SIGN))


@inlined
def numerator_upto(value: Any, scale: Any) -> Any:
    """The last k with k / scale ≤ value: guessed by a multiplication, corrected by what the division gives."""
    guess = np.floor(min(max(value * scale, -(MOST_INDEX + 1)), MOST_INDEX))
    while guess >= -MOST_INDEX and guess / scale > value:
        guess -= 1
    while guess < MOST_INDEX and (guess + 1) / scale <= value:
        guess += 1
    return guess


@inlined
def beside_at(code: Any, step: Any, scale: Any) -> Any:
    """The last index below a code and the last up to it, of fractions and the doubles next to them."""
    begun, most = np.int64(numerator_upto(double_of(code + _I1), scale)) // step, MOST_NUMERATOR // step
    if begun < -most:
        none = np.int64(-3 * most - _I1)
        return none, none
    nearest = min(begun, most)
    passed = code - code_of(np.float64(nearest * step) / scale)
    upto = 3 * nearest + min(passed, _I1) + _I1
    return np.int64(upto - _I1 if passed <= 1 else upto), np.int64(upto)


@inlined
def decimals_at(value: Any, scale: Any) -> Any:
    """The last k with k / scale < value, and the last with k / scale ≤ value."""
    guess = numerator_upto(value, scale)
    before = guess
    while before >= -MOST_INDEX and before / scale == value:
        before -= 1
    return np.int64(before), np.int64(guess)


@inlined
def size_upto(code: Any, first: Any, number: Any) -> Any:
    """Counted from the smallest double of either sign."""
    if code > -first:
        return min(max(code, first - _I1), first + number - _I1) - first
    return min(max(code, -first - number), -first) + first - _I1


@inlined
def power_upto(value: Any, exponent: Any) -> Any:
    """The last k with k·2^exponent ≤ value."""
    scaled = np.ldexp(value, np.int32(-exponent))
    index = np.int64(np.floor(min(max(scaled, -(2.0**60)), 2.0**53)))
    if value < 0 and scaled == 0:
        index -= _I1
    return max(index, np.int64(-(2**53) - 1))


@inlined
def indices_at(spacing: Any, one: Any, two: Any, scale: Any, code: Any) -> Any:
    """The last index whose point is below a code, and the last whose point is at most the code."""
    if spacing == MULTIPLES:
        index = code // one
        before = index - _I1 if index * one == code else index
        if two > 0:
            return np.int64(min(max(before, -two - _I1), two)), np.int64(min(max(index, -two - _I1), two))
        return np.int64(before), np.int64(index)
    if spacing == DECIMALS:
        before, upto = decimals_at(double_of(code), scale)
        if one == 1:
            return before, upto
        return np.int64((before - two) // one), np.int64((upto - two) // one)
    if spacing == BESIDE:
        return beside_at(np.int64(code), one, scale)
    if spacing == SIZES:
        return np.int64(size_upto(code - _I1, one, two)), np.int64(size_upto(code, one, two))
    return np.int64(power_upto(double_of(code - _I1), one)), np.int64(power_upto(double_of(code), one))


@inlined
def first_mass(number: Any) -> Any:
    """The mass of the first so many indices on one side of a centre, as a pair."""
    if number == _0:
        return np.int64(0), _0
    binade = (np.float64(number).view(np.uint64) >> _52) - _1023
    if binade > _63 or (_1 << binade) > number:  # the conversion may have rounded up to a power of two
        binade -= _1
    low = (number - (_1 << binade) + _1) << (_63 - binade)
    return np.int64(binade + (low >> _63)), low & _WITHIN_UNIT


@inlined
def distance_of(index: Any, centre: Any) -> Any:
    """Of two integers of 64 bits, modulo 2^64: no distance reaches that."""
    one, other = np.int64(index).view(np.uint64), np.int64(centre).view(np.uint64)
    return one - other if index >= centre else other - one


@inlined
def mass_upto(spread: Any, centre: Any, index: Any, with_index: Any) -> Any:
    """The cumulative mass up to an index, or below it, as a pair."""
    if spread == EVEN:
        low = (index & _HALF) + (_I1 if with_index else np.int64(0))
        return np.int64((index >> EVEN_BITS) + (low >> EVEN_BITS)), np.uint64(low & _HALF)
    above = index > centre or (with_index and index == centre)
    if spread != BINADES:
        return np.int64(1 if above else 0), _0
    distance = distance_of(index, centre)
    if above:
        high, low = first_mass(distance if with_index else distance - _1)
        return np.int64(high + 1), low
    high, low = first_mass(distance - _1 if with_index else distance)
    if low > _0:
        return np.int64(-high - 1), _UNIT - low
    return np.int64(-high), low


@inlined
def places(part: Any, code: Any) -> Any:
    """The cumulative masses of a component below a code and up to it: two pairs."""
    spacing, spread, one, two, scale, centre = part
    if spacing == EVERY_CODE:
        high, low = mass_upto(spread, centre, np.int64(code), False)
        next_high, next_low = mass_upto(spread, centre, np.int64(code), True)
        return high, low, next_high, next_low
    before, upto = indices_at(spacing, one, two, scale, code)
    high, low = mass_upto(spread, centre, before, True)
    if before == upto:
        return high, low, high, low
    next_high, next_low = mass_upto(spread, centre, upto, True)
    return high, low, next_high, next_low


@inlined
def bits_of(spread: Any) -> Any:
    """Of the lower number of a pair."""
    return np.uint64(EVEN_BITS) if spread == EVEN else _63 if spread == BINADES else _0


@inlined
def mass_between(high: Any, low: Any, next_high: Any, next_low: Any, bits: Any) -> Any:
    """What lies between two cumulative masses: a sum of terms that are not negative."""
    units = next_high - high
    if units == 0:
        return np.float64(next_low - low)
    unit = np.float64(_1 << bits)
    return (units - 1) * unit + np.float64((_1 << bits) - low) + np.float64(next_low)


@inlined
def point_at(part: Any, index: Any) -> Any:
    """The code of a point."""
    spacing, _, one, two, scale, _ = part
    if spacing == EVERY_CODE:
        return np.int64(index)
    if spacing == MULTIPLES:
        return np.int64(index * one)
    if spacing == DECIMALS:
        return code_of(np.float64(index * one + two) / scale)
    if spacing == BESIDE:
        numerator = index // np.int64(3)
        return np.int64(code_of(np.float64(numerator * one) / scale) + (index - 3 * numerator) - _I1)
    if spacing == SIZES:
        return np.int64(index + one if index >= 0 else index + _I1 - one)
    return code_of(np.ldexp(np.float64(index), np.int32(one)))


@inlined
def code_at(part: Any, high: Any, low: Any, more_high: Any, more_low: Any) -> Any:
    """The code whose mass covers a cumulative mass, a pair, plus an integer of 128 bits."""
    _, spread, _, _, _, centre = part
    if spread == EVEN:
        start = np.int64(high << EVEN_BITS).view(np.uint64) + low
        return point_at(part, np.uint64(start + more_low).view(np.int64))
    if spread != BINADES:
        return point_at(part, np.int64(centre))
    within = low + (more_low & _WITHIN_UNIT)
    unit = high + np.int64((more_high << _1) + (more_low >> _63) + (within >> _63))
    within &= _WITHIN_UNIT
    if unit == 0:
        return point_at(part, np.int64(centre))
    binade = np.uint64(unit - 1 if unit > 0 else -unit - 1)
    within = within if unit > 0 else _WITHIN_UNIT - within
    distance = (_1 << binade) + (within >> (_63 - binade))
    middle = np.int64(centre).view(np.uint64)
    index = middle + distance if unit > 0 else middle - distance
    return point_at(part, np.uint64(index).view(np.int64))


@inlined
def number_between(high: Any, low: Any, next_high: Any, next_low: Any, bits: Any) -> Any:
    """What lies between two cumulative masses, exactly: the upper and the lower 64 bits."""
    units = np.uint64(next_high - high)
    if bits == _0:
        return _0, units
    upper, lower = units >> (np.uint64(64) - bits), units << bits
    total = lower + next_low
    if total < lower:
        upper += _1
    if total < low:
        upper -= _1
    return upper, total - low
