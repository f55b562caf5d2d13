"""The two applications: the public one, for clients and readers, and the operator's, on a port of its own."""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from dpfrugal.serve import access
from dpfrugal.serve.settings import Tokens
from dpfrugal.serve.web.ingest_routes import problem

LOOPBACK_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]", "::1")
Readiness = Callable[[], tuple[bool, list[str]]]


def health_routes(readiness: Readiness) -> list[Route]:
    """``/-/healthy``: the program runs. ``/-/ready``: it also takes items and releases; if not, why."""

    async def healthy(request: Request) -> Response:
        return Response("healthy\n", media_type="text/plain")

    async def ready(request: Request) -> Response:
        is_ready, states = readiness()
        body = json.dumps({"ready": is_ready, "state": states})
        return Response(body, 200 if is_ready else 503, {"cache-control": "no-store"}, "application/json")

    return [Route("/-/healthy", healthy), Route("/-/ready", ready)]


def right_of(path: str) -> str | None:
    """Which token a path of the public port needs; None for probes, which show nothing."""
    if path.startswith("/-/"):
        return None
    return "ingest" if path.startswith("/v1/") else "read"


class Guard:
    """In front of an application: host names, tokens, and the time that requests take."""

    def __init__(
        self,
        app: Starlette,
        tokens: Callable[[str], tuple[str, ...] | None],
        right: Callable[[str], str | None],
        hosts: Callable[[], tuple[str, ...] | None],
        told: Callable[[str, int, float], None],
    ) -> None:
        self._app, self._tokens, self._right, self._hosts, self._told = app, tokens, right, hosts, told
        self._paths = {route.path for route in app.routes if isinstance(route, Route)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do it."""
        if scope["type"] != "http":
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        headers = dict(scope["headers"])
        refusal = self._refusal(scope["path"], headers)
        try:
            await (self._app if refusal is None else refusal)(scope, receive, noted)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._told(path, status, time.perf_counter() - began)

    def _refusal(self, path: str, headers: dict[bytes, bytes]) -> Response | None:
        hosts = self._hosts()
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        if hosts is not None and name not in hosts:  # a page elsewhere whose name was pointed here
            return problem(421, "This host name is not served; settings can list it under hosts.")
        right = self._right(path)
        given = headers.get(b"authorization", b"").decode("latin-1")
        if right is not None and not access.is_allowed(given, self._tokens(right)):
            return problem(401, f"A token is needed, for: {right}.", {"www-authenticate": access.CHALLENGE})
        return None


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = {404: "There is nothing here.", 405: "This path has no such method."}.get(status, "The request failed.")
    return problem(status, said, dict(getattr(error, "headers", None) or {}))


def application(routes: list[Route]) -> Starlette:
    """An application whose errors are JSON, and say nothing of a request."""
    handlers: Any = {HTTPException: _refused, 500: _refused}
    made = Starlette(routes=routes, exception_handlers=handlers)
    made.router.redirect_slashes = False
    return made


def tokens_of(tokens: Tokens, right: str) -> tuple[str, ...] | None:
    """The tokens for a right."""
    found: tuple[str, ...] | None = getattr(tokens, right)
    return found


def hosts_of(listens_on_loopback: bool, hosts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The host names that are served: of a loopback address its own; elsewhere those listed, or all."""
    if hosts:
        return (*(host.lower() for host in hosts), *LOOPBACK_HOSTS)
    return LOOPBACK_HOSTS if listens_on_loopback else None
