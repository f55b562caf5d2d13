"""The dashboard: a panel for each question about each metric, and queries for names that the server exposes."""

import json
import re
from pathlib import Path

from dpfrugal.serve.grafana import dashboard
from dpfrugal.serve.settings_reading import EXAMPLE, settings_of_text
from tests.support.serving import METRIC, MINUTE, NOON, served, settings_text


def panels(text: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(dashboard(settings_of_text(text)))["panels"]
    return found


def test_dashboard__has_three_panels_for_each_metric_none_over_another() -> None:
    text = settings_text(*(METRIC.format(name=name, window="1m", total=2880) for name in ("latency", "size")))
    found = panels(text)
    assert len(found) == 6
    assert [panel["id"] for panel in found] == [1, 2, 3, 4, 5, 6]
    taken: set[tuple[int, int]] = set()
    for panel in found:
        at = panel["gridPos"]
        assert isinstance(at, dict)
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not taken & cells
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_dashboard__asks_for_the_base_name_with_its_ends_and_for_the_budget() -> None:
    percentiles, interval, budget = panels(EXAMPLE)
    name = "request_duration_seconds"
    queries = re.findall(r'"expr": "(\w+)', json.dumps([percentiles, interval]))
    assert queries == [name, name, f"{name}_lower", f"{name}_upper"]
    assert f'dpfrugal_budget_left{{metric=\\"{name}\\"}}' in json.dumps(budget)
    assert percentiles["fieldConfig"] == {"defaults": {"unit": "s"}, "overrides": []}


def test_dashboard__a_quantile_is_named_as_in_the_scrape(tmp_path: Path) -> None:
    text = settings_text(METRIC.replace("[0.5]", "[0.12345678]").format(name="latency", window="1m", total=2880))
    with served(tmp_path, text) as one:
        one.to(NOON + MINUTE)
        (label,) = set(re.findall(r'quantile="([^"]*)"', one.scrape))
    assert label in json.dumps(panels(text)[1])
