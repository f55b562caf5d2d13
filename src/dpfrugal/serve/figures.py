"""The operator's figures: what came in, what was refused and why, how long requests took.

They are raw: they are shown on the operator's port only.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.serve.ingest.items import REASONS
from dpfrugal.serve.settings import Metric

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Figures:
    """Counters since the start of the server, as a collector of ``prometheus_client``."""

    def __init__(self) -> None:
        self.items: Counter[str] = Counter()  # by metric
        self.refused: Counter[tuple[str, str]] = Counter()  # by metric or protocol, and reason
        self.rows: dict[str, tuple[Metric, list[str], NDArray[np.int64]]] = {}  # by metric: of each public key
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.times: dict[str, list[float]] = {}  # by path: counts of SECONDS and beyond, then their sum
        self.windows: Counter[tuple[str, str]] = Counter()  # by metric and what became of them
        self.waiting: dict[str, int] = {}  # by metric: items that wait to be taken in
        self.releasing = 0  # windows that wait for their release
        self.release_seconds: dict[str, float] = {}

    def refuse(self, whose: str, reasons: Mapping[str, int]) -> None:
        """Count items that do not count."""
        for reason, number in reasons.items():
            if number:
                self.refused[whose, reason] += number

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request to a known path."""
        self.requests[path, status] += 1
        counts = self.times.setdefault(path, [0.0] * (len(SECONDS) + 2))
        counts[next((place for place, most in enumerate(SECONDS) if seconds <= most), len(SECONDS))] += 1
        counts[-1] += seconds

    def count_rows(self, metric: Metric, keys: list[str], codes: NDArray[np.int64]) -> None:
        """Count the rows of each public key."""
        held = self.rows.get(metric.name)
        counts = held[2] if held is not None and held[1] == keys else np.zeros(len(keys), dtype=np.int64)
        counts += np.bincount(codes[(codes >= 0) & (codes < len(keys))], minlength=len(keys))
        self.rows[metric.name] = (metric, keys, counts)

    def collect(self) -> Any:
        """The families of figures."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        def counter(name: str, about: str, labels: list[str], counts: Mapping[Any, float]) -> Any:
            family = CounterMetricFamily(f"dpfrugal_{name}", about, labels=labels)
            for key, number in sorted(counts.items()):
                family.add_metric([str(part) for part in (key if isinstance(key, tuple) else (key,))], number)
            return family

        yield counter("items", "Items taken in", ["metric"], self.items)
        yield counter("refused", f"Items that do not count: {', '.join(REASONS)}", ["metric", "reason"], self.refused)
        yield counter("windows", "Windows, by what became of them", ["metric", "outcome"], self.windows)
        yield counter("requests", "Requests", ["path", "status"], self.requests)
        rows = CounterMetricFamily("dpfrugal_rows", "Rows per public key", labels=["metric", "key"])
        for metric, keys, counts in self.rows.values():
            for key, number in zip(keys, counts.tolist(), strict=True):
                rows.add_metric([metric.base_name, key], number)
        yield rows
        times = HistogramMetricFamily("dpfrugal_request_seconds", "Time to answer", labels=["path"])
        for path, found in self.times.items():
            cumulated = np.cumsum(found[:-1]).tolist()
            buckets = [*zip(map(str, SECONDS), cumulated, strict=False), ("+Inf", cumulated[-1])]
            times.add_metric([path], buckets, found[-1])
        yield times
        gauges: list[tuple[str, str, Mapping[str, float]]] = [
            ("waiting_items", "Items that wait to be taken into their window", self.waiting),
            (
                "release_duration_seconds",
                "From the end of a window until its release is shown, the last one",
                self.release_seconds,
            ),
        ]
        for name, about, numbers in gauges:
            gauge = GaugeMetricFamily(f"dpfrugal_{name}", about, labels=["metric"])
            for whose, number in sorted(numbers.items()):
                gauge.add_metric([whose], number)
            yield gauge
        yield GaugeMetricFamily("dpfrugal_waiting_windows", "Windows that wait for their release", self.releasing)
