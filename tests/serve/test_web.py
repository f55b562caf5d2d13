"""The public and the operator's ports: who may ask, what is shown, and clients that do not behave."""

import asyncio
import json
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parsed_text

from dpfrugal.serve.exposition import as_json
from dpfrugal.serve.web import public_routes
from tests.serve.test_server import ROWS
from tests.support.serving import METRIC, NOON, Clock, Program, program, served, settings_text

READ, INGEST, OPERATOR = ("read-token-0123456", "ingest-token-012345", "operator-token-0123")
parse_openmetrics: Any = openmetrics_parser.text_string_to_metric_families
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def test_metrics__both_formats_are_parsed_by_the_clients_of_the_field(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.send(*ROWS)
        one.to(NOON + 60)
        client = one.client()
        text, more = client.get("/metrics"), client.get("/metrics", headers={"accept": OPENMETRICS})
    assert text.headers["content-type"].startswith("text/plain")
    assert more.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in parsed_text(text.text)}
    again = {family.name: family for family in parse_openmetrics(more.text)}
    assert families.keys() == again.keys()
    assert families["latency_seconds"].type == "summary"
    samples = {(s.name, s.labels.get("route")) for s in families["latency_seconds"].samples}
    assert samples == {("latency_seconds", "/home"), ("latency_seconds", "/pay")}
    for name in ("latency_seconds_lower", "latency_seconds_upper", "latency_seconds_release_timestamp_seconds"):
        assert families[name].type == "gauge"


