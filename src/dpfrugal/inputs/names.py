"""Names of columns, which are public, as errors list them."""

from collections.abc import Sequence
from typing import Any, Final

MOST_NAMES: Final = 20


def listed(names: Sequence[Any]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
