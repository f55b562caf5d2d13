"""One choice for each of many groups of rows, by compiled code: 100,000 groups of 100 rows in a few seconds.

The readable twin is ``mechanism.choose_code``. A group's choice is what the twin gives for the same bits; where floats
are not certain, or sixteen words of bits do not suffice, the twin makes it (docs/proofs.md, Theorem 16).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base, Component
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.spacings import Beside, Decimals, Every, Multiples, PowersOfTwo, Sizes
from dpfrugal.estimators.table.base.spreads import Binades, Even, Single
from dpfrugal.estimators.table.choices.mechanism import Choice, choose_code
from dpfrugal.estimators.table.rows.order_statistics import SortedRows
from dpfrugal.kernels import bit_layout as kinds
from dpfrugal.kernels.compiler import loading
from dpfrugal.kernels.threads import in_chunks
from dpfrugal.privacy import choice

# So many groups are chosen for between two calls of ``progress``.
AT_ONCE: Final = 4096


@dataclass(frozen=True)
class Targets:
    """The wanted rank of each group: integers over one denominator."""

    numerators: Sequence[int]
    denominator: int

    def __getitem__(self, group: int) -> Fraction:
        return Fraction(int(self.numerators[group]), self.denominator)

    def parts(self, first: int, last: int) -> tuple[Codes, Codes, NDArray[np.float64]]:
        """Of some groups: rounded down, rounded up, and what lies above the former, as a float."""
        halves = [divmod(int(each), self.denominator) for each in self.numerators[first:last]]
        floors = np.array([whole for whole, _ in halves], dtype=np.int64)
        rests = [rest for _, rest in halves]
        ceilings = floors + np.array([rest > 0 for rest in rests], dtype=np.int64)
        return floors, ceilings, np.array([rest / self.denominator for rest in rests], dtype=np.float64)


@dataclass(frozen=True)
class CompiledBase:
    """The components of a base as arrays: their kinds, numbers and weights, and the masses at the ends of the base."""

    kinds: NDArray[np.int64]
    numbers: NDArray[np.int64]
    scales: NDArray[np.float64]
    weights: NDArray[np.float64]
    highs: NDArray[np.int64]
    lows: NDArray[np.uint64]


def compiled(base: Base) -> CompiledBase:
    """The arrays of a base."""
    spacings, spreads = zip(*(_numbers(part) for part in base.components), strict=True)
    ends = [part.around(np.array([base.low, base.high])) for part in base.components]
    return CompiledBase(
        kinds=np.array([(s[0], t[0]) for s, t in zip(spacings, spreads, strict=True)], dtype=np.int64),
        numbers=np.array([(s[1], s[2], t[1]) for s, t in zip(spacings, spreads, strict=True)], dtype=np.int64),
        scales=np.array([s[3] for s in spacings], dtype=np.float64),
        weights=np.array([float(part.weight) for part in base.components]),
        highs=np.array([[below.high[0], upto.high[1]] for below, upto in ends], dtype=np.int64),
        lows=np.array([[below.low[0], upto.low[1]] for below, upto in ends], dtype=np.uint64),
    )


def _numbers(part: Component) -> tuple[tuple[int, int, int, float], tuple[int, int]]:
    """The kind and the numbers of a spacing, and of a spread."""
    match part.spacing:
        case None:
            spacing = kinds.EVERY_CODE, 1, 0, 1.0
        case Multiples(step, most):
            spacing = kinds.MULTIPLES, step, most, 1.0
        case Decimals(places):
            spacing = kinds.DECIMALS, 1, 0, 10.0**places
        case Every(step, first, of):
            spacing = kinds.DECIMALS, step, first, 10.0**of.places
        case Beside(denominator, step):
            spacing = kinds.BESIDE, step, 0, float(denominator)
        case Sizes(reach):
            spacing = kinds.SIZES, (1023 - reach) << 52, 2 * reach << 52, 1.0
        case PowersOfTwo(exponent):
            spacing = kinds.POWERS_OF_TWO, exponent, 0, 1.0
        case other:
            raise AssertionError(f"{type(other).__name__} has no compiled form")
    match part.spread:
        case Even():
            return spacing, (kinds.EVEN, 0)
        case Binades(centre):
            return spacing, (kinds.BINADES, centre)
        case Single(centre):
            return spacing, (kinds.SINGLE, centre)
        case _:
            raise AssertionError(f"{type(part.spread).__name__} has no compiled form")


def choose_many(
    codes: Codes,
    starts: NDArray[np.int64],
    public: Choice,
    targets: Targets,
    progress: Callable[[int], None] | None = None,
) -> Codes:
    """An answer for every group: the codes of group g, ascending, are ``codes[starts[g]:starts[g + 1]]``.

    ``progress`` is called with the number of groups that are done, now and then.
    """
    with loading("choose_regions"):
        from dpfrugal.kernels.choices.choose_regions import choose as choose_groups

    base, arrays = public.base, compiled(public.base)
    starts = np.ascontiguousarray(starts, dtype=np.int64)
    groups = starts.size - 1
    answers = np.empty(groups, dtype=np.int64)
    # No group's window has more different codes than this.
    most = min(int(np.diff(starts).max(initial=0)), 2 * public.cap + 6)

    def chooser() -> Callable[[int, int], None]:
        at, below, upto = (np.empty(most, dtype=np.int64) for _ in range(3))
        masses = np.empty(max(2 * most + 1, len(base.components)))

        def choose(first: int, last: int) -> None:
            words, certain = choice.words(last - first, kinds.WORDS), np.empty(last - first, dtype=np.bool_)
            with np.errstate(all="ignore"):  # for the kernel as it is written, where the compiler is off
                choose_groups(
                    codes, starts[first : last + 1], *targets.parts(first, last),
                    public.cap, float(public.above), float(public.below),
                    arrays.kinds, arrays.numbers, arrays.scales, arrays.weights, arrays.highs, arrays.lows, words,
                    at, below, upto, masses, answers[first:last], certain,
                )  # fmt: skip
            for group in (first + np.flatnonzero(~certain)).tolist():
                rows = SortedRows(codes[starts[group] : starts[group + 1]])
                tape = choice.Tape(words[group - first].tolist())
                answers[group] = choose_code(rows, public, targets[group], tape)

        return choose

    in_chunks(chooser, groups, AT_ONCE, progress)
    return answers
