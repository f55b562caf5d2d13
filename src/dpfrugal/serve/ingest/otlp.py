"""OTLP over HTTP, as in opentelemetry.io/docs/specs/otlp 1.10: requests as items, answers as the specification says.

Protobuf is read by ``opentelemetry-proto``, JSON by ``msgspec`` into the few fields that count here; the JSON of OTLP
writes ids in hexadecimal and 64-bit integers as text, which the general JSON mapping of protobuf does not.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from dpfrugal.serve.ingest.items import FAR, MOST_ITEMS, NEGATIVE, Item

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
NANOSECONDS: Final = 1e9
KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
SPAN_NAME: Final = "span.name"
SPAN_KIND: Final = "span.kind"
BODY: Final = "body"
INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
Which = Literal["traces", "logs"]
REFUSED_METRICS: Final = (
    "OTLP metrics are not taken: a histogram has lost the single items that a private quantile is chosen from, and "
    "what one person did to it. Send spans to /v1/traces, log records to /v1/logs, or JSON lines to /v1/items."
)


class TooMany(Exception):  # noqa: N818 - the name says what is wrong
    """More items than a request may have: each takes far more memory than the few bytes it may have in a body."""


class Malformed(Exception):  # noqa: N818 - the name says what the body is
    """A body that cannot be decoded; the message says nothing of its content."""


def _of_protobuf(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind in ("string_value", "int_value", "double_value", "bool_value") else None


def _attributes(pairs: Any, wanted: set[str]) -> dict[str, Any]:
    return {pair.key: _of_protobuf(pair.value) for pair in pairs if pair.key in wanted}


def read_protobuf(
    which: Which, body: bytes, wanted: set[str], now: float, far: float
) -> tuple[list[Item], dict[str, int]]:
    """The items of a request, and how many were refused for which reason."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request: Any = ExportTraceServiceRequest() if which == "traces" else ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise Malformed from None
    reading = _Reading(now, far)
    several = request.resource_spans if which == "traces" else request.resource_logs
    if which == "traces":
        _bound(len(scope.spans) for resource in several for scope in resource.scope_spans)
    else:
        _bound(len(scope.log_records) for resource in several for scope in resource.scope_logs)
    if which == "traces":
        for resource in request.resource_spans:
            shared = _attributes(resource.resource.attributes, wanted)
            for scope in resource.scope_spans:
                for span in scope.spans:
                    own = _attributes(span.attributes, wanted)
                    own[SPAN_NAME], own[SPAN_KIND] = span.name, KINDS[span.kind if 0 <= span.kind < len(KINDS) else 0]
                    times = span.start_time_unix_nano, span.end_time_unix_nano
                    reading.span({**shared, **own}, *times, span.trace_id + span.span_id)
    else:
        for resource in request.resource_logs:
            shared = _attributes(resource.resource.attributes, wanted)
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    own = _attributes(record.attributes, wanted)
                    own[BODY] = _of_protobuf(record.body)
                    reading.record({**shared, **own}, record.time_unix_nano or record.observed_time_unix_nano)
    return reading.items, reading.refused


def _bound(sizes: Iterable[int]) -> None:
    if sum(1 + size for size in sizes) > MOST_ITEMS:
        raise TooMany


class _Reading:
    """Items, and what is wrong with the others."""

    def __init__(self, now: float, far: float) -> None:
        self.items: list[Item] = []
        self.refused: dict[str, int] = {}
        self._earliest, self._latest = (now - far) * NANOSECONDS, (now + far) * NANOSECONDS

    def span(self, attributes: Mapping[str, Any], start: int, end: int, identity: bytes) -> None:
        if not self._earliest <= end <= self._latest:
            self._refuse(FAR)
        elif end < start:
            self._refuse(NEGATIVE)
        else:
            self.items.append(Item(attributes, (end - start) / NANOSECONDS, identity))

    def record(self, attributes: Mapping[str, Any], time: int) -> None:
        if time and not self._earliest <= time <= self._latest:
            self._refuse(FAR)
        else:
            self.items.append(Item(attributes))

    def _refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1


def _list_of(kind: Any) -> Any:
    return list[kind] | None


