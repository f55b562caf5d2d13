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
NAME: Final = "name"
# name, values, type, and what follows the type
LINE: Final = re.compile(rb"([^:|\n]+):([^|\n]+)\|([a-zA-Z]+)((?:\|[^|\n]*)*)")
PLAIN_NUMBER: Final = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def read_lines(block: bytes, names: set[str]) -> tuple[dict[str, list[Item]], dict[str, int]]:
    """The items of whole lines by the name of their timer, of the timers that are wanted.

    >>> read_lines(b"api.request:12|ms|#route:/pay", {"api.request"})[0]["api.request"][0].attributes
    {'route': '/pay', 'value': 12.0}
    """
    found: dict[str, list[Item]] = {}
    malformed = 0
    for line in block.split(b"\n"):
        if not line or line == b"\r":
            continue
        match = LINE.fullmatch(line.rstrip(b"\r")) if len(line) <= LONGEST_LINE else None
        if match is None:
            malformed += 1
            continue
        raw, values, kind, rest = match.groups()
        name = raw.decode("utf-8", "replace")
        if kind not in TIMERS or name not in names:
            continue
        attributes: dict[str, object] = {}
        if rest:
            for part in rest.split(b"|"):
                if part[:1] == b"#":
                    for tag in part[1:].decode("utf-8", "replace").split(","):
                        label, _, said = tag.partition(":")
                        attributes[label] = said
        for value in values.split(b":"):
            number = float(value) if PLAIN_NUMBER.fullmatch(value) else None
            found.setdefault(name, []).append(Item({**attributes, "value": "" if number is None else number}))
    return found, {MALFORMED: malformed} if malformed else {}
