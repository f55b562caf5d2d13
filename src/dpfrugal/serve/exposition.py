"""Releases as the field reads them: Prometheus text, OpenMetrics and JSON, made once when a window is released.

A scrape gets bytes that are there already. What does not change between releases (names, labels, their escaping) is
written by ``prometheus_client`` once per key; a release fills in its numbers.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain
from typing import Any, Final

import numpy as np

from dpfrugal.serve.budget import Standing
from dpfrugal.serve.clock import utc
from dpfrugal.serve.settings import Metric
from dpfrugal.serve.store import Stored

FORMATS: Final = ("text", "openmetrics")


class _Families:
    """Families as a registry gives them."""

    def __init__(self, *families: Any) -> None:
        self._families = families

    def collect(self) -> Iterable[Any]:
        return self._families


def _written(form: str, families: _Families) -> bytes:
    from prometheus_client import exposition
    from prometheus_client.openmetrics import exposition as openmetrics

    write: Any = exposition.generate_latest if form == "text" else openmetrics.generate_latest
    return bytes(write(families)).removesuffix(b"# EOF\n")


def _numbers(values: Iterable[float]) -> list[str]:
    from prometheus_client import utils

    write: Any = utils.floatToGoString
    return [str(write(value)) for value in values]


class Exposition:
    """What a scrape gets."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, bytes]] = {form: {} for form in FORMATS}
        self._budgets: dict[str, tuple[Metric, Standing]] = {}
        self._held: dict[tuple[str, str], _Lines] = {}
        self._state = object()  # another one after each change
        self._bodies: dict[str, tuple[object, bytes]] = {}  # by format, and of which state

    def show(self, release: Stored, items: int | None = None) -> None:
        """Show a release in place of the last one of its metric."""
        unknown = _unknown()[:, None, None]  # where there were too few items
        numbers = _numbers(np.where(np.isnan(release.numbers), unknown, release.numbers).ravel().tolist())
        for form in FORMATS:
            self._parts[form][release.metric] = self._release(form, release, numbers, items)
        self._state = object()

    def forget(self, metrics: set[str]) -> None:
        """Show these metrics only."""
        for parts in self._parts.values():
            for name in set(parts) - metrics:
                del parts[name]
        for name in set(self._budgets) - metrics:
            del self._budgets[name]
        for form, name in list(self._held):
            if name not in metrics:
                del self._held[form, name]
        self._state = object()

    def show_budget(self, metric: Metric, standing: Standing) -> None:
        """Show how much of a metric's day is spent."""
        self._budgets[metric.name] = (metric, standing)
        for form in FORMATS:
            self._parts[form]["\0budgets"] = _written(form, _budgets(self._budgets.values()))
        self._state = object()

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """The last releases in the format that a client asks for, with its content type."""
        from prometheus_client.exposition import choose_encoder
        from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

        content_type = choose_encoder("")[1]
        with suppress(TypeError, ValueError):  # a version that is none
            if choose_encoder(accept)[1].startswith("application/openmetrics-text"):
                content_type = CONTENT_TYPE_LATEST
        form = "openmetrics" if content_type is CONTENT_TYPE_LATEST else "text"
        state, end = self._state, b"# EOF\n" if form == "openmetrics" else b""
        made_of, body = self._bodies.get(form, (None, b""))
        if made_of is not state:  # one for all clients, also for those that read it slowly
            body = b"".join([*self._parts[form].values(), end])
            self._bodies[form] = state, body
        return body, content_type

    def prepare(self, metric: Metric) -> None:
        """Write what is known of a metric's lines before its first release."""
        if metric.shown_keys is not None:
            for form in FORMATS:
                self._lines(form, metric.name, about(metric), metric.shown_keys)

    def _release(self, form: str, release: Stored, numbers: list[str], items: int | None) -> bytes:
        written: list[str] = []
        lines, rest = self._lines(form, release.metric, release.about, release.keys), iter(numbers)
        for head, starts in lines.families:
            written.append(head)
            of_keys = chain.from_iterable(map(starts.__getitem__, release.keys))
            written += [f"{start}{next(rest)}\n" for start in of_keys]
        return "".join(written).encode() + _written(form, _times(release, items))

    def _lines(self, form: str, metric: str, about: dict[str, Any], keys: tuple[str, ...]) -> "_Lines":
        """The lines of these keys; only those that were not there before are written."""
        shape = about["base_name"], about["label"], tuple(about["quantiles"]), about["about"], about["promise"]
        held = self._held.get((form, metric))
        if held is None or held.shape != shape:
            held = self._held[form, metric] = _Lines(form, shape, about)
        held.write(keys)
        return held


class _Lines:
    """Of each family of a metric its head, and by key the beginning of each sample's line, up to its number."""

    def __init__(self, form: str, shape: tuple[Any, ...], about: dict[str, Any]) -> None:
        self.shape, self._form, self._about = shape, form, about
        self.families: list[tuple[str, dict[str, list[str]]]] = [
            (_written(form, _Families(family)).decode(), {}) for family in _families(about, ())
        ]

    def write(self, keys: tuple[str, ...]) -> None:
        """Write what is missing, and drop what is not shown any more."""
        known = self.families[0][1]
        if missing := [key for key in keys if key not in known]:
            width = len(self._about["quantiles"])
            for (head, starts), family in zip(self.families, _families(self._about, missing), strict=True):
                text = _written(self._form, _Families(family)).decode().removeprefix(head)
                ends = [line[: line.rindex(" ") + 1] for line in text.split("\n")[:-1]]
                starts.update((key, ends[at * width : (at + 1) * width]) for at, key in enumerate(missing))
        if len(known) > 2 * len(keys):
            shown = set(keys)
            for _, starts in self.families:
                for key in set(starts) - shown:
                    del starts[key]


