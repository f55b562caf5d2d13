"""What a scrape and a reader of JSON get: parsed again by Prometheus' own parsers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

from dpfrugal.serve.budget import Standing
from dpfrugal.serve.exposition import Exposition, about, as_json, sizes
from dpfrugal.serve.settings import Metric
from dpfrugal.serve.settings_reading import settings_of_text
from dpfrugal.serve.store import Stored
from tests.support.serving import METRIC, NOON, settings_text

KEYS = ("/home", 'a "quoted"\\key\nof two lines', "ünï")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def metric(tmp_path: Path) -> Metric:
    (found,) = settings_of_text(settings_text(METRIC.format(name="latency", window="1m", total=20)), tmp_path).metrics
    return found


def release(metric: Metric, keys: tuple[str, ...] = KEYS) -> Stored:
    numbers = np.arange(3.0 * len(keys)).reshape(3, len(keys), 1)
    numbers[:, -1] = np.nan  # too few items
    return Stored(7, metric.name, NOON, NOON + 60, NOON + 60.5, about(metric), keys, numbers)


def samples(shown: Exposition, accept: str) -> dict[str, Any]:
    body, _ = shown.scrape(accept)
    parse = openmetrics if "openmetrics" in accept else parser
    found = parse.text_string_to_metric_families(body.decode())
    return {f"{each.name}{sorted(each.labels.items())}": each.value for family in found for each in family.samples}


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
def test_exposition__is_what_prometheus_parses_back(accept: str, metric: Metric) -> None:
    shown = Exposition()
    shown.show(release(metric), items=5)
    found = samples(shown, accept)
    for part, name in enumerate(("latency_seconds", "latency_seconds_lower", "latency_seconds_upper")):
        for at, key in enumerate(KEYS[:-1]):
            assert found[f"{name}{[('quantile', '0.5'), ('route', key)]}"] == 3.0 * part + at
    unknown = [
        found[f"latency_seconds{end}{[('quantile', '0.5'), ('route', KEYS[-1])]}"] for end in ("_lower", "_upper")
    ]
    assert unknown == [-np.inf, np.inf]
    assert np.isnan(found[f"latency_seconds{[('quantile', '0.5'), ('route', KEYS[-1])]}"])
    assert found["latency_seconds_window_end_timestamp_seconds[]"] == NOON + 60


def test_exposition__the_next_release_takes_the_place_of_the_last_also_with_other_keys(metric: Metric) -> None:
    shown = Exposition()
    for keys in (KEYS, ("/pay", "/home")):
        shown.show(release(metric, keys))
    found = samples(shown, "text/plain")
    assert {name for name in found if name.startswith("latency_seconds[")} == {
        f"latency_seconds{[('quantile', '0.5'), ('route', key)]}" for key in ("/pay", "/home")
    }


def test_exposition__a_metric_that_is_gone_is_shown_no_more(metric: Metric) -> None:
    shown = Exposition()
    shown.show(release(metric))
    shown.forget({"another"})
    assert samples(shown, "text/plain") == {}


def test_exposition__the_budget_of_a_day(metric: Metric) -> None:
    shown = Exposition()
    shown.show_budget(metric, Standing("2027-01-15", 3, 10))
    found = samples(shown, "text/plain")
    labels = [("measure", "epsilon"), ("metric", "latency_seconds")]
    assert (found[f"dpfrugal_budget_spent{labels}"], found[f"dpfrugal_budget_left{labels}"]) == (6.0, 14.0)
    assert found[f"dpfrugal_budget_windows_left{labels[1:]}"] == 7.0
    assert sizes(metric) == [("epsilon", 2.0, 20.0)]


def test_as_json__has_null_where_there_were_too_few_items(metric: Metric) -> None:
    found = as_json(release(metric))
    assert (found["metric"], found["window_start"], found["whole"]) == ("latency_seconds", "2027-01-15T12:00:00Z", True)
    assert [each["key"] for each in found["keys"]] == list(KEYS)
    assert found["keys"][1] == {"key": KEYS[1], "values": [1.0], "lower": [4.0], "upper": [7.0]}
    assert found["keys"][2] == {"key": KEYS[2], "values": [None], "lower": [None], "upper": [None]}
    assert [each["key"] for each in as_json(release(metric), lambda key: key == "/home")["keys"]] == ["/home"]


KINDS = ["application/openmetrics-text", "text/plain", "*/*"]
WORDS = [*KINDS, "version", "escaping", "q", "=", "1.0.0", "x", "ü", ";", ",", " "]


@given(st.lists(st.sampled_from(WORDS), max_size=9))
@example([KINDS[0], ";", "version", "=", "x"])
@example([KINDS[0], ";", "version", "=", "2.0.0"])
def test_scrape__whatever_a_client_accepts_it_gets_a_format(words: list[str]) -> None:
    kind = Exposition().scrape("".join(words))[1]
    assert kind.startswith(("text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0"))
