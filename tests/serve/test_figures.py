"""The operator's figures, as the format of Prometheus has them."""

from dataclasses import replace

import numpy as np
from prometheus_client import generate_latest

from dpfrugal.serve.figures import Figures
from dpfrugal.serve.settings_reading import EXAMPLE, settings_of_text

(METRIC,) = settings_of_text(EXAMPLE).metrics


def lines(figures: Figures) -> set[str]:
    return set(generate_latest(figures).decode().splitlines())


def test_figures__counters_add_up_and_zero_is_not_shown() -> None:
    figures = Figures()
    for _ in range(2):
        figures.refuse("latency", {"no value": 3, "far from now": 0})
    assert 'dpfrugal_refused_total{metric="latency",reason="no value"} 6.0' in lines(figures)
    assert not any("far from now" in line for line in lines(figures) if not line.startswith("#"))


def test_figures__buckets_of_times_are_cumulative() -> None:
    figures = Figures()
    for seconds in (0.001, 0.002, 0.2, 7.0):
        figures.request("/metrics", 200, seconds)
    found = lines(figures)
    for bound, count in (("0.001", 1), ("0.005", 2), ("0.1", 2), ("0.25", 3), ("5.0", 3), ("+Inf", 4)):
        assert f'dpfrugal_request_seconds_bucket{{le="{bound}",path="/metrics"}} {count}.0' in found
    assert 'dpfrugal_request_seconds_count{path="/metrics"} 4.0' in found
    assert 'dpfrugal_request_seconds_sum{path="/metrics"} 7.203' in found
    assert 'dpfrugal_requests_total{path="/metrics",status="200"} 4.0' in found


def test_figures__rows_are_counted_by_public_key_and_those_of_others_are_left_out() -> None:
    figures = Figures()
    figures.count_rows(METRIC, ["/home", "/pay"], np.array([0, 1, 1, -1, 2]))
    figures.count_rows(METRIC, ["/home", "/pay"], np.array([0]))
    name = METRIC.base_name
    assert {f'dpfrugal_rows_total{{key="/{key}",metric="{name}"}} 2.0' for key in ("home", "pay")} <= lines(figures)
    figures.count_rows(replace(METRIC, unit="milliseconds"), ["/home"], np.array([0]))  # other keys: counted anew
    assert f'dpfrugal_rows_total{{key="/home",metric="{name}"}} 1.0' in lines(figures)
