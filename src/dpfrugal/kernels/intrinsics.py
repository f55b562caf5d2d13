"""Processor instructions that no plain loop compiles to: bit masks of vector comparisons, counts of bits, prefetching.

Each function is defined twice: in Python, which is its specification and runs where the compiler is off, and in LLVM's
intermediate language, which compiles on every processor. Bit masks have 64 bits, one per item of a block.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dpfrugal.kernels.bit_layout import PRIME
from dpfrugal.kernels.coins import BLOCK

_SHORTS, _WIDE = ir.VectorType(ir.IntType(16), BLOCK), ir.VectorType(ir.IntType(32), BLOCK)


def ones(word: Any) -> Any:
    """How many bits of a word are set."""
    return np.uint64(int(word).bit_count())


def lowest(word: Any) -> Any:
    """The number of the lowest bit that is set; 64 if there is none."""
    return np.int64((int(word) & -int(word)).bit_length() - 1 if word else BLOCK)


def sides(points: Any, margins: Any, coins: Any, estimate: Any, up_from: Any, down_from: Any) -> Any:
    """Which items of a block certainly move the estimate up, which down, and which are undecided.

    Points and coins are the upper halves of what decides. An item is undecided if its point is within the margin of
    its lane, or if its coin equals the upper half of the threshold.
    """
    up = down = undecided = 0
    for lane in range(BLOCK):
        distance, coin = int(points[lane]) - int(estimate), int(coins[lane])
        threshold = int(up_from if distance > margins[lane] else down_from) >> 16
        is_undecided = abs(distance) <= margins[lane] or coin == threshold
        moves = coin > threshold and not is_undecided
        up |= bool(moves and distance > 0) << lane
        down |= bool(moves and distance < 0) << lane
        undecided |= bool(is_undecided) << lane
    return np.uint64(up), np.uint64(down), np.uint64(undecided)


def compared(rows: Any, first: Any, low: Any, high: Any) -> Any:
    """Which of the 64 rows from ``first`` on are below ``low``, and which are at most ``high``."""
    block = rows[first : first + BLOCK]
    below, upto = (np.packbits(is_so, bitorder="little").view(np.uint64)[0] for is_so in (block < low, block <= high))
    return below, upto


def prefetch(array: Any, place: Any) -> None:
    """Load the cache line of an element, counted in the array's flat order, ahead of its use. It need not exist."""


def product(one: Any, other: Any) -> Any:
    """The product of two numbers below ``PRIME``, modulo ``PRIME``."""
    return np.uint64(int(one) * int(other) % PRIME)


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
def _sides(_: Any, points: Any, margins: Any, coins: Any, estimate: Any, up_from: Any, down_from: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def row(place: int) -> Any:
            data = context.make_array(signature.args[place])(context, builder, arguments[place]).data
            return builder.load(builder.bitcast(data, _SHORTS.as_pointer()), align=2)

        def everywhere(place: int) -> Any:
            return _everywhere(builder, _SHORTS, arguments[place])

        distances, margins, tosses = builder.sub(row(0), everywhere(3)), row(1), row(2)
        above = builder.icmp_signed(">", distances, margins)
        thresholds = builder.select(above, everywhere(4), everywhere(5))
        allowed = builder.icmp_unsigned(">", tosses, thresholds)
        tied = builder.icmp_unsigned("==", tosses, thresholds)
        below = builder.icmp_signed("<", distances, ir.Constant(_SHORTS, [0] * BLOCK))
        lengths = builder.select(below, builder.neg(distances), distances)
        undecided = builder.or_(builder.icmp_signed("<=", lengths, margins), tied)
        above, allowed, undecided = (builder.bitcast(bits, ir.IntType(64)) for bits in (above, allowed, undecided))
        decided = builder.and_(allowed, builder.not_(undecided))
        words = [builder.and_(decided, above), builder.and_(decided, builder.not_(above)), undecided]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 3)(points, margins, coins, estimate, up_from, down_from), generate


@intrinsic
def _compared(_: Any, rows: Any, first: Any, low: Any, high: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        lane = context.get_data_type(signature.args[0].dtype)
        row = ir.VectorType(lane, BLOCK)
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), row.as_pointer())
        block = builder.load(place, align=context.get_abi_sizeof(lane))
        if isinstance(signature.args[0].dtype, types.Float):
            compare = builder.fcmp_ordered
        else:
            compare = builder.icmp_signed if signature.args[0].dtype.signed else builder.icmp_unsigned
        words = [
            builder.bitcast(compare(sign, block, _everywhere(builder, row, arguments[place])), ir.IntType(64))
            for sign, place in (("<", 2), ("<=", 3))
        ]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 2)(rows, first, rows.dtype, rows.dtype), generate


@intrinsic
def _prefetch(_: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(ask, [address, word(0), word(3), word(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, place), generate


@intrinsic
def _product(_: Any, one: Any, other: Any) -> Any:
    word, double = ir.IntType(64), ir.IntType(128)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = builder.mul(*(builder.zext(argument, double) for argument in arguments))
        low = builder.and_(builder.trunc(whole, word), word(PRIME))
        total = builder.add(low, builder.trunc(builder.lshr(whole, double(61)), word))  # at most 2 * PRIME
        return builder.select(builder.icmp_unsigned(">=", total, word(PRIME)), builder.sub(total, word(PRIME)), total)

    return types.uint64(types.uint64, types.uint64), generate


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
def _typed_sides(points: Any, margins: Any, coins: Any, estimate: Any, up_from: Any, down_from: Any) -> Any:
    def compiled(points: Any, margins: Any, coins: Any, estimate: Any, up_from: Any, down_from: Any) -> Any:
        half = np.uint32(16)
        return _sides(points, margins, coins, estimate, np.uint16(up_from >> half), np.uint16(down_from >> half))

    return compiled


@overload(compared)
def _typed_compared(rows: Any, first: Any, low: Any, high: Any) -> Any:
    def compiled(rows: Any, first: Any, low: Any, high: Any) -> Any:
        return _compared(rows, first, low, high)

    return compiled


@overload(prefetch)
def _typed_prefetch(array: Any, place: Any) -> Any:
    def compiled(array: Any, place: Any) -> Any:
        return _prefetch(array, place)

    return compiled


@overload(product)
def _typed_product(one: Any, other: Any) -> Any:
    def compiled(one: Any, other: Any) -> Any:
        return _product(np.uint64(one), np.uint64(other))

    return compiled
