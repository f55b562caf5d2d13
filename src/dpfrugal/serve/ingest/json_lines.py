"""JSON lines as items: an object a line, of which only the fields that a metric names are read.

``msgspec`` decodes a whole body at once. Where one line is no object, lines are decoded one by one, and only those that
are wrong are left out.
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
        try:
            records = self._decoder.decode_lines(body)
        except self._problems:
            records = []
            for line in body.split(b"\n"):
                if not line.strip():
                    continue
                try:
                    records.append(self._decoder.decode(line))
                except self._problems:
                    malformed += 1
        return [Item(record) for record in records], {MALFORMED: malformed} if malformed else {}
