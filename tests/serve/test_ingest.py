"""What comes in: the same items whatever the protocol, and every wrong body an answer of the specification."""

import gzip
import json
import math
import random
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from dpfrugal.serve.ingest import otlp
from dpfrugal.serve.ingest.items import Item, Reader
from dpfrugal.serve.ingest.json_lines import JsonLines
from dpfrugal.serve.ingest.statsd import read_lines
from dpfrugal.serve.settings import Limits
from dpfrugal.serve.settings_reading import EXAMPLE, settings_of_text
from dpfrugal.serve.web.bodies import MOST_MEMBERS, BodyError, unpacked
from tests.support.serving import NOON, Served, served

SPANS = EXAMPLE.replace("    person: {attribute: enduser.id, max_items: 20}\n", "").replace("ledger: budget.db\n", "")
LOGS = SPANS.replace("{spans: duration, where: {span.kind: server}}", "{logs: took}")
PROTOBUF = {"content-type": otlp.PROTOBUF}
JSON = {"content-type": otlp.JSON}
WANTED = {"http.route", "took", "service.name"}


def spans(*each: tuple[str, float, float], now: float = NOON) -> ExportTraceServiceRequest:
    """A request with a span of each (route, duration, end relative to now)."""
    request = ExportTraceServiceRequest()
    resource: Any = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = resource.scope_spans.add()
    for number, (route, took, end) in enumerate(each):
        span = scope.spans.add(trace_id=b"t" * 16, span_id=number.to_bytes(8, "big"), name="GET", kind=2)
        span.end_time_unix_nano = int((now + end) * 1e9)
        span.start_time_unix_nano = span.end_time_unix_nano - int(took * 1e9)
        span.attributes.add(key="http.route").value.string_value = route
        span.attributes.add(key="took").value.double_value = took
    return request


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """The same in the JSON of OTLP: hexadecimal ids, 64-bit integers as text."""
    found = [
            {
                "traceId": span.trace_id.hex(), "spanId": span.span_id.hex(), "name": span.name, "kind": span.kind,
                "startTimeUnixNano": str(span.start_time_unix_nano), "endTimeUnixNano": str(span.end_time_unix_nano),
                "attributes": [
                    {"key": "http.route", "value": {"stringValue": span.attributes[0].value.string_value}},
                    {"key": "took", "value": {"doubleValue": span.attributes[1].value.double_value}},
                ],
                "unknown": {"deep": [1]},
            }
            for span in request.resource_spans[0].scope_spans[0].spans
    ]  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": found}]}]}).encode()


def held(one: Served) -> int:
    return sum(one.server.figures.items.values())


def test_otlp__protobuf_and_json_are_the_same_items() -> None:
    request = spans(("/home", 0.25, 0.0), ("/pay", 1.5, -3.0))
    found = otlp.read_protobuf("traces", request.SerializeToString(), WANTED, NOON, 60.0)
    assert otlp.read_json("traces", as_json(request), WANTED, NOON, 60.0) == found
    assert [item.duration for item in found[0]] == [0.25, 1.5]
    assert found[0][0].attributes["service.name"] == "shop"


def test_otlp__log_records_are_items() -> None:
    request = ExportLogsServiceRequest()
    record: Any = request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=int(NOON * 1e9))
    record.attributes.add(key="took").value.int_value = 7
    record.body.string_value = "hello"
    (item,), _ = otlp.read_protobuf("logs", request.SerializeToString(), WANTED, NOON, 60.0)
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"timeUnixNano": str(int(NOON * 1e9)), "body": {"stringValue": "hello"},
         "attributes": [{"key": "took", "value": {"intValue": "7"}}]}]}]}]}  # fmt: skip
    assert otlp.read_json("logs", json.dumps(body).encode(), WANTED, NOON, 60.0)[0] == [item]
    assert item.attributes == {"took": 7, "body": "hello"}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_traces__partial_success_says_how_many_were_refused_and_why(tmp_path: Path, kind: str, zipped: bool) -> None:
    now = time.time()
    request = spans(("/home", 0.1, 0.0), ("/home", 0.1, 90_000.0), ("/home", -0.1, 0.0), now=now)
    body = request.SerializeToString() if kind == "protobuf" else as_json(request)
    headers = dict(PROTOBUF if kind == "protobuf" else JSON) | ({"content-encoding": "gzip"} if zipped else {})
    with served(tmp_path, SPANS) as one:
        one.clock.now = now
        answer = one.client().post("/v1/traces", content=gzip.compress(body) if zipped else body, headers=headers)
        assert answer.status_code == 200
        assert held(one) == 1
    if kind == "json":
        said = answer.json()["partialSuccess"]
        assert said["rejectedSpans"] == "2"
        assert "far from now: 1" in said["errorMessage"]
    else:
        response = ExportTraceServiceResponse.FromString(answer.content)
        assert response.partial_success.rejected_spans == 2
        assert "negative duration: 1" in response.partial_success.error_message


