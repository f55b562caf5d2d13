"""The body of a request, within bounds: of size, of time, of all bodies together, and of what gzip makes of it."""

import asyncio
import zlib
from typing import Final

from starlette.requests import ClientDisconnect, Request

from dpfrugal.serve.settings import Limits

GZIP: Final = 16 + zlib.MAX_WBITS
ALL_BODIES: Final = 32  # so many largest bodies may be on their way at once
MOST_MEMBERS: Final = 16  # of a gzip body: what follows a member is copied, and clients send one
LEAST_RATIO_OF: Final = 1 << 20  # so many bytes may come from any body, however small


class BodyError(Exception):
    """A body that is not taken: its status, and a sentence that says nothing of its content."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Bodies:
    """Reads bodies for all requests of a server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._on_their_way = 0

    async def read(self, request: Request) -> bytes:
        """The decoded body."""
        limits = self._limits
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip"):
            raise BodyError(415, "The content encoding must be gzip, or none.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limits.body:
            raise BodyError(413, f"The body must have at most {limits.body:,} bytes; send smaller batches.")
        taken = 0
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.seconds):
                async for part in request.stream():
                    taken += len(part)
                    self._on_their_way += len(part)
                    if taken > limits.body:
                        raise BodyError(413, f"The body must have at most {limits.body:,} bytes; send smaller batches.")
                    if self._on_their_way > ALL_BODIES * limits.body:
                        raise BodyError(503, "Too many bodies are on their way; send this one again later.")
                    parts.append(part)
        except TimeoutError:
            raise BodyError(408, f"The body must arrive within {limits.seconds:g} seconds.") from None
        except ClientDisconnect:
            raise BodyError(400, "The body is not complete.") from None
        finally:
            self._on_their_way -= taken
        body = b"".join(parts)
        return unpacked(body, limits) if encoding == "gzip" else body


def unpacked(body: bytes, limits: Limits) -> bytes:
    """What gzip made the body from, unless it is more than the limits allow."""
    most = min(limits.decompressed, max(LEAST_RATIO_OF, limits.ratio * len(body)))
    parts: list[bytes] = []
    size = 0
    for _ in range(MOST_MEMBERS + 1):
        if not body:
            return b"".join(parts)
        stream = zlib.decompressobj(GZIP)
        try:
            part = stream.decompress(body, most - size + 1)
        except zlib.error:
            raise BodyError(400, "The body is not gzip, although its content encoding says so.") from None
        parts.append(part)
        size += len(part)
        if size > most:
            raise BodyError(413, f"The body must unpack to at most {most:,} bytes; send smaller batches.")
        if not stream.eof:
            raise BodyError(400, "The body ends within its gzip stream.")
        body = stream.unused_data
    raise BodyError(400, f"The body must have at most {MOST_MEMBERS} gzip members.")
