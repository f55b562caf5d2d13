"""Uvicorn servers within the program's own loop: bounded heads, and no client that can hold a connection.

Worked number: a client that asks for a scrape of 5 MB and reads nothing is let go after 20 to 30 seconds.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Iterator
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpfrugal.errors import ParameterError
from dpfrugal.serve.settings import Address, Limits

LARGEST_HEAD: Final = 16 << 10
BACKLOG: Final = 512
AT_ONCE: Final = struct.pack("ii", 1, 0)  # closed without what was not read, which the system would hold
LEAST_READ: Final = 4096  # bytes a second that a client takes of an answer which waits for it


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 whose clients send and read in time.

    A request must have a whole head within some seconds of its connection or of the last answer; of an answer that is
    longer than what the system takes at once, some bytes must be read in twice as long.
    """

    seconds = 10.0
    _deadline: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()
        self._look = self.loop.call_later(self.seconds, self._look_at_answer, 0)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head, unless it is whole."""
        super().data_received(data)
        if self._is_answering():
            self._stop_waiting()
        elif self._deadline is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look_at_answer(self, slow: int) -> None:
        """Let a client go that was slow twice: what it does not read is held for it."""
        unread: int = self.transport.get_write_buffer_size()
        slow = slow + 1 if unread and self._unread - unread < LEAST_READ * self.seconds else 0
        self._unread = unread
        if slow > 2:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            self.transport.abort()
        else:
            self._look = self.loop.call_later(self.seconds, self._look_at_answer, slow)

    def _give_up(self) -> None:
        self._deadline = None
        if not self._is_answering() and self.transport is not None:
            self.transport.close()


class _Server(uvicorn.Server):
    """One of several servers of a program, which handles signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bound_socket(address: Address, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """A socket that is bound, so that a port that is taken is refused before anything starts."""
    problem = ""
    try:
        family, *_, where = socket.getaddrinfo(address.host, address.port, type=kind)[0]
        made = socket.socket(family, kind)
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(where)
            made.setblocking(False)
            return made
        except OSError as error:
            made.close()
            problem = error.strerror or "it cannot be bound"
    except OSError as error:
        problem = error.strerror or "its host is not known"
    raise ParameterError(f"{address} cannot be listened to: {problem}.")


def server_for(app: Any, limits: Limits, certificate: str | None, private_key: str | None) -> uvicorn.Server:
    """A server for an application; ``serve(sockets=[…])`` runs it until ``should_exit`` is set."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # its lines name clients
    protocol = type("Protocol", (BoundedProtocol,), {"seconds": limits.seconds})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        limit_concurrency=limits.connections,
        timeout_keep_alive=max(1, int(limits.seconds)),
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        backlog=BACKLOG,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        proxy_headers=False,
    )
    return _Server(config)
