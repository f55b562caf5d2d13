"""What clients send: OTLP traces and logs, and JSON lines. Answers are those of the OTLP specification."""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpfrugal.serve.ingest import otlp
from dpfrugal.serve.ingest.items import MOST_ITEMS, Item
from dpfrugal.serve.ingest.json_lines import JsonLines
from dpfrugal.serve.settings import Limits, Signal
from dpfrugal.serve.web.bodies import Bodies, BodyError

# google.rpc.Code
INVALID_ARGUMENT, UNIMPLEMENTED, UNAVAILABLE = 3, 12, 14
RETRY_AFTER: Final = {"retry-after": "1"}
RETRYABLE: Final = (429, 502, 503, 504)
JSON_LINES: Final = ("application/x-ndjson", "application/jsonlines", "application/jsonl", otlp.JSON)
MALFORMED: Final = "The body cannot be decoded; it was not taken, and sending it again will not help."
TOO_MANY: Final = f"A request must have at most {MOST_ITEMS:,} items; send smaller batches."
STOPPING: Final = "The server is stopping; send this again later."


class Taker(Protocol):
    """Where items go."""

    def wanted(self, signal: Signal) -> set[str]:
        """The attributes that some metric of a signal looks at."""

    def take(self, signal: Signal, items: list[Item], refused: dict[str, int]) -> None:
        """Take the items of a request."""

    @property
    def is_stopping(self) -> bool:
        """Whether nothing is taken any more."""


def content_type(request: Request) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def ingest_routes(taker: Taker, limits: Limits) -> list[Route]:
    """The routes on which items come."""
    bodies, json_lines = Bodies(limits), JsonLines()

    async def export(request: Request, which: otlp.Which) -> Response:
        kind = content_type(request)
        is_json = kind == otlp.JSON
        media = otlp.JSON if is_json else otlp.PROTOBUF

        def failed(status: int, message: str, code: int = INVALID_ARGUMENT) -> Response:
            headers = RETRY_AFTER if status in RETRYABLE else {}
            return Response(otlp.status(is_json, code, message), status, headers, media)

        if kind not in (otlp.JSON, otlp.PROTOBUF):
            return failed(415, f"The content type must be {otlp.PROTOBUF} or {otlp.JSON}.")
        if taker.is_stopping:
            return failed(503, STOPPING, UNAVAILABLE)
        signal: Signal = "spans" if which == "traces" else "logs"
        read = otlp.read_json if is_json else otlp.read_protobuf
        try:
            body = await bodies.read(request)
            items, refused = read(which, body, taker.wanted(signal), time.time(), limits.far)
        except BodyError as error:
            return failed(error.status, error.message, UNAVAILABLE if error.status in RETRYABLE else INVALID_ARGUMENT)
        except otlp.Malformed:
            return failed(400, MALFORMED)
        except otlp.TooMany:
            return failed(413, TOO_MANY)
        taker.take(signal, items, refused)
        return Response(otlp.answer(which, is_json, refused), 200, media_type=media)

    async def traces(request: Request) -> Response:
        return await export(request, "traces")

    async def logs(request: Request) -> Response:
        return await export(request, "logs")

    async def metrics(request: Request) -> Response:
        is_json = content_type(request) == otlp.JSON
        body = otlp.status(is_json, UNIMPLEMENTED, otlp.REFUSED_METRICS)
        return Response(body, 400, media_type=otlp.JSON if is_json else otlp.PROTOBUF)

    async def items(request: Request) -> Response:
        if content_type(request) not in JSON_LINES:  # a form of another site's page cannot send these
            return problem(415, f"The content type must be {JSON_LINES[0]}, with a JSON object on each line.")
        if taker.is_stopping:
            return problem(503, STOPPING)
        try:
            body = await bodies.read(request)
        except BodyError as error:
            return problem(error.status, error.message)
        if body.count(b"\n") > MOST_ITEMS:
            return problem(413, TOO_MANY)
        found, refused = json_lines.read(body)
        if refused and not found:
            return problem(400, MALFORMED)
        taker.take("json", found, refused)
        answer = {"accepted": len(found), "rejected": sum(refused.values())}
        return Response(json.dumps(answer), 200, media_type=otlp.JSON)

    posts: list[tuple[str, Callable[[Request], Awaitable[Response]]]] = [
        ("/v1/traces", traces), ("/v1/logs", logs), ("/v1/metrics", metrics), ("/v1/items", items),
    ]  # fmt: skip
    return [Route(path, handler, methods=["POST"]) for path, handler in posts]


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error as JSON."""
    more: dict[str, Any] = dict(headers or {})
    if status in RETRYABLE:
        more |= RETRY_AFTER
    return Response(json.dumps({"error": message}), status, more, otlp.JSON)
