"""Types of columns: what their answers are, and how answers, codes and public hints become each other.

Floats, integers to 64 bits, decimals, dates, timestamps and durations are answered in their own type, which is public.
A decimal is an integer in units of its last place. One that 64 bits cannot hold counts as the largest or the smallest
of them, which as an answer is ±infinity: it says that the quantile lies beyond, and never shows that bound as a value.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.table.base.base_measure import (
    Base,
    Regions,
    base_of_decimals,
    base_of_doubles,
    base_of_integers,
    base_of_times,
)
from dpfrugal.estimators.table.base.codes import Codes, codes_of, doubles_of
from dpfrugal.parameters import integer

MOST_DECIMALS: Final = 15
LEAST, MOST = -(2**63), 2**63 - 1
# Times lie on whole seconds, minutes, hours and days, and mostly within the 136 years that 32 bits have in seconds.
PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
LARGER: Final = (1, 60, 3600, 86400)  # in seconds
MOST_SECONDS: Final = 2**32


@dataclass(frozen=True)
class Kind:
    """A type of column: its name, the base of its answers, and how codes and values become each other."""

    name: str
    base: Base
    answer: Callable[[int], Any] = field(compare=False)
    code: Callable[[Any], Fraction] = field(compare=False)  # of a hint; between two codes for one that is no value
    arrow_type: Any = field(compare=False, default=None)  # of decimals and times
    saturates: bool = False  # its largest and its smallest code stand for all values beyond

    @property
    def has_infinity(self) -> bool:
        """Whether ±inf compare with its answers, as with all numbers; times have none."""
        return not isinstance(self.answer(0), np.generic)

    def beyond(self, codes: Codes) -> NDArray[np.bool_]:
        """Which answers are ±infinity, as the quantile is a decimal that 64 bits cannot hold."""
        return np.isin(codes, (LEAST, MOST)) if self.saturates else np.zeros(codes.shape, dtype=np.bool_)

    def array(self, codes: Codes, missing: NDArray[np.bool_]) -> Any:
        """Codes as an Arrow array of the column's type, null where they are missing."""
        import pyarrow as pa

        if self.base.of_doubles:
            return pa.array(doubles_of(codes), mask=missing)
        if self.arrow_type is None:
            return pa.array(codes.view(np.uint64) ^ np.uint64(2**63) if self is UNSIGNED else codes, mask=missing)
        if pa.types.is_decimal(self.arrow_type):
            scale = self.arrow_type.scale
            values = [None if is_missing else _scaled(code, scale) for code, is_missing in _pairs(codes, missing)]
            return pa.array(values, pa.decimal128(38, scale))
        whole = pa.int32() if pa.types.is_date32(self.arrow_type) else pa.int64()
        return pa.array(np.where(missing, 0, codes), mask=missing).cast(whole).cast(self.arrow_type)


def _pairs(codes: Codes, missing: NDArray[np.bool_]) -> Iterable[tuple[int, bool]]:
    return zip(codes.tolist(), missing.tolist(), strict=True)


def _float_code(hint: Any) -> Fraction:
    return Fraction(int(codes_of(np.array([float(hint)]))[0]))


def _float_answer(code: int) -> float:
    return float(doubles_of(np.array([code], dtype=np.int64))[0])


FLOATS: Final = Kind("float", base_of_doubles(), _float_answer, _float_code)
INTEGERS: Final = Kind("integer", base_of_integers(), int, Fraction)
UNSIGNED: Final = Kind(
    "uint64", base_of_integers(zero=LEAST), lambda code: code - LEAST, lambda hint: Fraction(hint) + LEAST
)


def _scaled(code: int, scale: int) -> Decimal:
    return Decimal(code).scaleb(-scale, context=Context(prec=40))


def decimals_of(scale: int, arrow_type: Any = None) -> Kind:
    """Fixed-point numbers: integers in units of 10^-scale."""

    def answer(code: int) -> Decimal:
        return Decimal(code) * Decimal("Infinity") if code in (LEAST, MOST) else _scaled(code, scale)

    def code_of(hint: Any) -> Fraction:
        if isinstance(hint, Decimal) and hint.is_infinite():
            return Fraction(MOST if hint > 0 else LEAST)
        return Fraction(hint) * Fraction(10) ** scale

    return Kind(f"decimal with {scale} places", base_of_integers(), answer, code_of, arrow_type, saturates=True)


def times_of(name: str, unit: str, kind: Any, arrow_type: Any = None) -> Kind:
    """Timestamps or durations in a unit, or dates; NaT is no answer."""
    if unit == "D":
        base = base_of_times(-(2**31), 2**31 - 1, (1,), MOST_SECONDS // LARGER[-1])
    else:
        second = PER_SECOND[unit]
        steps = sorted({1, *(each * second for each in LARGER)})
        base = base_of_times(LEAST + 1, MOST, steps, MOST_SECONDS * second)
    return Kind(
        name,
        base,
        lambda code: kind(code, unit),
        lambda hint: Fraction(int(kind(hint, unit).astype(np.int64))),
        arrow_type,
    )


def hinted(kind: Kind, low: Any, high: Any, decimals: int | None) -> Base:
    """The base of a column's answers, with public hints: between which values they lie, with how many decimals."""
    base = kind.base
    if decimals is not None:
        if not base.of_doubles:
            raise ParameterError(f"decimals is for columns of floats; this column is {kind.name}.")
        base = base_of_decimals(integer("decimals", decimals, 0, MOST_DECIMALS))
    first, last = (_hint(kind, name, value) for name, value in (("low", low), ("high", high)))
    least = base.low if first is None else max(base.low, math.ceil(first))
    most = base.high if last is None else min(base.high, math.floor(last))
    if least > most or not Regions(base.components, least, np.zeros(0, dtype=np.int64), most).exact(0):
        raise ParameterError(f"low and high must leave something to answer; between {low} and {high} there is nothing.")
    return base.within(None if first is None else least, None if last is None else most)


def _hint(kind: Kind, name: str, value: Any) -> Fraction | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool) or value != value:
            raise ValueError
        return kind.code(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        pass
    raise ParameterTypeError(f"{name} must be a value of the column, which is {kind.name}; {value!r} is not.")
