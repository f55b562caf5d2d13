"""Real clients: the OpenTelemetry SDK, StatsD from PyPI, a Prometheus server and a browser; TLS, signals and reloads.

Prometheus and Chromium are programs of the system: ``make test-serve`` installs them. Where they are missing these
tests are skipped, and the end of the run says so.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import METRIC, Clock, Program, program, served, settings_text

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
NEEDED = os.environ.get("DPFRUGAL_NEEDS_CLIENTS")  # set by make test-serve: nothing may be skipped


def needs(found: str | None, what: str) -> pytest.MarkDecorator:
    """Skip where a program is missing."""
    said = f"NOT TESTED with {what}: it is not installed. make test-serve installs it."
    return pytest.mark.skipif(found is None and not NEEDED, reason=said)


SPANS = (
    METRIC.replace("{{json: ms}}", "{{spans: duration}}").replace("milliseconds", "seconds").replace("100000", "100")
)
SPANS = SPANS.replace("attribute: route", "attribute: http.route, ").replace(", ,", ",") + "    label: route\n"
STATSD = METRIC.replace("{{json: ms}}", "{{statsd: api.request}}")
LOGS = METRIC.replace("{{json: ms}}", "{{logs: took}}")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server with windows of two seconds, for every kind of source."""
    kinds = {"spans": SPANS, "timers": STATSD, "logs": LOGS, "items": METRIC}
    metrics = [text.format(name=name, window="2s", total=86400) for name, text in kinds.items()]
    text = settings_text(*metrics, more="statsd: 127.0.0.1:0\nledger: budget.db\n")
    with program(tmp_path_factory.mktemp("clients"), text) as found:
        yield found


def values(running: Program, metric: str, key: str = "/pay") -> list[float]:
    """All values of a key that were released so far."""
    found = running.releases(f"?metric={metric}&key={key}&limit=1000")
    return [key["values"][0] for release in found for key in release["keys"] if key["values"][0] is not None]


def test_opentelemetry__the_sdk_exports_spans_to_it(running: Program) -> None:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter(endpoint=f"{running.address}/v1/traces", compression=Compression.Gzip)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    for _ in range(600):
        now = time.time_ns()
        tracer.start_span("GET /pay", attributes={"http.route": "/pay"}, start_time=now - 250_000_000).end(now)
    assert provider.force_flush()
    (value, *_) = running.wait_for(lambda: values(running, "spans_seconds"))
    assert 0.2 < value < 0.3
    provider.shutdown()


def test_opentelemetry__the_sdk_exports_log_records_to_it(running: Program) -> None:
    import logging

    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{running.address}/v1/logs")))
    logger = provider.get_logger("test")
    from opentelemetry._logs import LogRecord

    for _ in range(600):
        logger.emit(LogRecord(timestamp=time.time_ns(), attributes={"route": "/pay", "took": 250}, body="done"))
    assert provider.force_flush()
    (value, *_) = running.wait_for(lambda: values(running, "logs_seconds"))
    assert 0.2 < value < 0.3
    provider.shutdown()
    logging.getLogger("opentelemetry").handlers.clear()


@pytest.mark.parametrize("way", ["udp", "tcp"])
def test_statsd__a_client_sends_timers(running: Program, way: str) -> None:
    import statsd

    host, port = running.statsd
    before = len(values(running, "timers_seconds", "/home"))
    # The client of PyPI has no tags: they are part of the name there, as DogStatsD writes them.
    client = statsd.StatsClient(host, port) if way == "udp" else statsd.TCPStatsClient(host, port)
    with client.pipeline() as pipe:
        for _ in range(600):
            pipe.timing("api.request", 250)
    client.close()
    figures = running.wait_for(
        lambda: (
            f
            if 'dpfrugal_items_total{metric="timers_seconds"}' in (f := running.get("/metrics", running.operator))
            else ""
        )
    )
    assert figures
    line = b"\n".join([b"api.request:250|ms|#route:/home"] * 30)
    for _ in range(20):
        if way == "udp":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
                plain.sendto(line, (host, port))
        else:
            with socket.create_connection((host, port)) as plain:
                plain.sendall(line + b"\n")
    running.wait_for(lambda: len(values(running, "timers_seconds", "/home")) > before)
    assert 0.2 < values(running, "timers_seconds", "/home")[-1] < 0.3


