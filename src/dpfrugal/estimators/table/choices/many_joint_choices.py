"""Several answers for each of many groups of rows, by compiled code.

The readable twin is ``joint_choice.choose_jointly``. A group's answers are what the twin gives for the same bits; where
floats are not certain, or the words of bits do not suffice, the twin makes the choice (docs/proofs.md, Theorem 17).
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dpfrugal.estimators.table.base.base_measure import Regions
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.choices.joint_choice import JointChoice, choose_jointly
from dpfrugal.estimators.table.choices.many_choices import compiled
from dpfrugal.estimators.table.choices.walk_sums import Room, half_rows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.estimators.table.rows.stretches import Windows
from dpfrugal.kernels.compiler import loading, read_only
from dpfrugal.kernels.threads import in_chunks
from dpfrugal.privacy import choice

# So many groups are chosen for between two calls of ``progress``.
AT_ONCE: Final = 256
WORDS_EACH: Final = 12  # words of bits for each answer: one for its region, the others for its place in a gap


def choose_many_jointly(
    windows: Sequence[Windows],
    sizes: Codes,
    rows_of: Callable[[int], OrderStatistics],
    public: JointChoice,
    progress: Callable[[int], None] | None = None,
) -> Codes:
    """Answers for every group, ascending, from the rows around the rank of each quantile.

    ``sizes`` says how many rows each group has, and ``rows_of`` gives all rows of one for its twin's choice.
    ``progress`` is called with the number of groups that are done, now and then.
    """
    with loading("choose_jointly"):
        from dpfrugal.kernels.choices.choose_jointly import choose as choose_groups

    arrays, many, cap = compiled(public.base), len(public.quantiles), public.cap
    codes, starts, ends, before = stacked(windows)
    different, which = np.unique(sizes, return_inverse=True)
    targets, groups = half_rows(public.quantiles, different.tolist()), sizes.size
    answers = np.empty((groups, many), dtype=np.int64)
    # No group has more different codes near its ranks than this.
    most = min(int(sizes.max(initial=0)), many * (2 * cap + 6)) + many
    steep, whole = float(public.slope / 2), whole_logarithm(public)

    def chooser() -> Callable[[int, int], None]:
        at, below, upto = np.empty((3, most), dtype=np.int64)
        first, last = np.empty((2, 2 * most + 1), dtype=np.int64)
        masses, of_parts = np.empty(2 * most + 1), np.empty(len(public.base.components))
        offsets, shifts, walk = (np.empty(many + 2, dtype=np.int64) for _ in range(3))
        errors, losses = np.empty((2, many + 1))
        room = Room(4 * many * (2 * most + 2))

        def choose(begin: int, end: int) -> None:
            nonlocal room
            words, certain = choice.words(end - begin, WORDS_EACH * many), np.empty(end - begin, dtype=np.bool_)
            done = begin
            while done < end:
                here = slice(done - begin, end - begin)
                with np.errstate(all="ignore"):  # for the kernel as it is written, where the compiler is off
                    done += choose_groups(
                        codes, starts[done:end], ends[done:end], before[done:end], sizes[done:end], cap, steep,
                        targets.floors, targets.orders, targets.parts, which[done:end], whole,
                        arrays.kinds, arrays.numbers, arrays.scales, arrays.weights,
                        arrays.highs, arrays.lows, words[here], at, below, upto, first, last, masses, of_parts,
                        room.keys, room.places, room.weights, room.regions, room.counts, room.sources,
                        room.source_ends, room.at_keys, room.at_places, room.at_weights, room.at_starts, room.sums,
                        offsets, shifts, errors, losses, walk, answers[done:end], certain[here],
                    )  # fmt: skip
                if done < end:
                    room = Room(2 * room.states)
            for group in (begin + np.flatnonzero(~certain)).tolist():
                answers[group] = choose_jointly(rows_of(group), public, choice.Tape(words[group - begin].tolist()))

        return choose

    in_chunks(chooser, groups, AT_ONCE, progress)
    return answers


def stacked(windows: Sequence[Windows]) -> tuple[Codes, Codes, Codes, Codes]:
    """The codes of all windows; of each group and window the first, one more than the last, and the rows before it."""
    same = all(window.codes is windows[0].codes for window in windows)
    codes = windows[0].codes if same else np.concatenate([window.codes for window in windows])
    offsets = np.cumsum([0, *(0 if same else window.codes.size for window in windows[:-1])])
    starts = np.stack([each.starts[:-1] + offset for each, offset in zip(windows, offsets.tolist(), strict=True)], 1)
    ends = np.stack([each.starts[1:] + offset for each, offset in zip(windows, offsets.tolist(), strict=True)], 1)
    before = np.stack([each.before for each in windows], 1)
    return read_only(np.ascontiguousarray(codes, dtype=np.int64)), starts, ends, before


def whole_logarithm(public: JointChoice) -> float:
    """The logarithm of base 2 of the weight of all answers at the largest distance that counts."""
    base, many = public.base, len(public.quantiles)
    mass = Regions(base.components, base.low, np.zeros(0, dtype=np.int64), base.high).exact(0)
    exponent = float(2 * public.cap * public.slope)
    return many * math.log2(mass) - (math.lgamma(many + 1) + exponent) / math.log(2)
