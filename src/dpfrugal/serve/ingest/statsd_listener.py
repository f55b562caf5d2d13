"""StatsD over UDP and TCP: datagrams are drained in bulk, connections are cut into lines; both are bounded."""

import asyncio
import socket
from contextlib import suppress
from typing import Any, Final

from dpfrugal.serve.ingest.statsd import LONGEST_LINE, read_lines
from dpfrugal.serve.server import Server

DATAGRAMS: Final = 128  # taken in one go, so that requests get their turn
LONGEST_DATAGRAM: Final = 65_536
RECEIVE_BUFFER: Final = 32 << 20
CONNECTIONS: Final = 64
IDLE_SECONDS: Final = 300.0


def take_lines(server: Server, block: bytes) -> None:
    """Take whole lines."""
    found, refused = read_lines(block, server.timers())
    if refused:
        server.figures.refuse("statsd", refused)
    for name, items in found.items():
        server.take("statsd", items, {}, name)


class Datagrams:
    """A UDP socket in the program's loop."""

    def __init__(self, server: Server, bound: socket.socket) -> None:
        self._server, self._socket = server, bound
        for option in (getattr(socket, "SO_RCVBUFFORCE", 33), socket.SO_RCVBUF):  # the first may need a privilege
            with suppress(OSError):
                bound.setsockopt(socket.SOL_SOCKET, option, RECEIVE_BUFFER)
                break
        asyncio.get_running_loop().add_reader(bound, self._drain)

    def _drain(self) -> None:
        blocks: list[bytes] = []
        receive = self._socket.recv
        with suppress(BlockingIOError):
            blocks.extend(receive(LONGEST_DATAGRAM) for _ in range(DATAGRAMS))
        take_lines(self._server, b"\n".join(blocks))

    def close(self) -> None:
        """Take no more."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()


async def serve_connections(server: Server, bound: socket.socket) -> asyncio.Server:
    """Listen for TCP connections that send lines."""
    connections = 0

    async def lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        rest = b""
        try:
            while connections <= CONNECTIONS and not server.is_stopping:
                block = await asyncio.wait_for(reader.read(1 << 16), IDLE_SECONDS)
                if not block:
                    break
                whole, newline, rest = (rest + block).rpartition(b"\n")
                if newline:
                    take_lines(server, whole)
                if len(rest) > LONGEST_LINE:
                    break
            if rest and len(rest) <= LONGEST_LINE:
                take_lines(server, rest)
        except (TimeoutError, OSError):
            pass
        finally:
            connections -= 1
            writer.close()

    listening: Any = await asyncio.start_server(lines, sock=bound)
    return listening  # type: ignore[no-any-return]
