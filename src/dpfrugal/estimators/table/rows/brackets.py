"""Brackets: codes between which the rows of some ranks probably lie, as a sample of all rows tells."""

import math
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.native_rows import Rows

FEW: Final = 16  # in the sample: a code that has fewer rows there is not worth an interval of its own


@dataclass(frozen=True)
class Bracket:
    """Codes from ``low`` to ``high``; the ``atoms`` among them are counted, all others collected."""

    low: int = field(repr=False)
    high: int = field(repr=False)
    atoms: tuple[int, ...] = field(default=(), repr=False)

    def intervals(self) -> list[tuple[int, int, bool]]:
        """What a scan looks for, in ascending order: first code, last code, and whether rows are collected."""
        found, first = [], self.low
        for atom in self.atoms:
            if first < atom:
                found.append((first, atom - 1, True))
            found.append((atom, atom, False))
            first = atom + 1
        return [*found, (first, self.high, True)] if first <= self.high else found


def jittered(arrays: Sequence[Rows], rows: int, size: int) -> Rows:
    """About so many rows of held arrays: one at a random place of each of equally long parts."""
    generator = np.random.default_rng(secrets.randbits(128))
    stride = max(rows // size, 1)
    places = np.arange(0, rows, stride)
    if stride > 1:
        places = np.minimum(places + generator.integers(0, stride, places.size), rows - 1)
    found, first = [], 0
    for array in arrays:
        inside = slice(np.searchsorted(places, first), np.searchsorted(places, first + array.size))
        found.append(array[places[inside] - first])
        first += array.size
    return np.concatenate(found)


def bracket_of(sample: Codes, rows: int, ranks: tuple[int, int], deviations: int, ends: tuple[int, int]) -> Bracket:
    """Codes between which the rows of these ranks probably lie."""
    size = sample.size
    places = [size * rank / rows for rank in (ranks[0], ranks[1] + 1)]
    margins = [deviations * (1 + math.sqrt(place * (size - place) / size)) for place in places]
    first, last = math.floor(places[0] - margins[0]), math.ceil(places[1] + margins[1])
    low = int(sample[first]) if first >= 0 else ends[0]
    high = int(sample[last]) if last < size else ends[1]
    codes = np.unique(sample[max(first, 0) : last + 1])
    numbers = np.searchsorted(sample, codes, "right") - np.searchsorted(sample, codes, "left")
    return Bracket(low, high, tuple(codes[numbers >= max(FEW, (last - first) // 2)].tolist()))


def merged(brackets: Iterable[Bracket]) -> list[Bracket]:
    """Disjoint brackets of the same codes, in ascending order."""
    found: list[Bracket] = []
    for bracket in sorted(brackets, key=lambda each: each.low):
        if found and bracket.low <= found[-1].high:
            before = found.pop()
            atoms = tuple(sorted({*before.atoms, *bracket.atoms}))
            bracket = Bracket(before.low, max(before.high, bracket.high), atoms)
        found.append(bracket)
    return found
