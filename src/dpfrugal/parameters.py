"""Checks of public parameters: each gives the parameter back as its plain type, or refuses it in one sentence.

A sentence names the parameter, the rule and the given value: parameters are public, so their values may be shown.
"""

import math
import numbers
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, Literal, TypeVar, get_args

import numpy as np

from dpfrugal.errors import ParameterError, ParameterTypeError

NanPolicy = Literal["raise", "omit"]
NullKeys = Literal["raise", "drop"]
NullGroups = Literal["raise", "drop", "group"]
Neighbours = Literal["replace", "add-remove"]

MOST_PER_PERSON: Final = 10**9
MOST_THREADS: Final = 64
LONGEST_NAME: Final = 200
# numpy counts its durations among the integers.
NOT_NUMBERS: Final = (bool, np.timedelta64)

Word = TypeVar("Word", bound=str)


def number(name: str, value: float, kinds: Any = (int, float, np.integer, np.floating)) -> float:
    """``value``, if it is an integer or a float; NaN and infinities are the caller's to refuse."""
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, kinds):
        raise ParameterTypeError(f"{name} must be a number, not {type(value).__name__}.")
    return value


def positive(name: str, value: float) -> float:
    """``value`` as a float, if it is finite and above zero."""
    if not (math.isfinite(number(name, value, numbers.Real)) and value > 0):
        raise ParameterError(f"{name} must be finite and above 0; {value} is not.")
    return float(value)


def probability(name: str, value: float) -> float:
    """``value`` as a float, if it lies strictly between 0 and 1."""
    if not 0 < number(name, value, numbers.Real) < 1:
        raise ParameterError(f"{name} must lie strictly between 0 and 1; {value} does not.")
    return float(value)


def integer(name: str, value: int, low: int, high: int | None = None, *, shown_high: str = "", advice: str = "") -> int:
    """``value`` as an int, if it lies between ``low`` and ``high``; ``shown_high`` is a shorter way to write that."""
    if isinstance(value, NOT_NUMBERS) or not isinstance(value, numbers.Integral):
        raise ParameterTypeError(f"{name} must be an integer, not {type(value).__name__}.")
    if high is None and value < low:
        raise ParameterError(f"{name} must be at least {low}; {value} is not.{advice}")
    if high is not None and not low <= value <= high:
        raise ParameterError(f"{name} must be between {low} and {shown_high or high}; {value} is not.{advice}")
    return int(value)


def truth(name: str, value: bool) -> bool:
    """``value``, if it is True or False."""
    if not isinstance(value, bool):
        raise ParameterTypeError(f"{name} must be True or False, not {type(value).__name__}.")
    return value


def one_of(name: str, value: Word, words: tuple[str, ...]) -> Word:
    """``value``, if it is one of some words."""
    if value not in words:
        *others, last = (f'"{word}"' for word in words)
        none = "neither" if len(words) == 2 else "none of them"
        raise ParameterError(f"{name} must be {', '.join(others)} or {last}; {value!r} is {none}.")
    return value


def quantiles(quantile: float | Sequence[float]) -> tuple[float, ...]:
    """One q or several, each strictly between 0 and 1, no two alike."""
    several: list[Any] = [quantile] if np.ndim(quantile) == 0 else list(quantile)  # type: ignore[arg-type]
    if not several:
        raise ParameterError("quantile must be a number or a sequence of at least one number; it is empty.")
    checked = tuple(probability("quantile", q) for q in several)
    if len(set(checked)) < len(checked):
        raise ParameterError("quantile must not name the same quantile twice.")
    return checked


def exact(value: float) -> Fraction:
    """The decimal number that a float is written as, exactly: 0.9 of ten rows is nine rows, and three times 0.1 is 0.3.

    >>> exact(0.1), Fraction(0.1) == Fraction(1, 10)
    (Fraction(1, 10), False)
    """
    return Fraction(repr(value))


def nan_policy(value: NanPolicy) -> NanPolicy:
    """``nan_policy``: refuse a batch with NaN or null items, or leave those out."""
    return one_of("nan_policy", value, get_args(NanPolicy))


def null_keys(value: NullKeys) -> NullKeys:
    """``null_keys``: refuse a batch with null keys, or drop their rows."""
    return one_of("null_keys", value, get_args(NullKeys))


def null_groups(value: NullGroups) -> NullGroups:
    """``null_keys`` of a table: these, or their rows are a group of their own."""
    return one_of("null_keys", value, get_args(NullGroups))


def neighbours(value: Neighbours) -> Neighbours:
    """``neighbours``: one item is replaced, or one is added or removed."""
    return one_of("neighbours", value, get_args(Neighbours))


def max_items_per_person(value: int) -> int:
    """``max_items_per_person``: how many items of a stream, or rows of a table, one person may have."""
    return integer("max_items_per_person", value, 1, MOST_PER_PERSON, shown_high="10**9")


def max_keys_per_person(value: int | None) -> int | None:
    """``max_keys_per_person``: in how many keys one person may have rows; None is no bound of its own."""
    return None if value is None else integer("max_keys_per_person", value, 1, MOST_PER_PERSON, shown_high="10**9")


def threads(value: int) -> int:
    """``threads``: a power of two, as keys are shared among threads by the low bits of their codes."""
    if integer("threads", value, 1, MOST_THREADS) & (value - 1):
        raise ParameterError(f"threads must be a power of two between 1 and {MOST_THREADS}; {value} is not.")
    return int(value)


def column(parameter: str, value: str) -> str:
    """``value``, if it is text; whether there is such a column is seen where the table is."""
    if not isinstance(value, str):
        raise ParameterTypeError(f"{parameter} must be the name of a column, not {type(value).__name__}.")
    return value


def name(parameter: str, value: str) -> str:
    """``value``, if it is short and can be printed; letters with accents in their composed form (NFC)."""
    if not isinstance(value, str):
        raise ParameterTypeError(f"{parameter} must be a string, not {type(value).__name__}.")
    value = unicodedata.normalize("NFC", value)
    if not (0 < len(value) <= LONGEST_NAME and value.isprintable() and value == value.strip()):
        raise ParameterError(
            f"{parameter} must be 1 to {LONGEST_NAME} printable characters, with no space at its ends."
        )
    return value