def test_traces__a_span_delivered_again_is_one_item_also_in_the_next_window(tmp_path: Path) -> None:
    body = spans(*[("/home", 0.1, 0.0)] * 50, now=time.time()).SerializeToString()
    with served(tmp_path, SPANS) as one:
        client = one.client()
        for _ in range(3):
            assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
        one.to(NOON + 60)
        rows = one.server.figures.rows["request_duration"][2]
        assert rows[0] == 50
        client.post("/v1/traces", content=body, headers=PROTOBUF)
        one.to(NOON + 120)
        assert rows[0] == 50
        assert one.server.figures.refused["request_duration_seconds", "repeated"] == 150


WRONG_BODIES = {
    "truncated protobuf": (spans(("/home", 0.1, 0.0)).SerializeToString()[:-5], PROTOBUF, 400),
    "wrong protobuf": (b"\xff" * 50, PROTOBUF, 400),
    "truncated JSON": (b'{"resourceSpans": [', JSON, 400),
    "JSON of another shape": (b'{"resourceSpans": 3}', JSON, 400),
    "an id that is no number": (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"zz"}]}]}]}', JSON, None),
    "deep JSON": (b'{"a":' * 5000, JSON, 400),
    "no gzip": (b"plain", PROTOBUF | {"content-encoding": "gzip"}, 400),
    "half a gzip": (gzip.compress(b"x" * 9999)[:-9], PROTOBUF | {"content-encoding": "gzip"}, 400),
    "a bomb": (gzip.compress(b"\0" * (20 << 20)), PROTOBUF | {"content-encoding": "gzip"}, 413),
    "another encoding": (b"x", PROTOBUF | {"content-encoding": "br"}, 415),
    "another type": (b"x", {"content-type": "text/plain"}, 415),
    "a large body": (b"x" * (9 << 20), PROTOBUF, 413),
}


@pytest.mark.parametrize("name", WRONG_BODIES)
def test_traces__a_wrong_body_is_refused_for_good_in_the_encoding_of_the_request(tmp_path: Path, name: str) -> None:
    body, headers, status = WRONG_BODIES[name]
    with served(tmp_path, SPANS) as one:
        answer = one.client().post("/v1/traces", content=body, headers=headers)
        assert answer.status_code == status or (status is None and answer.status_code in (200, 400))
        assert "retry-after" not in answer.headers
        assert held(one) == 0
        if answer.status_code == 200:
            return
        message = answer.json()["message"] if headers is JSON else Status.FromString(answer.content).message
        assert message.endswith(".")


def test_traces__spans_without_end_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    request = ExportTraceServiceRequest()
    scope: Any = request.resource_spans.add().scope_spans.add()
    for _ in range(200_000):
        scope.spans.add()
    bodies = ((request.SerializeToString(), PROTOBUF), (b'{"resourceSpans":[' + b"{}," * 99 + b"{}]}", JSON))
    with served(tmp_path, SPANS) as one:
        statuses = [one.client().post("/v1/traces", content=body, headers=kind).status_code for body, kind in bodies]
    assert statuses == [413, 200]


def test_traces__a_server_that_stops_says_send_it_again(tmp_path: Path) -> None:
    with served(tmp_path, SPANS) as one:
        one.server.stop()
        answer = one.client().post("/v1/traces", content=b"", headers=PROTOBUF)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_metrics__histograms_are_refused_with_the_reason(tmp_path: Path) -> None:
    with served(tmp_path, SPANS) as one:
        answer = one.client().post("/v1/metrics", content=b"", headers=PROTOBUF)
        assert answer.status_code == 400
        assert "histogram has lost the single items" in Status.FromString(answer.content).message


