"""Items a second that ``dpfrugal serve`` takes over each protocol, beside a bare handler that only parses the body.

    python -m benchmarks.serve                     # throughput, and how long a request takes
    python -m benchmarks.serve --minutes 60        # 10,000 keys, windows of a minute: memory, and delays of releases

The server, the bare handler (``starlette`` and ``uvicorn`` with the server's settings; it decodes the body and forgets
it) and the clients are processes of their own. Contenders take turns; the best of the rounds counts, with the spread.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dpfrugal as dpf
from benchmarks import machine

ROUTES = [f"/route/{n}" for n in range(100)]
SETTINGS = """\
listen: 127.0.0.1:0
operator: 127.0.0.1:0
statsd: 127.0.0.1:0
metrics:
"""
METRIC = """\
  - name: {name}
    unit: {unit}
    from: {source}
    keys: {{attribute: route, declared: [{keys}]}}
    quantiles: {quantiles}
    window: {window}
    high: 100000
    guarantee: {{epsilon: 1}}
    total_per_day: {{epsilon: 86400}}
"""
BARE = """
import asyncio, sys, msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from dpfrugal.serve.settings import Address, Limits
from dpfrugal.serve.web.http_server import bound_socket, server_for
decoder = msgspec.json.Decoder(dict)
async def traces(request):
    ExportTraceServiceRequest().ParseFromString(await request.body())
    return Response(b"")
async def items(request):
    decoder.decode_lines(await request.body())
    return Response(b"")
app = Starlette(routes=[Route("/v1/traces", traces, methods=["POST"]), Route("/v1/items", items, methods=["POST"])])
bound = bound_socket(Address("127.0.0.1", 0))
print(f"listening at http://127.0.0.1:{bound.getsockname()[1]};", file=sys.stderr, flush=True)
import uvloop
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(server_for(app, Limits(), None, None).serve(sockets=[bound]))
"""


def settings(keys: list[str], window: str) -> str:
    kinds = {
        "spans": ("seconds", "{spans: duration}"),
        "items": ("milliseconds", "{json: ms}"),
        "timers": ("milliseconds", "{statsd: api.request}"),
    }
    listed = ", ".join(keys)
    metrics = (
        METRIC.format(name=n, unit=u, source=s, keys=listed, window=window, quantiles="[0.99]")
        for n, (u, s) in kinds.items()
    )
    return SETTINGS + "".join(metrics)


@contextmanager
def process(arguments: list[str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A server, and the lines that it has said until it listens."""
    environment = dict(os.environ) | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])}
    started = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert started.stderr is not None
    lines = [started.stderr.readline()]
    if "operator" in lines[0]:
        lines.append(started.stderr.readline())
    threading.Thread(target=started.stderr.read, daemon=True).start()
    time.sleep(3)  # what it loads beside
    try:
        yield started, lines
    finally:
        started.kill()
        started.wait()


def core_seconds(pid: int) -> float:
    """Processor time of a process: what a rate per core is worth on a machine that does other things too."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def port_of(lines: list[str], pattern: str) -> int:
    return int(next(found[1] for line in lines if (found := re.search(pattern, line))))


def span_bodies(count: int) -> list[bytes]:
    """Batches of 500 spans with five attributes each, all different."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    draw, bodies, now = random.Random(1), list[bytes](), time.time_ns()  # noqa: S311 - made-up traffic
    for _ in range(count):
        request: Any = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        for route in draw.choices(ROUTES, k=500):
            span = spans.add(trace_id=draw.randbytes(16), span_id=draw.randbytes(8), name="GET", kind=2)
            span.end_time_unix_nano = now
            span.start_time_unix_nano = now - int(draw.lognormvariate(18, 1))
            span.attributes.add(key="route").value.string_value = route
            for name in ("http.method", "server.address", "user_agent.original"):
                span.attributes.add(key=name).value.string_value = "GET example"
            span.attributes.add(key="http.status_code").value.int_value = 200
        bodies.append(bytes(request.SerializeToString()))
    return bodies


def line_bodies(count: int) -> list[bytes]:
    """Batches of a thousand JSON lines."""
    draw = random.Random(1)  # noqa: S311 - made-up traffic
    return [
        b"\n".join(
            json.dumps({"route": route, "ms": round(draw.lognormvariate(3, 1), 3), "status": 200}).encode()
            for route in draw.choices(ROUTES, k=1000)
        )
        for _ in range(count)
    ]


