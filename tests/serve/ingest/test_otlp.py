"""OTLP: a request is the same items in both encodings, and what is refused is counted by its reason, never quoted."""

import json
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from dpfrugal.serve.ingest import items as reasons
from dpfrugal.serve.ingest import otlp

NOW, FAR = 1_800_000_000, 60
SECOND = 10**9
WANTED = {"route", "took", "ok"}

names = st.sampled_from(["route", "took", "ok", "not wanted"])
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
values = st.one_of(
    texts.map(lambda text: ("stringValue", "string_value", text)),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: ("intValue", "int_value", number)),
    st.floats(allow_nan=False).map(lambda number: ("doubleValue", "double_value", number)),
    st.booleans().map(lambda truth: ("boolValue", "bool_value", truth)),
    st.just(("arrayValue", "array_value", None)),
)
attributes = st.lists(st.tuples(names, values), max_size=4)
times = st.integers(NOW - 2 * FAR, NOW + 2 * FAR).map(lambda second: second * SECOND)
identities = st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8))
spans = st.lists(st.tuples(attributes, times, times, identities, texts, st.integers(0, 7)), max_size=4)
logs = st.lists(st.tuples(attributes, times | st.just(0), times | st.just(0), values), max_size=4)
Pairs = list[tuple[str, tuple[str, str, Any]]]


def into(target: Any, pairs: Pairs) -> None:
    for name, (_, field, value) in pairs:
        added = target.add(key=name).value
        if value is None:
            added.array_value.SetInParent()
        else:
            setattr(added, field, value)


def as_json(value: tuple[str, str, Any]) -> dict[str, Any]:
    kind, _, plain = value
    shown = {"intValue": str(plain), "arrayValue": {}}.get(kind, plain)
    return {kind: repr(plain).replace("inf", "Infinity") if plain in (float("inf"), -float("inf")) else shown}


def listed(pairs: Pairs) -> list[dict[str, Any]]:
    return [{"key": name, "value": as_json(value)} for name, value in pairs]


@settings(max_examples=80, deadline=None)
@given(shared=attributes, found=spans)
def test_spans__are_the_same_items_in_both_encodings(shared: Pairs, found: list[Any]) -> None:
    request: Any = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    into(resource.resource.attributes, shared)
    several, in_json = resource.scope_spans.add().spans, []
    for own, start, end, (trace, span), name, kind in found:
        made = several.add(trace_id=trace, span_id=span, name=name, start_time_unix_nano=start, end_time_unix_nano=end)
        made.kind = kind
        into(made.attributes, own)
        in_json.append(
            {
                "traceId": trace.hex(), "spanId": span.hex(), "name": name, "kind": kind, "attributes": listed(own),
                "startTimeUnixNano": str(start), "endTimeUnixNano": end, "flags": 1,
            }
        )  # fmt: skip
    body = {"resourceSpans": [{"resource": {"attributes": listed(shared)}, "scopeSpans": [{"spans": in_json}]}]}
    items, refused = otlp.read_protobuf("traces", request.SerializeToString(), WANTED, NOW, FAR)
    assert otlp.read_json("traces", json.dumps(body).encode(), WANTED, NOW, FAR) == (items, refused)
    near = [one for one in found if abs(one[2] - NOW * SECOND) <= FAR * SECOND]
    taken = [one for one in near if one[2] >= one[1]]
    wanted = {reasons.FAR: len(found) - len(near), reasons.NEGATIVE: len(near) - len(taken)}
    assert refused == {reason: number for reason, number in wanted.items() if number}
    assert [item.duration for item in items] == [(end - start) / SECOND for _, start, end, *_ in taken]
    assert [item.identity for item in items] == [trace + span for *_, (trace, span), _, _ in taken]
    for item in items:
        assert set(item.attributes) <= WANTED | {otlp.SPAN_NAME, otlp.SPAN_KIND}
        assert item.attributes[otlp.SPAN_KIND] in otlp.KINDS


@settings(max_examples=80, deadline=None)
@given(shared=attributes, found=logs)
def test_logs__are_the_same_items_in_both_encodings(shared: Pairs, found: list[Any]) -> None:
    request: Any = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    into(resource.resource.attributes, shared)
    several, in_json = resource.scope_logs.add().log_records, []
    for own, time, observed, body in found:
        made = several.add(time_unix_nano=time, observed_time_unix_nano=observed)
        into(made.attributes, own)
        if body[2] is None:
            made.body.array_value.SetInParent()
        else:
            setattr(made.body, body[1], body[2])
        in_json.append(
            {"timeUnixNano": str(time), "observedTimeUnixNano": observed, "body": as_json(body),
             "attributes": listed(own)}
        )  # fmt: skip
    text = {"resourceLogs": [{"resource": {"attributes": listed(shared)}, "scopeLogs": [{"logRecords": in_json}]}]}
    items, refused = otlp.read_protobuf("logs", request.SerializeToString(), WANTED, NOW, FAR)
    assert otlp.read_json("logs", json.dumps(text).encode(), WANTED, NOW, FAR) == (items, refused)
    far = sum(abs((time or observed or NOW * SECOND) - NOW * SECOND) > FAR * SECOND for _, time, observed, _ in found)
    assert refused == ({reasons.FAR: far} if far else {})
    assert len(items) == len(found) - far


@pytest.mark.parametrize("which", ["traces", "logs"])
def test_request__of_too_many_items_is_refused_unread(which: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "MOST_ITEMS", 5)
    request: Any = ExportTraceServiceRequest() if which == "traces" else ExportLogsServiceRequest()
    scope = (
        request.resource_spans.add().scope_spans.add().spans
        if which == "traces"
        else request.resource_logs.add().scope_logs.add().log_records
    )
    name = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}
    outer, inner, last = name[which]
    for number in range(1, 7):
        scope.add()
        body = json.dumps({outer: [{inner: [{last: [{}] * number}]}]}).encode()
        for read, given_body in ((otlp.read_protobuf, request.SerializeToString()), (otlp.read_json, body)):
            if number < 5:
                read(which, given_body, WANTED, NOW, FAR)
            else:
                with pytest.raises(otlp.TooMany):
                    read(which, given_body, WANTED, NOW, FAR)


@pytest.mark.parametrize("refused", [{}, {"far from now": 2}, {"negative duration": 1, "far from now": 2}], ids=str)
def test_answer__says_how_many_were_refused_in_the_encoding_of_the_request(refused: dict[str, int]) -> None:
    total, said = sum(refused.values()), ", ".join(f"{name}: {refused[name]}" for name in sorted(refused))
    for which, response, field in (
        ("traces", ExportTraceServiceResponse, "rejected_spans"),
        ("logs", ExportLogsServiceResponse, "rejected_log_records"),
    ):
        one: Any = response.FromString(otlp.answer(which, False, refused))  # type: ignore[arg-type]
        assert (getattr(one.partial_success, field), one.partial_success.error_message) == (total, said)
        other = json.loads(otlp.answer(which, True, refused))  # type: ignore[arg-type]
        names = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}
        wanted = {"partialSuccess": {names[which]: str(total), "errorMessage": said}} if total else {}
        assert other == wanted


def test_status__is_the_same_in_both_encodings() -> None:
    one = Status.FromString(otlp.status(False, 3, "A sentence."))
    assert json.loads(otlp.status(True, 3, "A sentence.")) == {"code": one.code, "message": one.message}
