"""Values as text: as many digits as an interval can tell."""

import math
from typing import Any


def shown_value(value: Any, width: float | None = None) -> str:
    """A value as text: a float with as many digits as an interval of this width can tell, at least six."""
    if not isinstance(value, float):
        return str(value)
    digits = 6
    if width is not None and 0 < width < math.inf and value and math.isfinite(value):
        digits = min(17, max(digits, 3 + math.floor(math.log10(abs(value))) - math.floor(math.log10(width))))
    shown, whole = f"{value:.{digits}g}", repr(value)
    return whole.removesuffix(".0") if width == 0 or len(whole) <= len(shown) else shown
