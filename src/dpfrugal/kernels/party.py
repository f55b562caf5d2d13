"""A party: four estimates that a block's items are shown to at once.

Where most items are far from all of them, ``sides_together`` tells which; the loads are shared. Where many items are
near, ``walk_together`` moves the estimates, as four lanes of the same vectors.
The steps are counted by edges, as ``kernels`` does for one estimate: eight edges of four items are the eight bytes of a
word, and a word less what was crossed so far tells how many more are crossed. Here the words of four estimates lie
side by side. Worked number: four estimates take 1.9 times as long as one; each by itself, they would take 2.2 times.

Both are written twice: in Python, which is what they mean and what runs without the compiler, and in LLVM's terms,
which every processor's compiler knows.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from dpfrugal.kernels.coins import BLOCK

PARTY: Final = 4
GROUP: Final = 4
GROUPS: Final = BLOCK // GROUP
# The point of an item that is none.
NOT_A_NUMBER: Final = -(2**15)

# Half a block of 16-bit numbers fills a vector.
_HALF: Final = BLOCK // 2
_BYTE, _SHORT, _INT, _WORD = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_BYTES, _WORDS = ir.VectorType(_BYTE, BLOCK), ir.VectorType(_WORD, PARTY)
_TOP_EACH: Final = 0x8080808080808080 - 2**64


def sides_together(
    points: Any, reaches: Any, coins: Any, base: Any, shift: Any, estimates: Any, ups: Any, downs: Any, words: Any
) -> None:
    """Which items move each estimate up, which down, and which are undecided: three rows of words.

    Points, coins and thresholds are upper halves, as in ``bits.sides``. Undecided are items within reach whose coin may
    allow a step at all, and those whose coin equals the threshold.
    """
    for k in range(PARTY):
        mark, least_up, least_down = int(estimates[k] - base) >> int(shift), int(ups[k]), int(downs[k])
        up = down = undecided = 0
        for lane in range(BLOCK):
            distance, coin = int(points[lane]) - mark, int(coins[lane])
            above, below = bool(distance > reaches[lane]), bool(-distance > reaches[lane])
            threshold = least_up if above else least_down if below else min(least_up, least_down)
            up |= (above and coin > threshold) << lane
            down |= (below and coin > threshold) << lane
            undecided |= (coin >= threshold if not (above or below) else coin == threshold) << lane
        words[0][k], words[1][k], words[2][k] = np.uint64(up), np.uint64(down), np.uint64(undecided)


def walk_together(
    points: Any, coins: Any, scale: Any, base: Any, estimates: Any, up_from: Any, down_from: Any, party: Any
) -> None:
    """Move the estimates of a party past a block whose points are seen from the base. Some may be named twice."""
    for k in {int(k) for k in party}:
        here, least_up, least_down = int(estimates[k] - base), int(up_from[k]), int(down_from[k])
        for point, coin in zip(points.tolist(), coins.tolist(), strict=True):
            if point != NOT_A_NUMBER:
                here += (point > here and coin >= least_up) - (point < here and coin >= least_down)
        estimates[k] = base + here


def _row(kind: Any, numbers: Iterable[int]) -> Any:
    listed = list(numbers)
    return ir.Constant(ir.VectorType(kind, len(listed)), listed)


def _picked(builder: Any, one: Any, other: Any, places: Iterable[int]) -> Any:
    """A row of some places of two rows, the second one's counted on from the first one's."""
    return builder.shuffle_vector(one, other, _row(_INT, places))


def _everywhere(builder: Any, number: Any, size: int = BLOCK) -> Any:
    first = builder.insert_element(ir.Constant(ir.VectorType(number.type, size), ir.Undefined), number, _INT(0))
    return _picked(builder, first, first, [0] * size)


def _joined(builder: Any, halves: Iterable[Any]) -> Any:
    """A word of two half rows of bits.

    The empty instruction keeps the compiler from joining them as masks: they would take thrice as long to leave the
    vector unit.
    """
    as_it_is = ir.InlineAsm(ir.FunctionType(_INT, [_INT]), "", "=r,0")
    low, high = (builder.zext(builder.call(as_it_is, [builder.bitcast(bits, _INT)]), _WORD) for bits in halves)
    return builder.or_(low, builder.shl(high, _WORD(32)))


def _clipped(builder: Any, row: Any, least: int, most: int) -> Any:
    for sign, bound in ((">", least), ("<", most)):
        bounds = _row(row.type.element, [bound] * BLOCK)
        row = builder.select(builder.icmp_signed(sign, row, bounds), row, bounds)
    return row


def _edges(builder: Any, points: Any, mark: Any, may_rise: Any, may_fall: Any) -> tuple[Any, Any]:
    """The tops and the bottoms of a block's items, seen from a mark."""
    near = builder.sub(points, _everywhere(builder, mark))
    near = builder.trunc(_clipped(builder, near, -128, 127), _BYTES)  # one instruction, as bytes saturate
    near = _clipped(builder, near, -BLOCK, BLOCK)
    lowest, one, highest = (_row(_BYTE, [number] * BLOCK) for number in (-BLOCK, 1, BLOCK))
    return builder.select(may_rise, near, lowest), builder.select(may_fall, builder.add(near, one), highest)


