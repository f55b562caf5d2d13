"""Words of 64 bits, one per item of a block: the vector instructions that no plain loop compiles to.

Each function is written twice: in Python, which is what it means and what runs without the compiler, and in
LLVM's terms, which every processor's compiler knows.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dpfrugal.kernels.coins import BLOCK

_SHORTS, _WIDE = ir.VectorType(ir.IntType(16), BLOCK), ir.VectorType(ir.IntType(32), BLOCK)


def ones(word: Any) -> Any:
    """How many bits of a word are set."""
    return np.uint64(int(word).bit_count())


def lowest(word: Any) -> Any:
    """The place of the lowest bit that is set; 64 if there is none."""
    return np.int64((int(word) & -int(word)).bit_length() - 1 if word else BLOCK)


def sides(points: Any, reaches: Any, coins: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
    """Which items lie above the mark, which coins allow a step towards their item, and which are undecided.

    An item is undecided where it is within reach of the mark, and where its coin equals the threshold: both are
    but the upper halves of what decides.
    """
    above = allowed = undecided = 0
    for lane in range(BLOCK):
        distance = int(points[lane]) - int(mark)
        threshold = up_from if distance > reaches[lane] else down_from
        above |= bool(distance > reaches[lane]) << lane
        allowed |= bool(coins[lane] > threshold) << lane
        undecided |= bool(abs(distance) <= reaches[lane] or coins[lane] == threshold) << lane
    return np.uint64(above), np.uint64(allowed), np.uint64(undecided)


def matches(numbers: Any, shift: Any, mask: Any, wanted: Any) -> Any:
    """Which of a block's 32-bit numbers, shifted right and masked, are the wanted one."""
    found = 0
    for lane in range(BLOCK):
        found |= bool((numbers[lane] >> shift) & mask == wanted) << lane
    return np.uint64(found)


def prefetch(array: Any, place: Any) -> None:
    """Ask for a place of an array ahead of its use. It need not exist: nothing is read."""


@intrinsic
def _population_count(_: Any, word: Any) -> Any:
    return word(word), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@intrinsic
def _trailing_zeros(_: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(word), generate


def _everywhere(builder: Any, row: Any, number: Any) -> Any:
    first = builder.insert_element(ir.Constant(row, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, ir.Constant(_WIDE, [0] * BLOCK))


@intrinsic
def _sides(_: Any, points: Any, reaches: Any, coins: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def row(place: int) -> Any:
            data = context.make_array(signature.args[place])(context, builder, arguments[place]).data
            return builder.load(builder.bitcast(data, _SHORTS.as_pointer()), align=2)

        def everywhere(place: int) -> Any:
            return _everywhere(builder, _SHORTS, arguments[place])

        distances, reaches, tosses = builder.sub(row(0), everywhere(3)), row(1), row(2)
        above = builder.icmp_signed(">", distances, reaches)
        thresholds = builder.select(above, everywhere(4), everywhere(5))
        allowed = builder.icmp_unsigned(">", tosses, thresholds)
        tied = builder.icmp_unsigned("==", tosses, thresholds)
        below = builder.icmp_signed("<", distances, ir.Constant(_SHORTS, [0] * BLOCK))
        lengths = builder.select(below, builder.neg(distances), distances)
        undecided = builder.or_(builder.icmp_signed("<=", lengths, reaches), tied)
        words = [builder.bitcast(bits, ir.IntType(64)) for bits in (above, allowed, undecided)]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 3)(points, reaches, coins, mark, up_from, down_from), generate


@intrinsic
def _matches(_: Any, numbers: Any, shift: Any, mask: Any, wanted: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        row = builder.load(builder.bitcast(data, _WIDE.as_pointer()), align=4)
        shift, mask, wanted = (_everywhere(builder, _WIDE, number) for number in arguments[1:])
        found = builder.icmp_signed("==", builder.and_(builder.ashr(row, shift), mask), wanted)
        return builder.bitcast(found, ir.IntType(64))

    return types.uint64(numbers, types.int32, types.int32, types.int32), generate


@intrinsic
def _prefetch(_: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(ask, [address, word(1), word(3), word(1)])  # to write, to keep, data
        return context.get_dummy_value()

    return types.void(array, place), generate


@overload(ones)
def _typed_ones(word: Any) -> Any:
    def compiled(word: Any) -> Any:
        return _population_count(word)

    return compiled


@overload(lowest)
def _typed_lowest(word: Any) -> Any:
    def compiled(word: Any) -> Any:
        return _trailing_zeros(word)

    return compiled


@overload(sides)
def _typed_sides(points: Any, reaches: Any, coins: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
    def compiled(points: Any, reaches: Any, coins: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
        return _sides(points, reaches, coins, mark, up_from, down_from)

    return compiled


@overload(matches)
def _typed_matches(numbers: Any, shift: Any, mask: Any, wanted: Any) -> Any:
    def compiled(numbers: Any, shift: Any, mask: Any, wanted: Any) -> Any:
        return _matches(numbers, shift, mask, wanted)

    return compiled


@overload(prefetch)
def _typed_prefetch(array: Any, place: Any) -> Any:
    def compiled(array: Any, place: Any) -> Any:
        return _prefetch(array, place)

    return compiled
