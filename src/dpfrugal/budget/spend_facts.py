"""What was asked for by a spend: a few public facts beside its guarantee, for whoever reads the history of a ledger.

An estimator gives what it knows: ``column`` or ``metric``, ``quantiles``, ``source`` (a file's name, or the type of the
data). Who asked, the user of the operating system, is added here. None of it enters composition. Text comes from
outside: it is recorded with every character escaped that cannot be printed, and cut at 200.
"""

import getpass
import os
from collections.abc import Mapping
from typing import Any, Final

from dpfrugal.errors import ParameterTypeError
from dpfrugal.outside_text import in_line

Asked = dict[str, Any]  # of strings, numbers, truth values, None and lists of these
LONGEST_TEXT: Final = 200
SHORT: Final = 4  # quantiles that a line shows


def checked_asked(asked: Mapping[str, Any] | None) -> Asked:
    """The facts as JSON can record them, with the user who asks.

    >>> checked_asked({"column": "ms", "quantiles": (0.5,), "who": "alice"})
    {'column': 'ms', 'quantiles': [0.5], 'who': 'alice'}
    """
    given = {} if asked is None else {str(name): _fact(name, value) for name, value in asked.items()}
    return given if "who" in given else given | {"who": printable(user())}


def user() -> str:
    """The user of the operating system; the number, where it has no name."""
    if hasattr(os, "getuid"):
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return f"user {os.getuid()}"
    return getpass.getuser()


def printable(text: str) -> str:
    """The text with all that cannot be printed escaped, and no longer than 200 characters."""
    shown = in_line(text[:LONGEST_TEXT])
    return shown if len(text) <= LONGEST_TEXT and len(shown) <= LONGEST_TEXT else f"{shown[: LONGEST_TEXT - 1]}…"


def compact(asked: Mapping[str, Any]) -> str:
    """On one line: ``q=0.5, 0.9 of ms in requests.parquet, for alice``; empty where nothing was said."""
    several = asked.get("quantiles")
    listed = several if isinstance(several, list) else []
    shown = ", ".join(f"{q:g}" if isinstance(q, float) else str(q) for q in listed[:SHORT])
    more = f", … ({len(listed)})" if len(listed) > SHORT else ""
    what = asked.get("column") or asked.get("metric")
    parts = [
        f"q={shown}{more}" if listed else "",
        f"of {what}" if what else "",
        f"in {asked['source']}" if asked.get("source") else "",
    ]
    said = " ".join(part for part in parts if part)
    known = ("column", "metric", "quantiles", "source", "who")
    others = [f"{name}={_listed(value)}" for name, value in asked.items() if name not in known and value is not None]
    return ", ".join([*([said] if said else []), *others, *([f"for {asked['who']}"] if asked.get("who") else [])])


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _fact(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return [_fact(name, part) for part in value]
    raise ParameterTypeError(f"asked[{name!r}] must be text, a number or a list of these, not {type(value).__name__}.")