@needs(PROMETHEUS, "a Prometheus server")
def test_prometheus__a_server_scrapes_it(running: Program, tmp_path: Path) -> None:
    running.send(*[{"route": "/pay", "ms": 250}] * 600)
    running.wait_for(lambda: values(running, "items_seconds"))
    target = running.address.removeprefix("http://")
    job = {"job_name": "dpfrugal", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
    (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert PROMETHEUS is not None
    options = [
        "--config.file=prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    process = subprocess.Popen(
        [PROMETHEUS, *options], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        query = "query?query=items_seconds%7Bquantile%3D%220.5%22%7D"

        def found() -> Any:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{query}", timeout=5) as answer:
                    return json.load(answer)["data"]["result"]
            except OSError:
                return []

        result = running.wait_for(found)
        assert {one["metric"]["route"] for one in result} == {"/home", "/pay"}
        assert all(one["metric"]["quantile"] == "0.5" for one in result)
        up = "query?query=up"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{up}", timeout=5) as answer:
            assert json.load(answer)["data"]["result"][0]["value"][1] == "1"
    finally:
        process.kill()
        process.wait(10)


@needs(PROMTOOL, "promtool")
def test_promtool__has_no_remark_but_on_the_label_of_intervals(running: Program) -> None:
    running.wait_for(lambda: "items_seconds_lower" in running.get("/metrics"))
    assert PROMTOOL is not None
    scrape = running.get("/metrics").encode()
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=scrape, capture_output=True, timeout=60)
    remarks = (done.stdout + done.stderr).decode().splitlines()
    ends = tuple(f"{name}_seconds_{end}" for name in ("items", "spans", "timers", "logs") for end in ("lower", "upper"))
    assert remarks  # or the next line says nothing
    assert all(line.startswith(ends) and line.endswith('should not have "quantile" label') for line in remarks)


@needs(CHROMIUM, "a browser (Chromium)")
def test_page__charts_are_drawn_updated_and_used_by_keyboard(running: Program) -> None:
    from playwright.sync_api import sync_playwright

    def send() -> None:
        running.send(*[{"route": "/pay", "ms": 250}] * 600)

    send()
    running.wait_for(lambda: values(running, "items_seconds"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        problems: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(running.address + "/")
        page.wait_for_selector("#cards svg", state="attached")
        page.select_option("#metric", "items_seconds")
        page.wait_for_selector("svg .line, svg .dot", state="attached")
        assert page.text_content("#connection") == "live"
        assert page.locator("#cards li").count() == 2
        shown = page.text_content("#window")
        send()
        page.wait_for_function("before => document.querySelector('#window').textContent !== before", arg=shown)
        # Everything is reached by keyboard, and the arrow keys read a chart aloud.
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "svg":
                break
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("() => document.querySelector('#reading').textContent.includes(':')")
        assert page.locator(".cursor").count() == 1
        page.keyboard.press("Escape")
        assert page.locator(".cursor").count() == 0
        page.fill("#filter", "pay")
        assert page.locator("#cards li b").all_text_contents() == ["/pay"]
        assert page.get_attribute("#cards svg", "aria-label").startswith("/pay, p50 over")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
    assert problems == []
    assert all(url.startswith((running.address, "data:")) for url in asked)


@needs(CHROMIUM, "a browser (Chromium)")
def test_page__windows_that_were_not_released_are_gaps(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    text, now = settings_text(METRIC.format(name="items", window="10s", total=864000)), time.time() // 10 * 10
    with served(tmp_path, text, Clock(now - 115)) as one:  # its clock stands still for a while
        for ends in (-110, -100, -30, -20):
            one.clock.now = now + ends - 9
            one.server.cut_windows()
            one.send(*[{"route": "/pay", "ms": 250}] * 600)
            one.to(now + ends)
    with program(tmp_path, text) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(running.address + "/")
        page.wait_for_selector("svg .line", state="attached")
        gaps = page.locator("#cards li").nth(1).locator(".gap").count()
        page.screenshot(path=tmp_path / "gap.png")
        browser.close()
    assert gaps >= 5  # at -80, -70, -60, -50 and -40; and at what ended before the program began


@needs(CHROMIUM, "a browser (Chromium)")
def test_page__of_many_keys_loads_the_past_of_those_that_are_shown(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    keys = [f"/{n:03}" for n in range(120)]
    metric = METRIC.replace("[/home, /pay]", f"[{', '.join(keys)}]").format(name="items", window="10s", total=864000)
    text, now = settings_text(metric), time.time() // 10 * 10
    with served(tmp_path, text, Clock(now - 49)) as one:
        for ends in (-40, -30, -20, -10):
            one.send(*[{"route": key, "ms": 250} for key in keys for _ in range(300)])
            one.to(now + ends)
    with program(tmp_path, text) as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(running.address + "/")
        page.wait_for_selector("#cards li")
        assert page.inner_text("#shown") == "1 to 24 of 120"
        page.get_by_role("button", name="Next keys").click()
        page.wait_for_function("() => document.querySelector('#cards b').textContent === '/024'")
        page.wait_for_function("() => document.querySelectorAll('#cards .line').length === 24")
        page.fill("#filter", "/119")
        page.wait_for_function("() => document.querySelectorAll('#cards li').length === 1")
        page.wait_for_selector("#cards .line", state="attached")
        browser.close()
    assert any("key=%2F119" in url and "key=%2F024" not in url for url in asked)


def test_tls__a_door_with_a_certificate_and_tokens(tmp_path: Path) -> None:
    import ssl

    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    for name in ("read", "ingest"):
        (tmp_path / name).write_text(f"{name}-token-0123456789\n", encoding="utf-8")
    more = "tls: {certificate: cert.pem, key: key.pem}\ntokens: {ingest: ingest, read: read}\n"
    with program(tmp_path, settings_text(more=more)) as one:
        assert one.address.startswith("https://127.0.0.1:")
        context = ssl.create_default_context()
        authority.configure_trust(context)
        for token, status in (("read-token-0123456789", 200), ("ingest-token-0123456789", 401)):
            request = urllib.request.Request(one.address + "/metrics", headers={"Authorization": f"Bearer {token}"})  # noqa: S310
            assert _status(request, context) == status


def _status(request: urllib.request.Request, context: Any) -> int:
    try:
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_signals__reload_and_stop(tmp_path: Path) -> None:
    one = program(tmp_path, settings_text())
    try:
        file = tmp_path / "serve.yaml"
        right = file.read_text(encoding="utf-8")
        file.write_text(right.replace("quantiles", "quantile"), encoding="utf-8")
        one.process.send_signal(signal.SIGHUP)
        one.wait_for(lambda: "refused at the last reload" in one.get("/-/ready"))
        one.wait_for(lambda: any("line" in line for line in one.lines[1:]))
        file.write_text(right.replace("[0.5]", "[0.25]"), encoding="utf-8")
        one.process.send_signal(signal.SIGHUP)
        one.wait_for(lambda: "[0.25]" in one.get("/api/v1/metrics"))
        assert json.loads(one.get("/-/ready")) == {"ready": True, "state": []}
        file.write_text(right.replace("listen: 127.0.0.1:0", "listen: 127.0.0.1:1"), encoding="utf-8")
        one.process.send_signal(signal.SIGHUP)
        one.wait_for(lambda: any("listen cannot change" in line for line in one.lines))
        one.send(*[{"route": "/pay", "ms": 250}] * 600)
        assert one.stop() == 0
        assert "stopped" in one.lines[-1]
    finally:
        one.kill()
