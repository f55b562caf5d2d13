"""StatsD lines as items: ``name:value|type|@rate|#tag:value,tag``, where the type is ms, h or d.

The dialects of Etsy and DataDog: several values may be packed as ``name:1:2:3|ms``. Lines of other types (counters,
gauges, sets) carry no item of a distribution and are passed over. A rate says how many items a client left out; the
quantiles of those that it sent are those of all, so nothing is multiplied.
"""

import re
from typing import Final

from dpfrugal.serve.ingest.items import MALFORMED, Item

LONGEST_LINE: Final = 8192
TIMERS: Final = (b"ms", b"h", b"d")
# name, values, type, and what follows the type
LINE: Final = re.compile(rb"([^:|\n]+):([^|\n]+)\|([a-zA-Z]+)((?:\|[^|\n\r]*)*)\r?")
PLAIN_NUMBER: Final = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def read_lines(block: bytes, names: set[str]) -> tuple[dict[str, list[Item]], dict[str, int]]:
    """The items of whole lines by the name of their timer, of the timers that are wanted.

    >>> read_lines(b"api.request:12|ms|#route:/pay", {"api.request"})[0]["api.request"][0].attributes
    {'route': '/pay', 'value': 12.0}
    """
    found: dict[str, list[Item]] = {}
    known: dict[bytes, dict[str, str]] = {}  # many lines of a block have the same tags
    raw_names = {name.encode(): name for name in names}
    malformed = 0
    for line in block.split(b"\n"):
        match = LINE.fullmatch(line) if len(line) <= LONGEST_LINE else None
        if match is None:
            malformed += line not in (b"", b"\r")
            continue
        raw, values, kind, rest = match.groups()
        name = raw_names.get(raw)
        if name is None or kind not in TIMERS:
            continue
        tags = known.get(rest)
        if tags is None:
            tags = known[rest] = _tags(rest)
        items = found.setdefault(name, [])
        for value in values.split(b":"):
            number = float(value) if PLAIN_NUMBER.fullmatch(value) else ""
            items.append(Item({**tags, "value": number}))
    return found, {MALFORMED: malformed} if malformed else {}


def _tags(rest: bytes) -> dict[str, str]:
    """The tags of what follows a type."""
    tags = {}
    for part in rest.split(b"|"):
        if part[:1] == b"#":
            for tag in part[1:].decode("utf-8", "replace").split(","):
                label, _, said = tag.partition(":")
                tags[label] = said
    return tags
