"""What readers ask for: the last releases for Prometheus, all of them as JSON, each as it is made, and the page."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dpfrugal.serve.exposition import as_json
from dpfrugal.serve.store import Store
from dpfrugal.serve.web.ingest_routes import problem

PAGE: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/openapi.json": ("openapi.json", "application/json"),
}
PAGE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
MOST_RELEASES: Final = 1_000
MOST_NUMBERS: Final = 100_000  # in one answer
MOST_READ: Final = 30 * MOST_NUMBERS  # for one answer of some keys
HEARTBEAT: Final = 15.0
ROUNDED: Final = 1e15
T = TypeVar("T")


class Streams:
    """The clients of server-sent events: each release once, the newest ones where a client is slow."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._queues: set[asyncio.Queue[bytes | None]] = set()

    @property
    def has_clients(self) -> bool:
        """Whether anybody listens."""
        return bool(self._queues)

    def send(self, event: bytes | None) -> None:
        """Give an event to all; None ends them."""
        for queue in self._queues:
            while queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    def join(self) -> "asyncio.Queue[bytes | None] | None":
        """A queue of events to come; None if there are too many clients."""
        if len(self._queues) >= self._most:
            return None
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=16)
        self._queues.add(queue)
        return queue

    def leave(self, queue: "asyncio.Queue[bytes | None]") -> None:
        """No more events."""
        self._queues.discard(queue)


def event_of(release: Any) -> bytes:
    """A release as a server-sent event."""
    return b"id: %d\nevent: release\ndata: %s\n\n" % (release.id, msgspec.json.encode(as_json(release)))


def public_routes(
    store: Store,
    scrape: Callable[[str], tuple[bytes, str]],
    overview: Callable[[], dict[str, Any]],
    streams: Streams,
    is_unreadable: Callable[[Exception], bool],
) -> list[Route]:
    """The routes of readers. None of them computes anything of items: they show what was released."""
    pages = {
        path: ((files("dpfrugal.serve") / "page" / name).read_bytes(), kind) for path, (name, kind) in PAGE.items()
    }

    readers = ThreadPoolExecutor(1, "readers")

    async def in_turn(work: Callable[[], T]) -> T:
        """Long answers are made one after the other, in a thread: no number of readers holds up those who send."""
        return await asyncio.get_running_loop().run_in_executor(readers, work)

    async def page(request: Request) -> Response:
        body, kind = pages[request.url.path]
        return Response(body, headers=PAGE_HEADERS, media_type=kind)

    async def metrics(request: Request) -> Response:
        body, content_type = scrape(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def about(request: Request) -> Response:
        return Response(json.dumps(overview()), media_type="application/json")

    async def releases(request: Request) -> Response:
        asked = request.query_params
        limit, after = _integer(asked.get("limit"), 100), _integer(asked.get("after"), 0)
        since = _time(asked.get("since"))
        if limit is None or not 1 <= limit <= MOST_RELEASES:
            return problem(400, f"limit must be an integer between 1 and {MOST_RELEASES}.")
        if after is None:
            return problem(400, "after must be the id of a release: an integer of at least 0.")
        if since is not None and not math.isfinite(since):
            return problem(400, "since must be a time such as 2026-11-18T12:00:00Z, or Unix seconds.")
        wanted = set(asked.getlist("key"))
        named = {name: known["name"] for known in overview()["metrics"] for name in (known["metric"], known["name"])}
        metric = asked.get("metric")
        if metric is not None and metric not in named:
            return problem(404, "There is no such metric; /api/v1/metrics lists them.")

        def answer() -> bytes:
            found = store.releases(
                metric=None if metric is None else named[metric], since=since, after=after, limit=limit + 1,
                most_numbers=MOST_READ if wanted else MOST_NUMBERS,
            )  # fmt: skip
            shown = found.releases[:limit]
            following = None
            if shown and (found.more or len(found.releases) > limit):
                parameters = [(name, value) for name, value in asked.multi_items() if name != "after"]
                following = "/api/v1/releases?" + urlencode([*parameters, ("after", shown[-1].id)], quote_via=quote)
            as_asked = [as_json(one, wanted.__contains__ if wanted else None) for one in shown]
            return msgspec.json.encode({"releases": as_asked, "next": following})

        try:
            body = await in_turn(answer)
        except Exception as error:
            if not is_unreadable(error):
                raise
            return problem(503, "The store of releases cannot be read.")
        return Response(body, media_type="application/json", headers={"cache-control": "no-store"})

    async def missed(after: int) -> AsyncIterator[bytes]:
        """What came after the last event that a client has had, a bounded part at a time; nothing, if it had none."""

        def part() -> list[tuple[int, bytes]]:
            found = store.releases(after=after, limit=100, most_numbers=MOST_NUMBERS)
            return [(release.id, event_of(release)) for release in found.releases]

        more = after >= 0
        while more:
            found = await in_turn(part)
            for number, event in found:
                yield event
                after = number
            more = bool(found)

    async def events(request: Request) -> Response:
        queue = streams.join()
        if queue is None:
            return problem(503, "There are too many clients of events; read /api/v1/releases instead.")
        last = _integer(request.headers.get("last-event-id"), -1)

        async def stream() -> AsyncIterator[bytes]:
            try:
                yield b"retry: 2000\n: each event is a release\n\n"
                async for earlier in missed(-1 if last is None else last):
                    yield earlier
                while True:
                    try:
                        event = await asyncio.wait_for(queue.get(), HEARTBEAT)
                    except TimeoutError:
                        event = b": still here\n\n"
                    if event is None:
                        return
                    yield event
            finally:
                streams.leave(queue)

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(stream(), headers=headers, media_type="text/event-stream")

    shown = [(path, page) for path in PAGE]
    shown += [("/metrics", metrics), ("/api/v1/metrics", about), ("/api/v1/releases", releases)]
    return [Route(path, handler) for path, handler in shown] + [Route("/api/v1/events", events, methods=["GET"])]


def _integer(text: str | None, default: int) -> int | None:
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def _time(text: str | None) -> float | None:
    """Seconds since 1970 of a number or an ISO time; NaN for what is neither."""
    if text is None:
        return None
    try:
        number = float(text)
        return number if abs(number) < ROUNDED else math.nan
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text.replace(" ", "+"))  # a + of a URL arrives as a space
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan
