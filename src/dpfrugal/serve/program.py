"""The program: sockets, signals and servers around a ``Server``, until SIGTERM."""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpfrugal.errors import DPFrugalError, ParameterError
from dpfrugal.serve.clock import utc
from dpfrugal.serve.ingest.statsd_listener import Datagrams, serve_connections
from dpfrugal.serve.server import Server
from dpfrugal.serve.settings import Address, Settings
from dpfrugal.serve.settings_reading import read_settings
from dpfrugal.serve.web.applications import Guard, application, health_routes, hosts_of, right_of, tokens_of
from dpfrugal.serve.web.http_server import bound_socket, server_for
from dpfrugal.serve.web.ingest_routes import ingest_routes
from dpfrugal.serve.web.public_routes import public_routes

SWITCH_INTERVAL: Final = 0.0005  # a release must not hold up requests for longer than that at a time
FORGET_EVERY: Final = 3600.0
Background = Callable[[Server, str], Coroutine[Any, Any, None]]


def log(line: str) -> None:
    """One line of the log: what is public only."""
    sys.stderr.write(f"{utc(time.time())} dpfrugal serve: {line}\n")
    sys.stderr.flush()


def log_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line for what failed outside a request: by its type only, as its text may have items in it."""
    log(f"something failed within ({type(context.get('exception')).__name__})")


def public_application(server: Server) -> Guard:
    """Items in, releases out."""
    import sqlite3

    routes = [
        *ingest_routes(server, server.settings.limits),
        *public_routes(
            server.store, server.exposition.scrape, server.overview, server.streams,
            lambda error: isinstance(error, sqlite3.Error),
        ),
        *health_routes(server.readiness),
    ]  # fmt: skip
    return Guard(
        application(routes),
        lambda right: tokens_of(server.settings.tokens, right),
        right_of,
        lambda: hosts_of(server.settings.listen.is_loopback, server.settings.hosts),
        server.figures.request,
    )


def operator_application(server: Server) -> Guard:
    """The operator's figures: raw."""

    async def metrics(request: Request) -> Response:
        from prometheus_client import exposition

        collector: Any = server.figures
        return Response(exposition.generate_latest(collector), media_type=exposition.CONTENT_TYPE_LATEST)

    return Guard(
        application([Route("/metrics", metrics), *health_routes(server.readiness)]),
        lambda right: tokens_of(server.settings.tokens, right),
        lambda path: "operator",
        lambda: hosts_of(server.settings.operator.is_loopback, server.settings.hosts),
        lambda path, status, seconds: None,
    )


def run(settings: Settings, path: Path | None = None, background: Background | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; ``background`` runs beside, with the address of the public port."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    public, operator = bound_socket(settings.listen), bound_socket(settings.operator)
    statsd = None
    if settings.statsd is not None:
        datagrams = bound_socket(settings.statsd, socket.SOCK_DGRAM)
        statsd = datagrams, bound_socket(Address(settings.statsd.host, datagrams.getsockname()[1]))
    server = Server(settings, log=log)
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:  # it makes the loop faster, nothing else
        runner = asyncio.Runner()
    with runner:
        failure = runner.run(_serve(server, path, background, public, operator, statsd))
    server.close()
    if failure is not None:
        log(f"something failed within ({type(failure).__name__}); stopped")
        raise SystemExit(1)
    log("stopped")


async def _serve(
    server: Server,
    path: Path | None,
    background: Background | None,
    public: socket.socket,
    operator: socket.socket,
    statsd: tuple[socket.socket, socket.socket] | None,
) -> BaseException | None:
    """Until it is stopped; what has failed, if something has."""
    settings = server.settings
    certificate, key = (None if file is None else str(file) for file in (settings.certificate, settings.private_key))
    servers = [
        server_for(public_application(server), settings.limits, certificate, key),
        server_for(operator_application(server), settings.limits, certificate, key),
    ]
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.set_exception_handler(log_failure)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, server, path)
    tasks = [
        asyncio.create_task(one.serve(sockets=[bound])) for one, bound in zip(servers, (public, operator), strict=True)
    ]
    tasks += [asyncio.create_task(server.run()), asyncio.create_task(_forget_old(server))]
    while not all(one.started for one in servers) and not any(task.done() for task in tasks):
        await asyncio.sleep(0.01)
    closing: list[Any] = []
    if statsd is not None:
        closing = [Datagrams(server, statsd[0]), await serve_connections(server, statsd[1])]
    address = f"{'http' if certificate is None else 'https'}://{Address(settings.listen.host, public.getsockname()[1])}"
    figures = Address(settings.operator.host, operator.getsockname()[1])
    log(f"listening at {address}; the operator's figures at {figures}")
    if statsd is not None:
        log(f"StatsD at {Address(settings.statsd.host, statsd[0].getsockname()[1])}")  # type: ignore[union-attr]
    if background is not None:
        tasks.append(asyncio.create_task(background(server, address)))
    ended = asyncio.create_task(stopped.wait())
    await asyncio.wait([ended, *tasks[:3]], return_when=asyncio.FIRST_COMPLETED)
    server.stop()
    for each in closing:
        each.close()
    for one in servers:
        one.should_exit = True
    results = await asyncio.gather(*tasks[:3], return_exceptions=True)
    for task in [ended, *tasks[3:]]:
        task.cancel()
    return next((result for result in results if isinstance(result, BaseException)), None)


async def _forget_old(server: Server) -> None:
    """Drop releases that are older than they are to be kept."""
    import sqlite3

    while True:
        try:
            await asyncio.to_thread(server.store.forget, time.time() - server.settings.keep)
        except sqlite3.Error:
            log("old releases could not be dropped from the store")
        await asyncio.sleep(FORGET_EVERY)


def _reload(server: Server, path: Path | None) -> None:
    """SIGHUP: the settings again; where they are refused, those before stay."""
    if path is None:
        log("there is no settings file to read again")
        return
    try:
        settings = read_settings(path)
        if changed := server.settings.needs_restart(settings):
            raise ParameterError(f"{path}: {changed[0]} cannot change while the server runs; restart it.")
    except DPFrugalError as error:
        server.refuse_reload(str(error))
        return
    server.reload(settings)
    log("settings read again")