def _decoders() -> dict[str, Any]:
    """A decoder for each kind of request, made once: the fields that count, and no others."""
    import msgspec

    # camelCase is that of the protocol; what a field is that nothing here needs is not looked at
    def struct(name: str, *fields: Any) -> Any:
        return msgspec.defstruct(name, list(fields), rename="camel", gc=False)

    nanoseconds = int | str
    pair: Any = struct("Pair", ("key", str, ""), ("value", dict[str, Any] | None, None))
    pairs = (_list_of(pair), None)
    resource = struct("Resource", ("attributes", *pairs))
    span = struct(
        "Span", ("trace_id", str, ""), ("span_id", str, ""), ("name", str, ""), ("kind", int | str, 0),
        ("start_time_unix_nano", nanoseconds, 0), ("end_time_unix_nano", nanoseconds, 0), ("attributes", *pairs),
    )  # fmt: skip
    record = struct(
        "Record", ("time_unix_nano", nanoseconds, 0), ("observed_time_unix_nano", nanoseconds, 0),
        ("body", dict[str, Any] | None, None), ("attributes", *pairs),
    )  # fmt: skip
    made = {}
    for which, kind, name, of in (("traces", span, "spans", "spans"), ("logs", record, "log_records", "logs")):
        scope = struct("Scope", (name, _list_of(kind), None))
        scopes = (f"scope_{of}", _list_of(scope), None)
        whole = struct("Whole", ("resource", resource | None, None), scopes)
        made[which] = msgspec.json.Decoder(struct("Request", (f"resource_{of}", _list_of(whole), None)))
    return made


_made: dict[str, Any] = {}


def read_json(which: Which, body: bytes, wanted: set[str], now: float, far: float) -> tuple[list[Item], dict[str, int]]:
    """The same of a request in JSON."""
    import msgspec

    if not _made:
        _made.update(_decoders())
    reading = _Reading(now, far)
    try:
        request = _made[which].decode(body)
        several = (request.resource_spans if which == "traces" else request.resource_logs) or ()
        scopes = (
            scope for one in several for scope in (one.scope_spans if which == "traces" else one.scope_logs) or ()
        )
        _bound(len((scope.spans if which == "traces" else scope.log_records) or ()) for scope in scopes)
        if which == "traces":
            for resource, shared in _resources(request.resource_spans, wanted):
                for scope in resource.scope_spans or ():
                    for span in scope.spans or ():
                        own = _json_attributes(span.attributes, wanted)
                        kind = span.kind if isinstance(span.kind, int) and 0 <= span.kind < len(KINDS) else 0
                        own[SPAN_NAME], own[SPAN_KIND] = span.name, KINDS[kind]
                        times = _integer(span.start_time_unix_nano), _integer(span.end_time_unix_nano)
                        reading.span({**shared, **own}, *times, bytes.fromhex(span.trace_id + span.span_id))
        else:
            for resource, shared in _resources(request.resource_logs, wanted):
                for scope in resource.scope_logs or ():
                    for record in scope.log_records or ():
                        own = _json_attributes(record.attributes, wanted)
                        own[BODY] = _of_json(record.body)
                        time = _integer(record.time_unix_nano) or _integer(record.observed_time_unix_nano)
                        reading.record({**shared, **own}, time)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        raise Malformed from None
    return reading.items, reading.refused


def _resources(several: Any, wanted: set[str]) -> Iterable[tuple[Any, dict[str, Any]]]:
    for each in several or ():
        yield each, {} if each.resource is None else _json_attributes(each.resource.attributes, wanted)


def _json_attributes(pairs: Any, wanted: set[str]) -> dict[str, Any]:
    return {pair.key: _of_json(pair.value) for pair in pairs or () if pair.key in wanted}


def _of_json(value: dict[str, Any] | None) -> Any:
    """An ``AnyValue``: its 64-bit integers are text."""
    for name, found in (value or {}).items():
        if name == "intValue":
            return _integer(found)
        if name == "doubleValue":
            return _double(found)
        if name in ("stringValue", "boolValue"):
            return found
    return None


def _integer(value: Any) -> int:
    if not isinstance(value, int) and not (isinstance(value, str) and INTEGER.fullmatch(value)):
        raise ValueError("not a 64-bit integer")
    return int(value)


def _double(value: Any) -> float:
    if not isinstance(value, str | int | float):
        raise ValueError("not a number")
    return float(value)  # NaN and infinities are text


def answer(which: Which, is_json: bool, refused: Mapping[str, int]) -> bytes:
    """The body of a success; a partial one, if items were refused, says how many and why, of no item in particular."""
    total = sum(refused.values())
    said = ", ".join(f"{reason}: {number}" for reason, number in sorted(refused.items()))
    rejected = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}[which]
    if is_json:
        partial = {"partialSuccess": {rejected: str(total), "errorMessage": said}} if total else {}
        return json.dumps(partial).encode()
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response: Any = ExportTraceServiceResponse() if which == "traces" else ExportLogsServiceResponse()
    if total:
        if which == "traces":
            response.partial_success.rejected_spans = total
        else:
            response.partial_success.rejected_log_records = total
        response.partial_success.error_message = said
    return bytes(response.SerializeToString())


def status(is_json: bool, code: int, message: str) -> bytes:
    """The body of an error: a ``google.rpc.Status`` in the encoding of the request."""
    if is_json:
        return json.dumps({"code": code, "message": message}).encode()
    from google.rpc.status_pb2 import Status

    return bytes(Status(code=code, message=message).SerializeToString())