def _group_and_estimate(lane: int) -> tuple[int, int]:
    """Which group and which estimate a lane belongs to: so that ``_zipped`` puts a group's words side by side."""
    sixteen, place = divmod(lane, 16)
    return 8 * (sixteen // 2) + place // 2, 2 * (sixteen % 2) + place % 2


def _by_turn(builder: Any, rows: list[Any]) -> list[Any]:
    """Four estimates' edges of a block: a row of the groups' first items, one of the second ones, and so on.

    In two steps, first for two estimates each; in between, a row has two turns of them.
    """
    even = [lane if not lane & 1 else BLOCK + lane - 1 for lane in range(BLOCK)]
    odd = [lane + 1 if not lane & 1 else BLOCK + lane for lane in range(BLOCK)]
    pairs = [[_picked(builder, rows[k], rows[k + 1], places) for places in (even, odd)] for k in (0, 2)]
    found = []
    for turn in range(GROUP):
        places = [
            BLOCK * (estimate // 2) + GROUP * group + (turn & 2) + estimate % 2
            for group, estimate in map(_group_and_estimate, range(BLOCK))
        ]
        found.append(_picked(builder, pairs[0][turn & 1], pairs[1][turn & 1], places))
    return found


def _before(builder: Any, edge: Any, top: Any, bottom: Any) -> Any:
    """``kernels.before``."""
    up, down = builder.icmp_signed("<=", edge, top), builder.icmp_signed(">=", edge, bottom)
    return builder.add(builder.sub(edge, builder.zext(up, _BYTES)), builder.zext(down, _BYTES))


def _zipped(builder: Any, rows: list[Any], unit: int = 1) -> list[Any]:
    """Eight rows of bytes as eight of words, each word with a byte of all; every sixteen bytes stay among themselves.

    Of each sixteen, word 2j + i comes to row j, place i.
    """
    if len(rows) == 1:
        return rows
    half, size, each = len(rows) // 2, BLOCK // unit, 16 // unit
    rows = [builder.bitcast(row, ir.VectorType(ir.IntType(8 * unit), size)) for row in rows]
    found = []
    for first in (0, each // 2):
        places = [
            place
            for begin in range(first, size, each)
            for own in range(begin, begin + each // 2)
            for place in (own, size + own)
        ]
        found += _zipped(builder, [_picked(builder, rows[i], rows[half + i], places) for i in range(half)], 2 * unit)
    return found


def _groups(builder: Any, turns: list[tuple[Any, Any]]) -> list[Any]:
    """The words of each group, one for each estimate."""
    starts = _row(_BYTE, [GROUP * _group_and_estimate(lane)[0] - 128 for lane in range(BLOCK)])  # 128 + 4g, signed
    found = []
    for turn, edges in enumerate(turns):
        for edge in edges:
            for earlier in reversed(turns[:turn]):
                edge = _before(builder, edge, *earlier)
            found.append(builder.sub(starts, edge))
    words = [builder.bitcast(row, ir.VectorType(_WORD, 2 * PARTY)) for row in _zipped(builder, found)]
    return [_picked(builder, row, row, range(half, half + PARTY)) for half in (0, PARTY) for row in words]


def _crossed(builder: Any, groups: list[Any]) -> Any:
    """How many edges each estimate crosses; until the last group the count stands in every byte of its word."""
    kind = ir.FunctionType(_WORDS, [_WORDS])
    ones = cgutils.get_or_insert_function(builder.module, kind, f"llvm.ctpop.v{PARTY}i64")
    tops, to_all_bytes = _row(_WORD, [_TOP_EACH] * PARTY), [i - i % 8 for i in range(8 * PARTY)]
    spread = _row(_WORD, [0] * PARTY)
    for group in groups:
        count = builder.call(ones, [builder.and_(builder.sub(group, spread), tops)])
        counts = builder.bitcast(count, ir.VectorType(_BYTE, 8 * PARTY))
        spread = builder.add(spread, builder.bitcast(_picked(builder, counts, counts, to_all_bytes), _WORDS))
    return builder.and_(spread, _row(_WORD, [255] * PARTY))


@intrinsic
def _sides_together(
    _: Any,
    points: Any,
    reaches: Any,
    coins: Any,
    base: Any,
    shift: Any,
    estimates: Any,
    ups: Any,
    downs: Any,
    words: Any,
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def cell(place: int, number: int) -> Any:
            data = context.make_array(signature.args[place])(context, builder, arguments[place]).data
            return builder.gep(data, [_WORD(number)])

        def half(place: int, first: int) -> Any:
            row = ir.VectorType(_SHORT, _HALF).as_pointer()
            return builder.load(builder.bitcast(cell(place, first), row), align=2)

        halves = []
        for first in (0, _HALF):
            points, reaches, coins = (half(place, first) for place in range(3))
            halves.append((builder.sub(points, reaches), builder.add(points, reaches), coins))
        for k in range(PARTY):
            distance = builder.sub(builder.load(cell(5, k)), arguments[3])
            mark = _everywhere(builder, builder.trunc(builder.ashr(distance, arguments[4]), _SHORT), _HALF)
            up, down = (_everywhere(builder, builder.load(cell(place, k)), _HALF) for place in (6, 7))
            either = builder.select(builder.icmp_unsigned("<", up, down), up, down)
            found = []
            for least, most, coins in halves:
                above, below = builder.icmp_signed(">", least, mark), builder.icmp_signed("<", most, mark)
                thresholds = builder.select(above, up, builder.select(below, down, either))
                allowed, tied = (builder.icmp_unsigned(sign, coins, thresholds) for sign in (">", "=="))
                found.append((above, below, allowed, tied))
            above, below, allowed, tied = (_joined(builder, pair) for pair in zip(*found, strict=True))
            near = builder.and_(allowed, builder.not_(builder.or_(above, below)))
            results = builder.and_(above, allowed), builder.and_(below, allowed), builder.or_(tied, near)
            for row, word in enumerate(results):
                builder.store(word, cell(8, PARTY * row + k))
        return context.get_dummy_value()

    return types.void(points, reaches, coins, types.int64, types.int64, estimates, ups, downs, words), generate


@overload(sides_together, jit_options={"forceinline": True})
def _typed_sides_together(
    points: Any, reaches: Any, coins: Any, base: Any, shift: Any, estimates: Any, ups: Any, downs: Any, words: Any
) -> Any:
    def compiled(
        points: Any, reaches: Any, coins: Any, base: Any, shift: Any, estimates: Any, ups: Any, downs: Any, words: Any
    ) -> Any:
        return _sides_together(points, reaches, coins, base, shift, estimates, ups, downs, words)

    return compiled


@intrinsic
def _walk_together(
    _: Any, points: Any, coins: Any, scale: Any, base: Any, estimates: Any, up_from: Any, down_from: Any, party: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def data(place: int) -> Any:
            return context.make_array(signature.args[place])(context, builder, arguments[place]).data

        def row(place: int, kind: Any, align: int) -> Any:
            return builder.load(builder.bitcast(data(place), ir.VectorType(kind, BLOCK).as_pointer()), align=align)

        points, coins = row(0, _SHORT, 2), row(1, _INT, 4)
        is_number = builder.icmp_signed("!=", points, _row(_SHORT, [NOT_A_NUMBER] * BLOCK))
        numbers = [builder.load(builder.gep(data(7), [_WORD(place)])) for place in range(PARTY)]
        own = [builder.gep(data(4), [k]) for k in numbers]
        before = [builder.load(estimate) for estimate in own]
        tops, bottoms = [], []
        for k, estimate in zip(numbers, before, strict=True):
            thresholds = (builder.load(builder.gep(data(place), [k])) for place in (5, 6))
            allowed = [builder.icmp_unsigned(">=", coins, _everywhere(builder, least)) for least in thresholds]
            if not isinstance(scale, types.NoneType):
                allowed = [builder.and_(lanes, is_number) for lanes in allowed]
            mark = builder.trunc(builder.sub(estimate, arguments[3]), _SHORT)
            top, bottom = _edges(builder, points, mark, *allowed)
            tops.append(top)
            bottoms.append(bottom)
        turns = list(zip(_by_turn(builder, tops), _by_turn(builder, bottoms), strict=True))
        moves = builder.sub(_row(_WORD, [BLOCK] * PARTY), _crossed(builder, _groups(builder, turns)))
        for place in range(PARTY):
            moved = builder.add(before[place], builder.extract_element(moves, _INT(place)))
            builder.store(moved, own[place])
        return context.get_dummy_value()

    return types.void(points, coins, scale, types.int64, estimates, up_from, down_from, party), generate


@overload(walk_together)
def _typed_walk_together(
    points: Any, coins: Any, scale: Any, base: Any, estimates: Any, up_from: Any, down_from: Any, party: Any
) -> Any:
    def compiled(
        points: Any, coins: Any, scale: Any, base: Any, estimates: Any, up_from: Any, down_from: Any, party: Any
    ) -> Any:
        return _walk_together(points, coins, scale, base, estimates, up_from, down_from, party)

    return compiled
