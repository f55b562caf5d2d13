"""Bodies within bounds, whatever a client sends; what they may unpack to is known before it is unpacked."""

import asyncio
import gzip
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.requests import Request

from dpfrugal.serve.settings import Limits
from dpfrugal.serve.web.bodies import Bodies, BodyError, unpacked

LIMITS = Limits(body=1000, decompressed=5000, ratio=200, seconds=0.05)


def request(parts: Iterable[bytes | None], **headers: str) -> Request:
    """None is a client that leaves."""
    sent = [
        {"type": "http.disconnect"} if part is None else {"type": "http.request", "body": part, "more_body": True}
        for part in parts
    ]
    messages = iter([*sent, {"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        return next(messages)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": raw}, receive)


def read(*parts: bytes | None, bodies: Bodies | None = None, **headers: str) -> bytes:
    return asyncio.run((bodies or Bodies(LIMITS)).read(request(parts, **headers)))


def test_bodies__parts_are_joined_and_unpacked() -> None:
    assert read(b"one ", b"", b"two") == b"one two"
    assert read(gzip.compress(b"text"), content_encoding="gzip") == b"text"
    assert read(gzip.compress(b"a") + gzip.compress(b"b"), content_encoding=" GZIP ") == b"ab"
    assert read() == b""


@pytest.mark.parametrize(
    ("status", "parts", "headers"),
    [
        (413, [b"x" * 600, b"x" * 401], {}),
        (413, [b"x"], {"content_length": "1001"}),
        (413, [gzip.compress(bytes(5001))], {"content_encoding": "gzip"}),
        (415, [b"x"], {"content_encoding": "br"}),
        (400, [b"x", None], {}),
        (400, [b"no gzip"], {"content_encoding": "gzip"}),
        (400, [gzip.compress(b"text")[:-1]], {"content_encoding": "gzip"}),
    ],
)
def test_bodies__what_is_not_within_bounds_has_a_status(
    status: int, parts: list[bytes | None], headers: dict[str, str]
) -> None:
    bodies = Bodies(LIMITS)
    with pytest.raises(BodyError) as caught:
        read(*parts, bodies=bodies, **headers)
    assert caught.value.status == status
    assert read(b"x" * 1000, bodies=bodies) == b"x" * 1000  # nothing of it is still on its way


def test_bodies__a_slow_one_is_not_waited_for() -> None:
    async def never() -> Any:
        await asyncio.sleep(3600)

    slow = Request({"type": "http", "method": "POST", "headers": []}, never)
    with pytest.raises(BodyError) as caught:
        asyncio.run(Bodies(LIMITS).read(slow))
    assert caught.value.status == 408


def test_unpacked__a_small_body_may_unpack_to_a_mebibyte_and_a_large_one_to_a_multiple_of_itself() -> None:
    wide = Limits(decompressed=1 << 30, ratio=2)
    assert len(unpacked(gzip.compress(bytes(1 << 20)), wide)) == 1 << 20
    with pytest.raises(BodyError, match="1,048,576"):
        unpacked(gzip.compress(bytes((1 << 20) + 1)), wide)
