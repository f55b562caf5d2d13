"""Hostile requests for minutes: no 500, no crash, no growth of memory.

    python -m reliability.serve_fuzz --seconds 120

A real ``dpfrugal serve`` gets random and damaged OTLP, JSON, gzip and StatsD bodies, odd heads, keys without end, and
connections that stop anywhere. It must answer every whole request with a status other than 500, and be as large at the
end as it was when a third of the time had passed (a tenth and 32 MiB more are allowed).
"""

import argparse
import gzip
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import dpfrugal as dpf

SETTINGS = """\
listen: 127.0.0.1:0
operator: 127.0.0.1:0
statsd: 127.0.0.1:0
limits: {seconds: 2s}
metrics:
  - {name: spans, unit: seconds, from: {spans: duration}, keys: {attribute: k, discover: {epsilon: 1, delta: 1.0e-6}},
     person: {attribute: p, max_items: 3}, quantiles: [0.5], window: 5s, hold: 10000,
     guarantee: {epsilon: 1}, total_per_day: {epsilon: 40000, delta: 0.1}}
  - {name: logs, unit: none, from: {logs: v}, quantiles: [0.5, 0.99], window: 5s, guarantee: {rho: 1},
     total_per_day: {rho: 20000}}
  - {name: timers, unit: milliseconds, from: {statsd: a}, keys: {attribute: k, declared: [x, y], other: rest},
     quantiles: [0.9], window: 5s, guarantee: {epsilon: 1}, total_per_day: {epsilon: 20000}}
  - {name: items, unit: bytes, from: {json: v, time: t}, keys: {attribute: k, declared: [x, y]}, neighbours: replace,
     quantiles: [0.5], window: 5s, guarantee: {epsilon: 1}, total_per_day: {epsilon: 20000}}
"""
PATHS = ("/v1/traces", "/v1/logs", "/v1/metrics", "/v1/items", "/metrics", "/api/v1/releases", "/", "/-/ready", "/x")
TYPES = ("application/x-protobuf", "application/json", "application/x-ndjson", "text/plain", "", "application/json; q=")
OPENMETRICS = "application/openmetrics-text"
ACCEPTED = (
    "*/*",
    OPENMETRICS,
    f"{OPENMETRICS};version=x",
    "text/plain;version=1.x",
    f"{OPENMETRICS};version=2.0.0",
    ";,=",
)
QUERIES = (
    "",
    "?since=1e308",
    "?limit=-1",
    "?after=99999999999999999999",
    "?key=%00",
    "?metric=%ff",
    "?since=0001-01-01T00:00:00",
)


