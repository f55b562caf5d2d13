"""A Grafana dashboard for the metrics of a settings file, for a Prometheus data source that scrapes the server."""

import json
from typing import Any, Final

from dpfrugal.serve.exposition import quantile_label
from dpfrugal.serve.settings import Metric, Settings

UNITS: Final = {"seconds": "s", "bytes": "bytes", "ratio": "percentunit", "": "short"}
SOURCE: Final = {"type": "prometheus", "uid": "${source}"}


def dashboard(settings: Settings) -> str:
    """The dashboard as JSON: per metric its percentiles with their intervals, and what is left of the budget."""
    panels: list[dict[str, Any]] = []
    for place, metric in enumerate(settings.metrics):
        top = place * 18
        panels.append(_percentiles(metric, len(panels) + 1, top))
        panels.append(_interval(metric, len(panels) + 1, top + 9))
        panels.append(_budget(metric, len(panels) + 1, top + 9))
    made = {
        "title": "dpfrugal: private percentiles",
        "uid": "dpfrugal",
        "schemaVersion": 39,
        "tags": ["dpfrugal"],
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }
    return json.dumps(made, indent=2)


def _panel(kind: str, title: str, number: int, place: tuple[int, int, int, int], unit: str) -> dict[str, Any]:
    left, top, width, height = place
    return {
        "id": number,
        "type": kind,
        "title": title,
        "datasource": SOURCE,
        "gridPos": {"x": left, "y": top, "w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
    }


def _query(expression: str, legend: str, letter: str) -> dict[str, Any]:
    return {"refId": letter, "expr": expression, "legendFormat": legend, "datasource": SOURCE}


def _percentiles(metric: Metric, number: int, top: int) -> dict[str, Any]:
    panel = _panel("timeseries", metric.about, number, (0, top, 24, 9), UNITS[metric.base_unit])
    key = "" if metric.keys is None else f"{{{{{metric.label}}}}} "
    return panel | {"targets": [_query(f"{metric.base_name}", f"{key}q={{{{quantile}}}}", "A")]}


def _interval(metric: Metric, number: int, top: int) -> dict[str, Any]:
    label = quantile_label(metric.quantiles[-1])
    q = f'{{quantile="{label}"}}'
    title = f"{metric.about}: 95% interval of q={label}"
    panel = _panel("timeseries", title, number, (0, top, 16, 9), UNITS[metric.base_unit])
    key = "" if metric.keys is None else f"{{{{{metric.label}}}}} "
    names = (("", "value", "A"), ("_lower", "lower", "B"), ("_upper", "upper", "C"))
    return panel | {"targets": [_query(f"{metric.base_name}{end}{q}", key + said, at) for end, said, at in names]}


def _budget(metric: Metric, number: int, top: int) -> dict[str, Any]:
    panel = _panel("gauge", f"{metric.about}: share of today's budget spent", number, (16, top, 8, 9), "percentunit")
    whose = f'{{metric="{metric.base_name}"}}'
    spent, left = f"dpfrugal_budget_spent{whose}", f"dpfrugal_budget_left{whose}"
    panel["fieldConfig"]["defaults"] |= {"min": 0, "max": 1}
    return panel | {"targets": [_query(f"{spent} / ({spent} + {left})", "{{measure}}", "A")]}
