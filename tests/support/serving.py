"""Servers for tests: one in this process whose clock the test sets, or the real program on the loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dpfrugal
from dpfrugal.serve.server import Server
from dpfrugal.serve.settings import Settings
from dpfrugal.serve.settings_reading import settings_of_text

NOON = 1_800_000_000.0 // 86_400 * 86_400 + 43_200
MINUTE = 60.0
METRIC = """\
  - name: {name}
    unit: milliseconds
    from: {{json: ms}}
    keys: {{attribute: route, declared: [/home, /pay]}}
    quantiles: [0.5]
    window: {window}
    high: 100000
    guarantee: {{epsilon: 2}}
    total_per_day: {{epsilon: {total}}}
"""


def settings_text(*metrics: str, more: str = "") -> str:
    """Settings with ports that the system chooses; a metric of JSON lines where none is given."""
    listed = "".join(metrics) or METRIC.format(name="latency", window="1m", total=2880)
    return f"listen: 127.0.0.1:0\noperator: 127.0.0.1:0\n{more}metrics:\n{listed}"


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Served:
    """A server without sockets, on a clock of its own."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.said: list[str] = []
        self.server = Server(settings, clock=self.clock, log=self.said.append)

    def client(self, **options: Any) -> Any:
        """Asks the public application over HTTP."""
        from starlette.testclient import TestClient

        from dpfrugal.serve.program import public_application

        app: Any = public_application(self.server)
        return TestClient(app, base_url="http://localhost", raise_server_exceptions=False, **options)

    def send(self, *rows: dict[str, Any]) -> None:
        """Give it JSON items."""
        from dpfrugal.serve.ingest.items import Item

        self.server.take("json", [Item(row) for row in rows], {})

    def to(self, now: float) -> None:
        """Set the clock, and wait for what that releases."""
        self.clock.now = now
        self.server.cut_windows()
        self.server.wait_for_releases()

    def reserve(self) -> None:
        """Wait until the ledger was charged."""
        self.server.wait_for_ledger()

    @property
    def scrape(self) -> str:
        """What Prometheus would get."""
        return self.server.exposition.scrape("text/plain")[0].decode()


@contextmanager
def served(folder: Path, text: str | None = None, clock: Clock | None = None) -> Iterator[Served]:
    """A server of these settings; it is closed at the end."""
    made = Served(settings_of_text(settings_text() if text is None else text, folder), clock)
    try:
        yield made
    finally:
        made.server.stop()
        made.server.close()


def environment() -> dict[str, str]:
    """That of a process in another folder, which shall find the package that is tested."""
    here = str(Path(dpfrugal.__file__).parents[1])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return dict(os.environ) | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}


class Program:
    """``dpfrugal serve`` as a process."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dpfrugal", "serve", *arguments],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=folder,
            env=environment(),
        )  # fmt: skip
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(60) or not self.address:
            self.kill()
            raise AssertionError(f"the server did not start: {self.lines}")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if "listening at" in line:
                self._ready.set()
        self._ready.set()

    def _found(self, pattern: str) -> str:
        return next((found[1] for line in list(self.lines) if (found := re.search(pattern, line))), "")

    @property
    def address(self) -> str:
        """Of the public port."""
        return self._found(r"listening at (\S+);")

    @property
    def operator(self) -> str:
        """Of the operator's port."""
        return "http://" + self._found(r"figures at (\S+)")

    @property
    def statsd(self) -> tuple[str, int]:
        """Where StatsD is taken."""
        deadline = time.monotonic() + 10
        while not (found := self._found(r"StatsD at (\S+)")) and time.monotonic() < deadline:
            time.sleep(0.02)
        host, _, port = found.rpartition(":")
        return host, int(port)

    def get(self, path: str, address: str | None = None, **headers: str) -> str:
        """The body of an answer, whatever its status."""
        request = urllib.request.Request((address or self.address) + path, headers=headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        """The status and body of an answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.address + path, data=body, headers=named)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def send(self, *rows: dict[str, Any]) -> int:
        """Post JSON lines."""
        body = "\n".join(json.dumps(row) for row in rows).encode()
        return self.post("/v1/items", body, content_type="application/x-ndjson")[0]

    def releases(self, query: str = "") -> list[Any]:
        """What was released."""
        found: list[Any] = json.loads(self.get(f"/api/v1/releases{query}"))["releases"]
        return found

    def wait_for(self, what: Any, seconds: float = 120.0) -> Any:
        """The first true answer of ``what``."""
        deadline = time.monotonic() + seconds
        while not (found := what()):
            if time.monotonic() > deadline:
                raise AssertionError(f"it did not happen within {seconds} seconds; the log: {self.lines}")
            time.sleep(0.1)
        return found

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()


def program(folder: Path, text: str) -> Program:
    """The program with these settings."""
    (folder / "serve.yaml").write_text(text, encoding="utf-8")
    return Program("serve.yaml", folder=folder)
