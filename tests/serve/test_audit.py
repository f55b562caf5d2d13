"""The audit over HTTP: a client sends neighbouring items, an attacker reads all that the public port shows.

A server has many metrics that are alike; one window of each is one run. The event that tells the two streams apart best
is learnt on half of the runs and counted on the other half. A server that keeps its promise fails with a probability of
at most 10⁻⁶ (Clopper and Pearson, ``dpfrugal.audit``); three servers with a planted leak must fail.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.audit import confidence_bounds
from dpfrugal.audit.events import best_event
from dpfrugal.privacy.guarantees import PureDP
from dpfrugal.serve import exposition, open_window
from tests.support.serving import METRIC, Served, served, settings_text

PROMISED = PureDP(epsilon=1.0)
METRICS, WINDOWS, DOUBT = 20, 6, 5e-7
Row = dict[str, Any]
# The items that all metrics get, and one that is there or not: of a declared key, and of an undeclared one.
BASE: list[Row] = [{"route": "/home", "ms": 5}, {"route": "/home", "ms": 15}]
DECLARED: Row = {"route": "/pay", "ms": 15}
UNDECLARED: Row = {"route": "/secret", "ms": 15}


def text() -> str:
    metric = METRIC.replace("{{json: ms}}", "{{json: ms, where: {{run: {name}}}}}").replace("100000", "16")
    metric = metric.replace("epsilon: 2}", "epsilon: 1}").replace("milliseconds", "none")
    return settings_text(*(metric.format(name=f"run{n}", window="1m", total=1440) for n in range(METRICS)))


def transcripts(one: Served, rows: list[Row]) -> NDArray[np.float64]:
    """What an attacker sees of each run: its lines of the scrape, twice within the window and after its end."""
    client, runs = one.client(), []
    body = "\n".join(json.dumps(row | {"run": f"run{n}"}) for n in range(METRICS) for row in rows).encode()
    for _ in range(WINDOWS):
        answer = client.post("/v1/items", content=body, headers={"content-type": "application/x-ndjson"})
        assert answer.status_code == 200
        during = [client.get("/metrics").text for _ in range(2)]
        one.to((one.clock.now // 60 + 1) * 60)
        after = client.get("/metrics").text
        releases = client.get(f"/api/v1/releases?after={_last(one)}&limit=1000").json()["releases"]
        assert len(releases) == METRICS
        runs += [_numbers(f"run{n}", during, after, releases[n]) for n in range(METRICS)]
    return np.array(runs)


def _last(one: Served) -> int:
    return one.server.store.releases(limit=10_000).releases[-METRICS].id - 1


def _numbers(name: str, during: list[str], after: str, release: Any) -> list[list[float]]:
    def lines(scrape: str) -> list[str]:
        return [line for line in scrape.splitlines() if line.startswith((f"{name}{{", f"{name}_undeclared"))]

    shown = [float(line.rpartition(" ")[2]) for line in lines(after)]
    asked = lines(during[1])
    changed = float(asked != lines(during[0]))
    last = float(asked[0].rpartition(" ")[2]) if asked and "_undeclared" in asked[0] else -1.0
    values = [-1.0 if np.isnan(value) else value for value in (shown + [-1.0] * 3)[:3]]
    return [[len(lines(after)), len(release["keys"]), changed, last, *values]]


def bound(one: Served, rows: tuple[list[Row], list[Row]]) -> float:
    """With confidence 1 − 10⁻⁶ the server's ε is at least this."""
    runs = [transcripts(one, side) for side in rows]
    half = METRICS * WINDOWS // 2
    event = best_event(runs[0][:half], runs[1][:half], PROMISED, half, chosen=True)
    swapped = best_event(runs[1][:half], runs[0][:half], PROMISED, half, chosen=True)
    if swapped.expected > event.expected:
        runs, event = runs[::-1], swapped
    hits = [int((event.score.of(run[half:]) >= event.threshold).sum()) for run in runs]
    p, q = confidence_bounds.at_least(hits[0], half, DOUBT), confidence_bounds.at_most(hits[1], half, DOUBT)
    return float(PROMISED.least_size(np.array(p), np.array(q)))


def test_audit__the_server_keeps_its_promise(tmp_path: Path) -> None:
    with served(tmp_path, text()) as one:
        assert bound(one, (BASE, [*BASE, DECLARED])) <= PROMISED.epsilon


def only_keys_with_rows(patch: pytest.MonkeyPatch) -> None:
    release = open_window.OpenWindow.release

    def leaky(window: Any) -> Any:
        held = window._window._held.arrays()["groups"]  # the rows that nobody should see
        found = release(window)
        there = np.isin(np.arange(len(found.keys)), held)
        keys = tuple(key for key, has in zip(found.keys, there, strict=True) if has)
        return open_window.Quantiles(keys, found.values[there], found.lower[there], found.upper[there], found.items)

    patch.setattr(open_window.OpenWindow, "release", leaky)


def count_of_undeclared(patch: pytest.MonkeyPatch) -> None:
    take, scrape = open_window.OpenWindow._codes_of, exposition.Exposition.scrape
    seen: dict[str, int] = {}

    def counting(window: Any, keys: Any) -> Any:
        codes = take(window, keys)
        seen[window.metric.name] = int((codes >= len(window._shown)).sum())
        return codes

    def leaky(shown: Any, accept: str) -> tuple[bytes, str]:
        body, kind = scrape(shown, accept)
        return body + b"".join(b"%s_undeclared %d\n" % (name.encode(), n) for name, n in seen.items()), kind

    patch.setattr(open_window.OpenWindow, "_codes_of", counting)
    patch.setattr(exposition.Exposition, "scrape", leaky)


def release_on_request(patch: pytest.MonkeyPatch, one: Served) -> None:
    """A scrape shows how many rows the open window has."""
    scrape = one.server.exposition.scrape

    def leaky(accept: str) -> tuple[bytes, str]:
        body, kind = scrape(accept)
        more = b""
        for metric in one.server._metrics:
            metric.open.close(one.server.figures)
            groups = metric.open._window._held.arrays()["groups"]
            more += b"%s_undeclared %d\n" % (metric.metric.name.encode(), groups.size)
        return more + body, kind

    patch.setattr(one.server.exposition, "scrape", leaky)


LEAKS: dict[str, tuple[Callable[..., None], Row]] = {
    "a key that appears only when it has rows": (only_keys_with_rows, DECLARED),
    "a count of an undeclared key": (count_of_undeclared, UNDECLARED),
    "a release on request": (release_on_request, DECLARED),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_audit__a_planted_leak_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: str) -> None:
    plant, item = LEAKS[leak]
    if plant is not release_on_request:
        plant(monkeypatch)
    with served(tmp_path, text()) as one:
        if plant is release_on_request:
            plant(monkeypatch, one)
        assert bound(one, (BASE, [*BASE, item])) > PROMISED.epsilon