def test_releases__are_paged_filtered_and_since_a_time(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        for minute in range(1, 8):
            one.send(*ROWS)
            one.to(NOON + 60 * minute)
        client = one.client()
        found, path = [], "/api/v1/releases?limit=3&key=/pay"
        while path:
            answer = client.get(path).json()
            found += answer["releases"]
            path = answer["next"]
        assert [release["id"] for release in found] == list(range(1, 8))
        assert {key["key"] for release in found for key in release["keys"]} == {"/pay"}
        assert found[0]["window_end"] == "2027-01-15T12:01:00Z"
        later = client.get("/api/v1/releases", params={"since": "2027-01-15T12:06:00Z"}).json()["releases"]
        assert [release["id"] for release in later] == [6, 7]
        for query in ("limit=0", "limit=x", "after=-1", "since=yesterday", "since=1e400", "since=nan"):
            assert client.get(f"/api/v1/releases?{query}").status_code == 400, query
        assert client.get("/api/v1/releases?metric=none").status_code == 404
        assert client.get("/api/v1/releases?metric=latency_seconds&limit=1").json()["releases"][0]["id"] == 1


def test_web__unknown_paths_and_methods_and_hosts_are_refused_in_json(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        client = one.client()
        assert client.get("/nowhere").json() == {"error": "There is nothing here."}
        assert client.get("/v1/traces").status_code == 405
        assert client.delete("/metrics").status_code == 405
        assert client.get("/metrics", headers={"host": "evil.example"}).status_code == 421
        for host in ("127.0.0.1:4318", "LocalHost", "[::1]:4318"):
            assert client.get("/metrics", headers={"host": host}).status_code == 200
        assert "default-src 'none'" in client.get("/").headers["content-security-policy"]


def test_web__each_right_needs_a_token_of_its_own(tmp_path: Path) -> None:
    for name, token in (("read", READ), ("ingest", INGEST), ("operator", OPERATOR)):
        (tmp_path / name).write_text(f"{token}\n", encoding="utf-8")
    text = settings_text(more="tokens: {ingest: ingest, read: read, operator: operator}\n")
    with served(tmp_path, text) as one:
        client = one.client()
        asked = {"/metrics": READ, "/": READ, "/api/v1/releases": READ, "/v1/items": INGEST, "/v1/traces": INGEST}
        for path, right in asked.items():
            method = "POST" if path.startswith("/v1") else "GET"
            for token in (READ, INGEST, OPERATOR, ""):
                headers = {"authorization": f"Bearer {token}"}
                status = client.request(method, path, headers=headers).status_code
                assert (status == 401) == (token != right), (path, token)
            assert client.request(method, path, auth=("anyone", right)).status_code != 401
        assert client.get("/metrics").headers["www-authenticate"].startswith("Basic")
        assert client.get("/-/healthy").status_code == 200


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server with short deadlines."""
    text = settings_text(more="limits: {seconds: 1s, connections: 40, event_streams: 2}\n").replace("1m", "1s")
    with program(tmp_path_factory.mktemp("web"), text.replace("2880", "172800")) as found:
        yield found


def connected(running: Program) -> socket.socket:
    host, _, port = running.address.partition("://")[2].rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def test_operator__its_figures_are_on_another_port(running: Program) -> None:
    running.send({"route": "/pay", "ms": 3}, {"route": "/not-declared", "ms": 3}, {"route": "/pay", "ms": "x"})
    figures = running.wait_for(
        lambda: found if "dpfrugal_rows_total" in (found := running.get("/metrics", running.operator)) else ""
    )
    running.wait_for(lambda: 'key="/pay",metric="latency_seconds"} 1.0' in running.get("/metrics", running.operator))
    assert 'dpfrugal_refused_total{metric="latency_seconds",reason="undeclared key"} 1.0' in figures
    assert "not-declared" not in figures
    assert "dpfrugal_rows" not in running.get("/metrics")
    assert "dpfrugal_request_seconds_bucket" in figures


def test_events__each_release_is_sent_as_it_is_made_and_streams_are_bounded(running: Program) -> None:
    head = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(running) as one, connected(running) as two, connected(running) as three:
        for each in (one, two):
            each.sendall(head)
        time.sleep(0.3)
        three.sendall(head)
        assert b" 503 " in three.recv(4096)
        seen = b""
        while seen.count(b"event: release") < 2:
            seen += one.recv(65536)
        data = json.loads(next(line for line in seen.split(b"\n") if line.startswith(b"data: "))[6:])
        assert data["metric"] == "latency_seconds"
        assert [key["key"] for key in data["keys"]] == ["/home", "/pay"]


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET /metrics HT", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n",
     b"POST /v1/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"],
)  # fmt: skip
def test_web__a_slow_client_is_let_go(running: Program, beginning: bytes) -> None:
    with connected(running) as slow:
        slow.sendall(beginning)
        slow.settimeout(8)
        answer = b""
        while part := slow.recv(4096):
            answer += part
            if b" 408 " in answer:
                break
        assert answer == b"" or b" 408 " in answer


def test_web__a_client_that_reads_nothing_is_let_go(running: Program) -> None:
    with connected(running) as deaf:
        deaf.sendall(b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)  # 16 MB of answers
        poll = select.poll()
        poll.register(deaf, select.POLLRDHUP)
        assert poll.poll(30_000)


def test_web__a_head_that_does_not_end_is_refused(running: Program) -> None:
    with connected(running) as long:
        try:
            long.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000)
            answer = long.recv(4096)
        except OSError:
            answer = b""
        assert answer == b"" or b" 400 " in answer


def test_web__many_connections_do_not_stop_it(running: Program) -> None:
    idle = [connected(running) for _ in range(60)]
    try:
        running.wait_for(lambda: running.process.poll() is None and "healthy" in _tried(running))
    finally:
        for each in idle:
            each.close()


def _tried(running: Program) -> str:
    try:
        return running.get("/-/healthy")
    except OSError:
        return ""


def test_events__a_client_gets_all_that_it_missed_a_bounded_part_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_routes, "MOST_NUMBERS", 12)  # two releases of two keys
    with served(tmp_path) as one:
        for minute in range(1, 8):
            one.to(NOON + 60 * minute)
        parts: list[int] = []
        releases = one.server.store.releases

        def counting(**asked: Any) -> Any:
            found = releases(**asked)
            parts.append(len(found.releases))
            return found

        monkeypatch.setattr(one.server.store, "releases", counting)
        one.server.streams.join = lambda: ended()  # type: ignore[method-assign]
        text = one.client().get("/api/v1/events", headers={"last-event-id": "2"}).text
    assert re.findall(r"id: (\d+)", text) == ["3", "4", "5", "6", "7"]
    assert parts == [2, 2, 1, 0]


def ended() -> "asyncio.Queue[bytes | None]":
    queue = asyncio.Queue[bytes | None]()
    queue.put_nowait(None)
    return queue


def test_metrics__all_clients_of_a_format_get_the_same_bytes_until_the_next_release(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.to(NOON + 60)
        for accept in ("text/plain", OPENMETRICS):
            first = one.server.exposition.scrape(accept)[0]
            assert one.server.exposition.scrape(accept)[0] is first  # however many read it slowly, it is held once
        one.send(*ROWS)
        one.to(NOON + 120)
        assert one.server.exposition.scrape(OPENMETRICS)[0] != first
        assert one.server.exposition.scrape(OPENMETRICS)[0].endswith(b"# EOF\n")


def test_releases__are_written_outside_of_the_loop_that_takes_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[str] = []

    def noting(*arguments: Any) -> Any:
        where.append(threading.current_thread().name)
        return as_json(*arguments)

    monkeypatch.setattr(public_routes, "as_json", noting)
    with served(tmp_path) as one:
        one.to(NOON + 60)
        one.server.streams.join = lambda: ended()  # type: ignore[method-assign]
        client = one.client()
        assert len(client.get("/api/v1/releases").json()["releases"]) == 1
        assert client.get("/api/v1/events", headers={"last-event-id": "0"}).text.count("event: release") == 1
    assert where == ["readers_0"] * 2


SHAPE = re.compile(r"NaN|null|[+-]?Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
ASKED = (
    "/", "/page.js", "/metrics", "/api/v1/metrics", "/api/v1/releases", "/api/v1/releases?key=/pay", "/-/ready",
    "/-/healthy", "/api/v1/events", "/openapi.json", "/nowhere",
)  # fmt: skip


def test_web__the_shape_of_every_answer_is_that_of_a_window_without_items(tmp_path: Path) -> None:
    """Status, headers, names, keys, order, sentences and log: all but the numbers of releases, which are private."""
    metric = METRIC.format(name="latency", window="1m", total=2880) + "    person: {attribute: who, max_items: 2}\n"
    wrong: list[Any] = ["text", None, -1.0, 1e400, {}]
    many = [{"route": key, "ms": 5.0, "who": f"p{n}"} for n in range(3000) for key in ("/pay", f"/secret{n}", None)]
    many += [{"route": "/home", "ms": value, "who": "ann"} for value in wrong * 50] + [{"ms": 3.0}] * 50

    def seen(folder: Path, rows: list[dict[str, Any]]) -> list[Any]:
        folder.mkdir()
        with served(folder, settings_text(metric), Clock()) as one:
            client, found = one.client(), list[Any]()
            one.server.streams.join = lambda: ended()  # type: ignore[method-assign]
            for minute in range(1, 4):
                one.send(*(rows if minute == 2 else []))
                body = b'{"route": "/pay", "ms": 5, "who": "me"}\n{"route": "/mine"}\n['
                answers = [client.post("/v1/items", content=body, headers={"content-type": "application/x-ndjson"})]
                answers += [client.get(path, headers={"last-event-id": "0"}) for path in ASKED]
                one.to(NOON + 60 * minute)
                answers += [client.get(path, headers={"last-event-id": "0"}) for path in ASKED]
                for answer in answers:
                    headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
                    found.append((answer.status_code, headers, SHAPE.sub("#", answer.text)))
            return [*found, one.said]

    assert seen(tmp_path / "none", []) == seen(tmp_path / "many", many)