def test_items__json_lines_are_taken_and_wrong_ones_left_out(tmp_path: Path) -> None:
    lines = [
        b'{"route": "/home", "ms": 5}',
        b"[1]",
        b"{",
        b"",
        b'{"route": 3, "ms": "5"}',
        b'{"ms": 1e999}',
        b'{"ms":NaN}',
    ]
    with served(tmp_path) as one:
        client = one.client()
        answer = client.post("/v1/items", content=b"\n".join(lines), headers={"content-type": "application/x-ndjson"})
        assert answer.json() == {"accepted": 2, "rejected": 4}
        assert one.server.figures.refused["latency_seconds", "no finite number"] == 1
        assert client.post("/v1/items", content=b"{", headers=JSON).status_code == 400
        assert client.post("/v1/items", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415


@pytest.mark.parametrize(
    ("value", "reason"),
    [(None, "no value"), ("12", "no finite number"), (True, "no finite number"), (math.nan, "no finite number"),
     (math.inf, "no finite number"), (10**400, "no finite number"), ([1], "no finite number"),
     (-1.0, "negative duration")],
)  # fmt: skip
def test_reader__what_is_no_value_does_not_count_and_is_counted(value: Any, reason: str) -> None:
    reader = Reader(settings_of_text(LOGS).metrics[0])
    rows = reader.rows([Item({"took": value, "http.route": "/pay"}), Item({"took": 1, "http.route": "/pay"})])
    assert rows is not None
    assert rows.values.tolist() == [1.0]
    assert rows.refused == {reason: 1}


def test_reader__an_item_whose_own_time_is_far_does_not_count() -> None:
    text = SPANS.replace("{spans: duration, where: {span.kind: server}}", "{json: took, time: at}")
    reader = Reader(settings_of_text(text).metrics[0])
    items = [Item({"took": 1, "at": at}) for at in (NOON, NOON + 99_999, "now", None)]
    rows = reader.rows(items, NOON, 3600.0)
    assert rows is not None
    assert (len(rows.keys), rows.refused) == (2, {"far from now": 2})


def test_reader__a_repetition_without_a_value_is_a_repetition_too() -> None:
    text = SPANS.replace("{spans: duration, where: {span.kind: server}}", "{spans: took}")
    reader = Reader(settings_of_text(text + "    neighbours: replace\n").metrics[0])
    rows = reader.rows([Item({"http.route": "/pay", "took": "text"}, None, b"id") for _ in range(2)])
    assert rows is not None
    assert rows.identities is not None
    assert len(set(rows.identities.tolist())) == 1


def test_statsd__the_lines_of_clients() -> None:
    block = (
        b"a.b:12|ms\na.b:3:4|h|@0.5|#route:/pay,x\na.b:1|c\nother:1|ms\na.b:text|d\nnonsense\n\na.b:5|ms|#\r\na.b:|ms\n"
    )
    found, refused = read_lines(block, {"a.b"})
    assert [item.attributes["value"] for item in found["a.b"]] == [12.0, 3.0, 4.0, "", 5.0]
    assert found["a.b"][1].attributes["route"] == "/pay"
    assert refused == {"malformed": 2}


def test_gzip__what_comes_out_is_bounded() -> None:
    limits = Limits(body=1000, decompressed=3_000_000, ratio=10)
    assert unpacked(gzip.compress(b"a") + gzip.compress(b"b"), limits) == b"ab"
    assert len(unpacked(gzip.compress(b"\0" * 900_000), limits)) == 900_000
    with pytest.raises(BodyError, match="must unpack to at most"):
        unpacked(gzip.compress(b"\0" * 2_000_000), limits)


def test_gzip__members_without_end_are_refused_before_each_is_copied() -> None:
    assert unpacked(b"", Limits()) == b""
    assert unpacked(gzip.compress(b"a") * MOST_MEMBERS, Limits()) == b"a" * MOST_MEMBERS
    with pytest.raises(BodyError, match="at most 16 gzip members"):
        unpacked(gzip.compress(b"") * (MOST_MEMBERS + 1), Limits())


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(JSON_VALUES, st.sampled_from(["intValue", "doubleValue", "stringValue", "boolValue", "time"]))
@example([], "intValue").via("a type that no number is made of")
@example(10**400, "doubleValue").via("an integer beyond all doubles")
def test_fuzz__no_json_in_place_of_a_value_raises_anything_but_malformed(value: Any, where: str) -> None:
    own = {"timeUnixNano": value} if where == "time" else {"body": {where: value}}
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [own | {"attributes": [
        {"key": "took", "value": {where: value}}, {"key": "http.route", "value": {where: value}}]}]}]}]}  # fmt: skip
    with suppress(otlp.Malformed):
        items, _ = otlp.read_json("logs", json.dumps(body).encode(), WANTED, NOON, 60.0)
        Reader(settings_of_text(LOGS).metrics[0]).rows(items)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.randoms(use_true_random=False))
def test_fuzz__no_body_of_any_protocol_raises_anything_but_malformed(noise: bytes, draw: random.Random) -> None:
    request = spans(("/home", 0.1, 0.0), ("/pay", 0.2, 0.0))
    for body in (noise, _damaged(request.SerializeToString(), noise, draw), _damaged(as_json(request), noise, draw)):
        for read in (otlp.read_protobuf, otlp.read_json):
            for which in ("traces", "logs"):
                try:
                    items, _ = read(which, body, WANTED, NOON, 60.0)
                except otlp.Malformed:
                    continue
                Reader(settings_of_text(SPANS).metrics[0]).rows(items)
        for found in read_lines(body, {"a"})[0].values():
            Reader(settings_of_text(SPANS).metrics[0]).rows(found)
        JsonLines().read(body)
        for packed in (body, zlib.compress(body), gzip.compress(body)[: -draw.randrange(1, 9)]):
            with suppress(BodyError):
                unpacked(packed, Limits())


def _damaged(body: bytes, noise: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(body))
    return body[:at] + noise + body[at + draw.randrange(len(body) - at + 1) :]
