"""Which items count for a metric: each by itself, and where n is public all of them."""

import math
from dataclasses import replace
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.serve.ingest import items as reasons
from dpfrugal.serve.ingest.items import Item, Reader, text_of
from dpfrugal.serve.settings import LONGEST_KEY, Keys, Metric, Person, Source

METRIC = Metric(
    name="latency", about="", unit="milliseconds", source=Source("json", "ms", (("kind", "server"),), "at"),
    label="route", keys=Keys("route", ("/home",)), person=Person("who", 3), quantiles=(0.5,), window=60.0,
    guarantee=dpf.PureDP(epsilon=1.0), total=dpf.PureDP(epsilon=9.0), windows_per_day=9,
)  # fmt: skip


def item(**attributes: Any) -> Item:
    return Item({"kind": "server", "ms": 1.0, "route": "/home", "who": "a"} | attributes)


def read(*given: Item, metric: Metric = METRIC) -> Any:
    return Reader(metric).rows(given, now=1000.0, far=60.0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"ms": None}, reasons.NO_VALUE),
        ({"ms": "12"}, reasons.NO_NUMBER),
        ({"ms": True}, reasons.NO_NUMBER),
        ({"ms": math.nan}, reasons.NO_NUMBER),
        ({"ms": math.inf}, reasons.NO_NUMBER),
        ({"ms": 10**400}, reasons.NO_NUMBER),
        ({"ms": -1}, reasons.NEGATIVE),
        ({"at": 939.0}, reasons.FAR),
        ({"at": "soon"}, reasons.FAR),
        ({"who": None}, reasons.NO_PERSON),
        ({"who": ["a"]}, reasons.NO_PERSON),
    ],
)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_reader__an_item_that_does_not_count_leaves_the_others_alone(
    changed: dict[str, Any], reason: str, neighbours: Any
) -> None:
    rows = read(item(), item(**changed), item(ms=3), metric=replace(METRIC, neighbours=neighbours))
    assert rows.refused == {reason: 1}
    # Where n is public the item is still one of n, without a value.
    known = [1.0, math.nan, 3.0] if neighbours == "replace" else [1.0, 3.0]
    assert str(rows.values.tolist()) == str(known)
    assert len(rows.keys) == len(rows.persons) == len(known)


def test_reader__items_of_other_metrics_are_none_of_its_own() -> None:
    assert read(item(kind="client"), Item({})) is None
    assert read(item(kind="client"), item(ms=2)).values.tolist() == [2.0]


def test_reader__an_item_near_now_counts_and_so_does_one_without_a_time() -> None:
    rows = read(item(at=940.0), item(at=1060), item())
    assert (rows.values.size, rows.refused) == (3, {})


def test_reader__repeated_spans_have_one_identity() -> None:
    spans = replace(METRIC, source=Source("spans", None), keys=None, person=None)
    one, other = Item({}, 5.0, b"1"), Item({}, 6.0, b"1")
    rows = Reader(spans).rows([one, one, other, one._replace(identity=b"2")])
    assert rows is not None
    assert rows.identities is not None
    first, again, longer, another = rows.identities.tolist()
    assert (first == again, len({first, longer, another})) == (True, 3)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (True, "true"), (7, "7"), (0.5, "0.5"), (None, None), (b"a", None), ([], None),
     ("x" * LONGEST_KEY, "x" * LONGEST_KEY), ("x" * (LONGEST_KEY + 1), None), (10**LONGEST_KEY, None)],
)  # fmt: skip
def test_text_of__a_key_is_text_a_number_or_a_truth_value(value: Any, text: str | None) -> None:
    assert text_of(value) == text
