"""The HTTP interface against its own description: whatever is sent, no answer is a 500, and none is undescribed."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.serve.test_server import ROWS
from tests.support.serving import NOON, served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis


POSTS = ("/v1/traces", "/v1/logs", "/v1/metrics", "/v1/items")
PATHS = (*POSTS, "/metrics", "/api/v1/metrics", "/api/v1/releases", "/-/healthy", "/-/ready")


@schemathesis.serializer("application/x-ndjson")
def as_lines(_: Any, value: Any) -> bytes:
    return str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from dpfrugal.serve.program import public_application

    with served(tmp_path_factory.mktemp("interface")) as one:
        one.send(*ROWS)
        one.to(NOON + 60)
        app: Any = public_application(one.server)
        yield schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "localhost"})
        assert one.server.readiness() == (True, [])


@pytest.mark.parametrize("path", PATHS)
def test_interface__every_answer_is_described_and_none_is_a_500(schema: Any, path: str) -> None:
    (operation,) = [found.ok() for found in schema.get_all_operations() if found.ok().path == path]

    @settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy())
    def ask(case: Any) -> None:
        answer = case.call(headers={"Host": "localhost"})
        assert answer.status_code < 500
        assert str(answer.status_code) in operation.definition.raw["responses"]

    ask()


def test_interface__all_of_it_is_tried(schema: Any) -> None:
    assert {found.ok().path for found in schema.get_all_operations()} == set(PATHS)
