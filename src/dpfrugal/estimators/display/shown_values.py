"""Values as text: as many digits as an interval can tell."""

import math
from datetime import timedelta
from typing import Any

import numpy as np


def shown_value(value: Any, width: float | None = None) -> str:
    """A value as text: a float with as many digits as an interval of this width can tell, at least six."""
    if isinstance(value, timedelta | np.timedelta64):
        return shown_duration(np.timedelta64(value))
    if isinstance(value, np.datetime64):
        whole, point, part = str(value).partition(".")
        return f"{whole}{point}{part}".rstrip("0").rstrip(".") if point else whole
    if not isinstance(value, float):
        return str(value)
    digits = 6
    if width is not None and 0 < width < math.inf and value and math.isfinite(value):
        digits = min(17, max(digits, 3 + math.floor(math.log10(abs(value))) - math.floor(math.log10(width))))
    shown, whole = f"{value:.{digits}g}", repr(value)
    return whole.removesuffix(".0") if width == 0 or len(whole) <= len(shown) else shown


def shown_duration(value: np.timedelta64) -> str:
    """A duration as days, hours, minutes and seconds, to its unit: ``3 days 0:08:17.5``."""
    second = np.timedelta64(1, "s")
    sign, size = ("-" if value < np.timedelta64(0) else ""), abs(value)
    seconds, rest = size // second, size % second
    nanoseconds = int(rest / np.timedelta64(1, "ns"))
    days, hours = divmod(int(seconds), 86_400)
    part = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    shown = f"{hours // 3_600}:{hours // 60 % 60:02d}:{hours % 60:02d}{part}"
    return f"{sign}{days} day{'s' * (days != 1)} {shown}" if days else f"{sign}{shown}"
