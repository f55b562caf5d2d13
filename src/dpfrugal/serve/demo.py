"""The demonstration: traffic of ten endpoints, made up and sent as spans over OTLP, with windows of a few seconds."""

import asyncio
import gzip
import os
import random
import time
from pathlib import Path
from typing import Any, Final

from dpfrugal.serve.server import Server
from dpfrugal.serve.settings import Settings
from dpfrugal.serve.settings_reading import settings_of_text

ENDPOINTS: Final = {
    "/": 0.02, "/search": 0.12, "/product": 0.06, "/cart": 0.05, "/cart/add": 0.08, "/checkout": 0.3, "/pay": 0.45,
    "/login": 0.15, "/account": 0.09, "/help": 0.03,
}  # fmt: skip
EVERY: Final = 0.1
SPANS: Final = 1500  # in a batch
SETTINGS: Final = """\
listen: 127.0.0.1:{port}
operator: 127.0.0.1:{operator}
store: {folder}/releases.db
ledger: {folder}/budget.db
metrics:
  - name: request_duration
    about: Time to answer a request
    unit: seconds
    from: {{spans: duration, where: {{span.kind: server}}}}
    keys: {{attribute: http.route, declared: [{keys}]}}
    label: route
    quantiles: [0.5, 0.99]
    high: 30
    window: 5s
    guarantee: {{epsilon: 4}}
    total_per_day: {{epsilon: 69120}}
"""


def demo_settings(port: int, folder: Path) -> Settings:
    """Settings for ten endpoints."""
    keys = ", ".join(ENDPOINTS)
    text = SETTINGS.format(port=port, operator=port + 1 if port else 0, folder=folder, keys=keys)
    return settings_of_text(text, file="demo")


def batch(draw: random.Random, now: float) -> bytes:
    """Spans of a tenth of a second, as an SDK would send them; every two minutes a payment provider is slow."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request: Any = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    slow = 3.0 if now % 120 > 80 else 1.0
    for route in draw.choices(list(ENDPOINTS), k=SPANS):
        usual = ENDPOINTS[route] * (slow if route in ("/pay", "/checkout") else 1.0 + 0.3 * (now % 60 > 30))
        span = spans.add(trace_id=os.urandom(16), span_id=os.urandom(8), name=f"GET {route}", kind=2)
        span.end_time_unix_nano = int(now * 1e9)
        span.start_time_unix_nano = int((now - usual * draw.lognormvariate(0.0, 0.5)) * 1e9)
        span.attributes.add(key="http.route").value.string_value = route
    return bytes(request.SerializeToString())


async def send_traffic(server: Server, address: str) -> None:
    """Send batches to the server's own door, until it stops."""
    host, _, port = address.partition("://")[2].rpartition(":")
    draw = random.Random()  # noqa: S311 - made-up traffic protects nobody
    reader = writer = None
    due = time.monotonic()
    while not server.is_stopping:
        due = max(due + EVERY, time.monotonic() - 10 * EVERY)
        body = gzip.compress(batch(draw, time.time()), 1)
        head = (
            f"POST /v1/traces HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-protobuf\r\n"
            f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            if writer is None or reader is None or writer.is_closing():
                reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            lengths = [line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)
        except (OSError, asyncio.IncompleteReadError):
            writer = None
        await asyncio.sleep(max(0.0, due - time.monotonic()))