def send(port: int, path: str, kind: str, bodies: list[bytes], told: Any) -> None:
    """Post all bodies on one connection; the seconds of each."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    seconds = []
    for body in bodies:
        began = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        seconds.append(time.perf_counter() - began)
    told.put(seconds)


def posted(port: int, path: str, kind: str, bodies: list[bytes], clients: int = 2) -> tuple[float, list[float]]:
    """Bodies a second from so many clients, and the seconds of each request."""
    told: Any = multiprocessing.Queue()
    parts = [bodies[client::clients] for client in range(clients)]
    workers = [multiprocessing.Process(target=send, args=(port, path, kind, part, told)) for part in parts]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    seconds = [each for _ in workers for each in told.get()]
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return len(bodies) / took, seconds


def throughput(rounds: int) -> None:
    """The table of items a second."""
    spans, lines = span_bodies(200), line_bodies(200)
    kinds = {
        "OTLP spans": ("/v1/traces", "application/x-protobuf", spans, 500),
        "JSON lines": ("/v1/items", "application/x-ndjson", lines, 1000),
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "serve.yaml").write_text(settings(ROUTES, "10s"), encoding="utf-8")
        with (
            process(["-m", "dpfrugal", "serve", "serve.yaml"], Path(folder)) as (server, said),
            process(["-c", BARE], Path(folder)) as (bare, bare_said),
        ):
            ports = {"serve": port_of(said, r"at http://127.0.0.1:(\d+);"), "bare": port_of(bare_said, r":(\d+);")}
            print("| | serve, items/s | of its core | bare handler, items/s | of its core | serve / bare | p50 | p99 |")
            print("|---|---|---|---|---|---|---|---|")
            for name, (path, kind, bodies, size) in kinds.items():
                best, per_core, times = {"serve": 0.0, "bare": 0.0}, {"serve": 0.0, "bare": 0.0}, list[float]()
                for _ in range(rounds):
                    rates = {}
                    for which, port in ports.items():
                        pid = (server if which == "serve" else bare).pid
                        before = core_seconds(pid)
                        rates[which], seconds = posted(port, path, kind, bodies)
                        used = len(bodies) / (core_seconds(pid) - before)
                        per_core[which] = max(per_core[which], used)
                        times += seconds if which == "serve" else []
                    best = {which: max(best[which], rate) for which, rate in rates.items()}
                times.sort()
                p50, p99 = (1000 * times[int(q * len(times))] for q in (0.5, 0.99))
                print(
                    f"| {name}, batches of {size} | {best['serve'] * size:,.0f} | {per_core['serve'] * size:,.0f} | "
                    f"{best['bare'] * size:,.0f} | {per_core['bare'] * size:,.0f} | "
                    f"{best['serve'] / best['bare']:.2f} | {p50:.0f} ms | {p99:.0f} ms |",
                    flush=True,
                )
            statsd(said, server.pid)


def timers_taken(operator: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{operator}/metrics") as answer:
        text = answer.read().decode()
    found = re.search(r'dpfrugal_items_total\{metric="timers_seconds"\} ([\d.e+]+)', text)
    return 0 if found is None else int(float(found[1]))


def statsd(said: list[str], pid: int, a_second: int = 150_000, seconds: int = 5) -> None:
    """Lines over UDP at a steady rate, 20 in a datagram; how many arrive."""
    port, operator = port_of(said, r"StatsD at 127.0.0.1:(\d+)"), port_of(said, r"figures at 127.0.0.1:(\d+)")
    datagrams = [b"\n".join(b"api.request:%d|ms|#route:/route/%d" % (n, k) for k in range(20)) for n in range(50)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.connect(("127.0.0.1", port))
        began, sent, before = time.perf_counter(), 0, core_seconds(pid)
        while sent < a_second * seconds:
            due = (time.perf_counter() - began) * a_second
            while sent < min(due, a_second * seconds):
                plain.send(datagrams[sent // 20 % 50])
                sent += 20
            time.sleep(0.001)
        took = time.perf_counter() - began
    arrived, last = 0, -1
    while arrived > last:  # what is in the socket's buffer is not lost
        time.sleep(3)
        last, arrived = arrived, timers_taken(operator)
    used = core_seconds(pid) - before
    print(f"\nStatsD: {sent:,} lines over UDP at {sent / took:,.0f} lines/s, {sent - arrived:,} lost; ", end="")
    print(f"{arrived / used:,.0f} lines per second of the server's core.", flush=True)


def long_run(minutes: float, keys: int, rate: int) -> None:
    """Memory and delays while windows of a minute go by, of three quantiles each."""
    routes = [f"/route/{n}" for n in range(keys)]
    draw = random.Random(1)  # noqa: S311 - made-up traffic
    bodies = [
        b"\n".join(
            json.dumps({"route": route, "ms": round(draw.lognormvariate(3, 1), 3)}).encode()
            for route in draw.choices(routes, k=1000)
        )
        for _ in range(100)
    ]
    with tempfile.TemporaryDirectory() as folder:
        one = SETTINGS + METRIC.format(
            name="items", unit="milliseconds", source="{json: ms}", keys=", ".join(routes), window="1m",
            quantiles="[0.5, 0.9, 0.99]",
        )  # fmt: skip
        (Path(folder) / "serve.yaml").write_text(one, encoding="utf-8")
        with process(["-m", "dpfrugal", "serve", "serve.yaml"], Path(folder)) as (server, said):
            port, operator = port_of(said, r"at http://127.0.0.1:(\d+);"), port_of(said, r"figures at 127.0.0.1:(\d+)")
            connection, began = http.client.HTTPConnection("127.0.0.1", port), time.time()
            minute, sent, released, used = time.time() // 60, 0, 0, core_seconds(server.pid)
            times, every, delays, sizes = list[float](), list[float](), list[float](), list[int]()
            print("| minute | memory, MiB | shown after the end, s | p99 of a request, ms | server's core | load |")
            print("|---|---|---|---|---|---|")
            while time.time() < began + 60 * minutes:
                at = time.perf_counter()
                connection.request("POST", "/v1/items", draw.choice(bodies), {"Content-Type": "application/x-ndjson"})
                connection.getresponse().read()
                times.append(1000 * (time.perf_counter() - at))
                sent += 1000
                time.sleep(max(0.0, began + sent / rate - time.time()))
                if time.time() // 60 == minute or time.time() % 60 < 20:
                    continue
                minute = time.time() // 60
                with urllib.request.urlopen(f"http://127.0.0.1:{operator}/metrics") as answer:
                    figures = answer.read().decode()
                delay = re.search(r"release_duration_seconds\{.*\} ([\d.e-]+)", figures)
                windows = re.search(r'windows_total\{.*outcome="released"\} (\d+)', figures)
                assert delay is not None, "no window was released"
                assert windows is not None, "no window was released"
                assert int(windows[1]) == released + 1, "a window was not released"
                released += 1
                delays.append(float(delay[1]))
                with open(f"/proc/{server.pid}/statm", encoding="ascii") as file:
                    sizes.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20)
                before, used = used, core_seconds(server.pid)
                p99, load = quantile(times, 0.99), os.getloadavg()[0]
                print(
                    f"| {(time.time() - began) / 60:.0f} | {sizes[-1]} | {delays[-1]:.2f} | {p99:.0f} | "
                    f"{(used - before) / 60:.0%} | {load:.0f} |",
                    flush=True,
                )
                every += times
                times.clear()
    print(
        f"\n{keys:,} keys, {sent:,} items in {minutes:g} minutes; all {released} windows released, "
        f"{sum(delay < 1 for delay in delays)} within a second of their end (median {quantile(delays, 0.5):.2f} s, "
        f"at most {max(delays):.2f} s); memory {min(sizes[1:])} to {max(sizes[1:])} MiB after the first window; "
        f"a request: p50 {quantile(every, 0.5):.1f} ms, p99 {quantile(every, 0.99):.0f} ms"
    )


def quantile(numbers: list[float], q: float) -> float:
    """Of these numbers themselves."""
    return sorted(numbers)[min(len(numbers) - 1, int(q * len(numbers)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, help="The long run instead, of so many minutes.")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=20_000, help="Items a second of the long run.")
    asked = parser.parse_args()
    print(f"{machine.sentence()}; load {os.getloadavg()[0]:.1f} at the beginning\n")
    if asked.minutes:
        long_run(asked.minutes, asked.keys, asked.rate)
    else:
        throughput(asked.rounds)


if __name__ == "__main__":
    main()
