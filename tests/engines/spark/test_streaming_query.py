"""What may be a sink and a trigger of a stream, and which errors the bridge to Java does not log a second time."""

import functools
import logging
from typing import Any

import pytest

from dpfrugal.engines.spark.streaming_query import REFUSALS, checked_sink, checked_trigger
from dpfrugal.errors import ItemError, ParameterTypeError


class Sink:
    def __call__(self, release: Any, batch_id: int) -> None:
        pass

    def take(self, release: Any, batch_id: int) -> None:
        pass


@pytest.mark.parametrize(
    "sink",
    [
        lambda release, batch_id: None,
        lambda *arguments: None,
        lambda release, batch_id, more=3: None,
        functools.partial(lambda folder, release, batch_id: None, "folder"),
        Sink(),
        Sink().take,
        max,
    ],
    ids=["two", "any", "an optional third", "partial", "instance", "method", "built in"],
)
def test_sink__takes_a_release_and_a_batch_id(sink: Any) -> None:
    checked_sink(sink, "a release")


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (lambda: None, "two arguments, a release and a batch id"),
        (lambda release: None, "two arguments"),
        (lambda release, batch_id, more: None, "two arguments"),
        (lambda release, *, batch_id: None, "two arguments"),
        (Sink, "two arguments"),
        (None, "not NoneType"),
        ("folder", "not str"),
    ],
)
def test_sink__that_could_not_be_called_is_refused_before_anything_is_spent(sink: Any, said: str) -> None:
    with pytest.raises(ParameterTypeError, match=said):
        checked_sink(sink, "a release")


def test_trigger__is_a_dictionary_or_none() -> None:
    checked_trigger(None)
    checked_trigger({"availableNow": True})
    for trigger in ("10 seconds", 10, ["processingTime"]):
        with pytest.raises(ParameterTypeError, match="trigger must be a dictionary"):
            checked_trigger(trigger)


@pytest.mark.parametrize(("error", "logged"), [(ItemError("refused"), False), (ValueError("a fault"), True)])
def test_refusals__are_raised_and_not_logged_too(error: Exception, logged: bool) -> None:
    record = logging.LogRecord("py4j", logging.ERROR, "file", 1, "text", None, (type(error), error, None))
    assert REFUSALS.filter(record) is logged
    plain = logging.LogRecord("py4j", logging.ERROR, "file", 1, "text", None, None)
    assert REFUSALS.filter(plain)