def _unknown() -> Any:
    """No value, and an interval that says nothing."""
    return np.array([math.nan, -math.inf, math.inf])


def _labels(about: dict[str, Any], key: str, q: float) -> dict[str, str]:
    """The declared labels, and no others."""
    named = {about["label"]: key} if about["label"] else {}
    return named | {"quantile": quantile_label(q)}


def quantile_label(q: float) -> str:
    """A quantile as the value of its label."""
    return _numbers([q])[0]


def _families(about: dict[str, Any], keys: Iterable[str]) -> list[Any]:
    from prometheus_client.core import Metric as Family

    name = about["base_name"]
    said = f"{about['about']}: private quantiles of the last window, {about['promise']}"
    families = [
        Family(name, said, "summary"),
        Family(f"{name}_lower", f"Lower end of the {about['confidence']:.0%} interval of {name}", "gauge"),
        Family(f"{name}_upper", f"Upper end of the {about['confidence']:.0%} interval of {name}", "gauge"),
    ]
    for family in families:
        for key in keys:
            for q in about["quantiles"]:
                family.add_sample(family.name, _labels(about, key, q), 0.0)
    return families


def _times(release: Stored, items: int | None) -> _Families:
    from prometheus_client.core import GaugeMetricFamily

    name = release.about["base_name"]
    ended = GaugeMetricFamily(f"{name}_window_end_timestamp_seconds", f"End of the window of {name}", release.ends)
    made = GaugeMetricFamily(
        f"{name}_release_timestamp_seconds", f"Time of the release of {name}", float(int(release.released))
    )
    if items is None:
        return _Families(ended, made)
    said = f"Items of the window of {name}, public under its neighbours"
    return _Families(ended, made, GaugeMetricFamily(f"{name}_window_count", said, items))


def _budgets(all_of_them: Iterable[tuple[Metric, Standing]]) -> _Families:
    from prometheus_client.core import GaugeMetricFamily

    labels = ["metric", "measure"]
    spent = GaugeMetricFamily("dpfrugal_budget_spent", "What the windows of this UTC day have cost", labels=labels)
    left = GaugeMetricFamily("dpfrugal_budget_left", "What is left of the total of this UTC day", labels=labels)
    windows = GaugeMetricFamily("dpfrugal_budget_windows_left", "Windows that the rest covers", labels=["metric"])
    for metric, standing in all_of_them:
        for measure, each, total in sizes(metric):
            used = min(total, standing.spent * each)
            spent.add_metric([metric.base_name, measure], used)
            left.add_metric([metric.base_name, measure], max(0.0, total - used))
        windows.add_metric([metric.base_name], max(0, standing.most - standing.spent))
    return _Families(spent, left, windows)


def sizes(metric: Metric) -> list[tuple[str, float, float]]:
    """What a window costs and what a day may cost, in each measure of the total: ε, δ or ρ."""
    cost, total = metric.cost, metric.total
    names = [name for name in ("epsilon", "delta", "rho") if hasattr(total, name)]
    return [(name, getattr(cost, name), getattr(total, name)) for name in names]


def as_json(release: Stored, keys: Callable[[str], bool] | None = None) -> dict[str, Any]:
    """A release for JSON, of some keys or all; null where there were too few items to tell."""
    about = release.about
    chosen = [at for at, key in enumerate(release.keys) if keys is None or keys(key)]
    numbers = release.numbers[:, chosen]
    plain: Any = numbers.astype(object)
    plain[~np.isfinite(numbers)] = None
    values, lower, upper = plain.tolist()
    return {
        "id": release.id,
        "metric": about["base_name"],
        "window_start": utc(release.ends - about["window"]),
        "window_end": utc(release.ends),
        "whole": release.began <= release.ends - about["window"] + 1.0,
        "released": utc(release.released),
        "guarantee": about["promise"],
        "confidence": about["confidence"],
        "label": about["label"] or None,
        "quantiles": about["quantiles"],
        "keys": [
            {"key": release.keys[at], "values": values[place], "lower": lower[place], "upper": upper[place]}
            for place, at in enumerate(chosen)
        ],
    }


def about(metric: Metric) -> dict[str, Any]:
    """What is public about a metric, for its releases."""
    unit = "item" if metric.person is None else f"person of ≤ {metric.person.max_items} items a window"
    discovery = None if metric.keys is None else metric.keys.discovery
    more = "" if discovery is None else f", and {discovery} for which keys are shown"
    return {
        "base_name": metric.base_name,
        "about": metric.about,
        "label": "" if metric.keys is None else metric.label,
        "quantiles": list(metric.quantiles),
        "window": metric.window,
        "confidence": 0.95,
        "promise": f"{metric.guarantee} per window and {unit}{more}",
    }