def otlp_spans(draw: random.Random) -> bytes:
    """Spans with values of every kind, and keys without end."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request: Any = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    now = time.time_ns()
    for _ in range(draw.randrange(300)):
        span = spans.add(trace_id=draw.randbytes(16), span_id=draw.randbytes(8), kind=draw.choice((0, 2, 3)))
        span.end_time_unix_nano = draw.choice((now, 0, 2**64 - 1, now - 10**9))
        span.start_time_unix_nano = draw.choice((now, 0, 2**64 - 1, now - 2 * 10**9))
        value = span.attributes.add(key="k").value
        value.string_value = draw.choice((str(draw.random()), "x", "y" * 5000, "\0", "ü"))
        span.attributes.add(key="p").value.int_value = draw.randrange(-(2**63), 2**63)
    return bytes(request.SerializeToString())


def json_lines(draw: random.Random) -> bytes:
    """Lines with values of every kind."""
    values = ("1", "-1", "1e308", "null", '"1"', "[1]", "true", "1e999", "NaN", str(10**30), '{"a":1}')
    keys = ('"x"', "null", "3", f'"{draw.randrange(10**9)}"', '"\\ud800"', '"\\u0000"')
    lines = (
        f'{{"v": {draw.choice(values)}, "k": {draw.choice(keys)}, "t": {draw.choice(values)}}}' for _ in range(200)
    )
    return "\n".join(lines).encode()


def otlp_json(draw: random.Random) -> bytes:
    """Spans in JSON whose attributes hold anything but what their names say."""
    kinds = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue")
    values: tuple[Any, ...] = (1, None, [], {}, True, "7", "x", 1e300, 10**400, "NaN", "9" * 30)
    ends = time.time_ns()
    spans = [
        {"spanId": draw.randbytes(8).hex(), "kind": 2, "startTimeUnixNano": "0", "endTimeUnixNano": str(ends)}
        | {"attributes": [{"key": draw.choice("kp"), "value": {draw.choice(kinds): draw.choice(values)}}]}
        for _ in range(draw.randrange(4))
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def damaged(body: bytes, draw: random.Random) -> bytes:
    """The body, or one that is cut, changed or mixed with noise."""
    way = draw.randrange(5)
    at = draw.randrange(len(body) + 1)
    if way == 1:
        return body[:at]
    if way == 2:
        return body[:at] + draw.randbytes(draw.randrange(20)) + body[at:]
    if way == 3:
        return draw.randbytes(draw.randrange(2000))
    return b"[" * draw.randrange(100_000) if way == 4 and draw.random() < 0.1 else body


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def request(port: int, draw: random.Random) -> int | None:
    """One request; its status, None for none."""
    body = damaged(draw.choice((otlp_spans, otlp_json, json_lines))(draw), draw)
    headers = {"Content-Type": draw.choice(TYPES), "Accept": draw.choice(ACCEPTED)}
    if draw.random() < 0.4:
        body = damaged(gzip.compress(body, 1), draw) if draw.random() < 0.5 else gzip.compress(body, 1)
        headers["Content-Encoding"] = draw.choice(("gzip", "gzip", "br"))
    if draw.random() < 0.02:
        body, headers["Content-Encoding"] = gzip.compress(b"\0" * (30 << 20), 9), "gzip"
    if draw.random() < 0.02:
        body, headers["Content-Encoding"] = gzip.compress(b"") * draw.randrange(10_000), "gzip"
    path = draw.choice(PATHS)
    method = draw.choice(("POST", "POST", "POST", "GET", "PUT", "OPTIONS")) if path.startswith("/v1") else "GET"
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        if draw.random() < 0.05:
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(
                    draw.choice((draw.randbytes(500), b"POST /v1/items HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"))
                )
            return None
        connection.request(method, path + draw.choice(QUERIES), body if method != "GET" else None, headers)
        status = connection.getresponse().status
        connection.close()
    except (http.client.HTTPException, OSError):
        return None
    return status


def statsd(port: int, draw: random.Random) -> None:
    """A datagram."""
    lines = (b"a:%d|ms|#k:%d" % (draw.randrange(-5, 999), draw.randrange(10**9)) for _ in range(30))
    body = damaged(b"\n".join(lines), draw)[:60_000]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.sendto(body, ("127.0.0.1", port))


def fuzz(seconds: float, seed: int, folder: Path) -> tuple[Counter[int | None], int, int]:
    """The statuses, and the memory after a third of the time and at the end."""
    (folder / "serve.yaml").write_text(SETTINGS, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "dpfrugal", "serve", "serve.yaml"], cwd=folder, stderr=subprocess.PIPE, text=True,
        env=dict(os.environ) | {"PYTHONPATH": str(Path(dpf.__file__).parents[1])},
    )  # fmt: skip
    assert process.stderr is not None
    draw, statuses, early = random.Random(seed), Counter[int | None](), 0  # noqa: S311 - hostile, not secret
    try:
        lines = [process.stderr.readline(), process.stderr.readline()]
        port, timers = int(lines[0].partition("127.0.0.1:")[2].partition(";")[0]), int(lines[1].rpartition(":")[2])
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds:
            if passed > seconds / 3 and not early:
                early = resident(process.pid)
            statuses[request(port, draw)] += 1
            statsd(timers, draw)
            assert process.poll() is None, "the server has ended"
        late = resident(process.pid)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    assert not statuses[500], f"{statuses[500]} answers are 500"
    assert statuses[200], statuses
    assert statuses[400], statuses
    assert late <= 1.1 * early + (32 << 20), f"memory has grown from {early >> 20} to {late >> 20} MiB"
    return statuses, early, late


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        statuses, early, late = fuzz(asked.seconds, asked.seed, Path(folder))
    print(f"{statuses.total():,} requests, by status: {dict(sorted((str(s), n) for s, n in statuses.items()))}")
    print(f"memory: {early >> 20} MiB after a third, {late >> 20} MiB at the end")


if __name__ == "__main__":
    main()
