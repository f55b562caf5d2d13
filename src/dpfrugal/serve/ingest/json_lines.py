"""JSON lines as items: an object a line, of which only the fields that a metric names are read.

Each line is decoded by itself, and counts or not whatever the others are. A decoder of whole bodies would read two
objects of one line, or an object of two lines, as long as no other line is wrong.
"""

from typing import Any

from dpfrugal.serve.ingest.items import MALFORMED, Item


class JsonLines:
    """A decoder for the fields that are wanted."""

    def __init__(self) -> None:
        import msgspec

        # A field may be anything: whether it is a number is asked later, of every item by itself.
        self._decoder = msgspec.json.Decoder(dict[str, Any])
        self._problems = (msgspec.MsgspecError, ValueError, RecursionError)

    def read(self, body: bytes) -> tuple[list[Item], dict[str, int]]:
        """The items of a body, and how many lines were refused for which reason."""
        malformed = 0
        records = []
        decode = self._decoder.decode
        for line in body.split(b"\n"):
            if line and not line.isspace():
                try:
                    records.append(decode(line))
                except self._problems:
                    malformed += 1
        return [Item(record) for record in records], {MALFORMED: malformed} if malformed else {}
