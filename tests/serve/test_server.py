"""The server on a clock that the test sets: windows end on it, each is released once."""

import sqlite3
import warnings
from pathlib import Path

import pytest

from dpfrugal.budget.ledger import Ledger
from dpfrugal.serve.open_window import OpenWindow, Quantiles
from tests.support.serving import METRIC, MINUTE, NOON, Clock, Served, served, settings_text

ROWS = [{"route": route, "ms": float(ms)} for route in ("/home", "/pay") for ms in range(1, 400)]


def released(one: Served) -> list[float]:
    return [release.ends for release in one.server.store.releases().releases]


def test_server__a_window_is_released_at_its_end_in_base_units(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.send(*ROWS)
        one.to(NOON + 59.9)
        assert "latency" not in one.scrape.replace('metric="latency_seconds"', "")
        one.to(NOON + 60)
        (value,) = [
            line.split()[1]
            for line in one.scrape.splitlines()
            if line.startswith('latency_seconds{quantile="0.5",route="/pay"')
        ]
        assert 0.15 < float(value) < 0.25
        assert released(one) == [NOON + 60]


def test_server__scrapes_show_the_last_release_and_compute_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.send(*ROWS)
        one.to(NOON + 60)
        client, before = one.client(), one.scrape
        one.send(*ROWS)
        for path in ("/metrics", "/", "/api/v1/releases", "/api/v1/metrics", "/-/ready"):
            assert client.get(path).status_code == 200
        assert one.scrape == before
        assert client.get("/metrics").text == before
        assert released(one) == [NOON + 60]


def test_server__keys_without_rows_are_shown_like_others(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.to(NOON + 60)
        none = {line.split(" ")[0] for line in one.scrape.splitlines()}
        one.send(*ROWS)
        one.to(NOON + 120)
        assert {line.split(" ")[0] for line in one.scrape.splitlines()} == none


def test_server__undeclared_keys_and_labels_never_appear(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.send(*[{"route": "/secret", "ms": 5.0, "user": "ann", "quantile": "x"}] * 500)
        one.to(NOON + 60)
        client = one.client()
        shown = one.scrape + client.get("/api/v1/releases").text + client.get("/api/v1/metrics").text
        shown += "".join(one.said)
        for word in ("secret", "ann", "_sum", "_count", "_min", "_max", "#{", "# {"):
            assert word not in shown
        assert one.server.figures.refused["latency_seconds", "undeclared key"] == 500


def test_server__the_number_of_items_is_shown_only_where_it_is_public(tmp_path: Path) -> None:
    metric = METRIC.format(name="latency", window="1m", total=2880).replace(
        "    keys: {attribute: route, declared: [/home, /pay]}\n", ""
    )
    with served(tmp_path, settings_text(metric + "    neighbours: replace\n")) as one:
        one.send(*ROWS, {"ms": "text"})
        one.to(NOON + 60)
        assert f"latency_seconds_window_count {len(ROWS) + 1}.0" in one.scrape
    (tmp_path / "releases.db").unlink()
    with served(tmp_path, settings_text(metric)) as one:
        one.send(*ROWS)
        one.to(NOON + 60)
        assert "count" not in one.scrape


def test_server__a_window_that_was_released_is_never_again_whatever_the_clock_does(tmp_path: Path) -> None:
    clock = Clock()
    with served(tmp_path, clock=clock) as one:
        one.send(*ROWS)
        one.to(NOON + 60)
        one.send(*ROWS)
        one.to(NOON + 3700)  # an hour forth: the open window ends late, those between were never open
        assert released(one) == [NOON + 60, NOON + 120]
        one.to(NOON + 3720)
        one.send(*ROWS)
        one.to(NOON + 30)  # and back: what was held is dropped
        assert one.server.figures.windows["latency_seconds", "dropped"] == 1
        assert "set back" in one.server.readiness()[1][0]
        for minute in range(1, 5):
            one.send(*ROWS)
            one.to(NOON + 60 * minute)
        assert released(one) == [NOON + 60, NOON + 120, NOON + 3720, NOON + 180, NOON + 240]
    clock.now = NOON + 130
    with served(tmp_path, clock=clock) as one:  # the same after a restart
        one.to(NOON + 180)
        one.to(NOON + 240)
        one.to(NOON + 300)
        assert released(one)[-1] == NOON + 300
        assert len(released(one)) == 6


def test_server__a_small_correction_of_the_clock_ends_no_window_twice(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.to(NOON + 60.1)
        one.to(NOON + 59.8)
        one.to(NOON + 60.1)
        one.to(NOON + 120)
        assert released(one) == [NOON + 60, NOON + 120]


def test_budget__a_day_covers_so_many_windows_and_the_next_one_as_many(tmp_path: Path) -> None:
    text = settings_text(METRIC.format(name="latency", window="1m", total=5), more="ledger: budget.db\n")
    with served(tmp_path, text) as one:
        for minute in range(6):
            one.send(*ROWS)
            one.reserve()
            one.to(NOON + 60 * minute)
        assert len(released(one)) == 2
        assert "is spent" in " ".join(one.server.readiness()[1])
        assert one.server.readiness()[0]
        assert 'dpfrugal_budget_left{measure="epsilon",metric="latency_seconds"} 1.0' in one.scrape
        one.to(NOON + 86_400)
        one.reserve()
        one.to(NOON + 86_460)
        assert len(released(one)) == 3
    (first, second) = Ledger(tmp_path / "budget.db").datasets()
    assert first.used == 4.0
    assert second.used <= 5.0
    assert str(first.total) == "ε=5"


@pytest.mark.parametrize(("first", "then", "windows"), [(2, 1, 4), (1, 2, 3)])
@pytest.mark.parametrize("ledger", ["", "ledger: budget.db\n"])
def test_budget__windows_at_another_cost_take_their_share_of_the_day(
    tmp_path: Path, ledger: str, first: int, then: int, windows: int
) -> None:
    metric, clock = METRIC.format(name="latency", window="1m", total=8), Clock()
    for epsilon in (first, then):
        text = settings_text(metric.replace("{epsilon: 2}", f"{{epsilon: {epsilon}}}"), more=f"{ledger}reserve: 1m\n")
        with served(tmp_path, text, clock) as one:
            for _ in range(2 if epsilon == first else 9):
                one.reserve()
                one.to(clock.now + 60)
            assert len(released(one)) == 2 + (windows if epsilon == then else 0)
            left = one.server.overview()["metrics"][0]["budget"]
    assert left["windows_spent"] == left["windows"] == 8 // then
    if ledger:
        assert Ledger(tmp_path / "budget.db").datasets()[0].used <= 8


def test_budget__nothing_is_released_before_the_ledger_was_charged(tmp_path: Path) -> None:
    text = settings_text(more="ledger: budget.db\n")
    with served(tmp_path, text) as one:
        one.reserve()
    locked = sqlite3.connect(tmp_path / "budget.db", isolation_level=None)
    with served(tmp_path, text, Clock(NOON + 86_400)) as one:
        locked.execute("BEGIN EXCLUSIVE")
        one.send(*ROWS)
        one.to(NOON + 86_460)
        ready, states = one.server.readiness()
        assert not ready
        assert "ledger" in states[0]
        assert released(one) == []
        locked.execute("COMMIT")
        one.reserve()
        one.send(*ROWS)
        one.to(NOON + 86_520)
        assert released(one) == [NOON + 86_520]
        assert one.server.readiness() == (True, [])
    locked.close()


def test_server__a_full_disk_stops_releases_and_not_ingest(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.to(NOON + 60)
        run = one.server.store._connection.execute
        run(
            f"PRAGMA max_page_count = {run('PRAGMA page_count').fetchone()[0]}"
        )  # SQLite then says what a full disk says
        minute = 1
        while one.server.readiness()[0] and minute < 200:
            minute += 1
            one.send(*ROWS)
            one.to(NOON + 60 * minute)
        assert one.server.readiness() == (
            False,
            ["the store of releases cannot be used: the disk is full; windows are not released"],
        )
        before = released(one)
        one.send(*ROWS)
        run("PRAGMA max_page_count = 1000000")
        one.to(NOON + 60 * (minute + 1))
        assert released(one) == [*before, NOON + 60 * (minute + 1)]
        assert one.server.readiness() == (True, [])
        assert 'route="/pay"} NaN' not in one.scrape


def test_server__a_crash_between_spend_and_release_leaves_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as one:
        one.send(*ROWS)
        with monkeypatch.context() as patch:
            patch.setattr(one.server.store, "publish", lambda *_: (_ for _ in ()).throw(OSError("full")))
            one.to(NOON + 60)
        assert released(one) == []
        assert list(one.server.store.spent_on("latency", "2027-01-15").values()) == [1]
    with served(tmp_path, clock=Clock(NOON + 30)) as one:
        one.send(*ROWS)
        one.to(NOON + 60)
        assert released(one) == []
        one.to(NOON + 120)
        assert released(one) == [NOON + 120]


def test_server__stopping_releases_nothing_early(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.send(*ROWS)
        one.to(NOON + 30)
    with served(tmp_path) as one:
        assert released(one) == []
        one.to(NOON + 60)
        assert "NaN" in one.scrape  # the items went with the process


def test_reload__metrics_that_are_the_same_keep_their_windows(tmp_path: Path) -> None:
    from dpfrugal.serve.settings_reading import settings_of_text

    two = settings_text(
        METRIC.format(name="latency", window="1m", total=2880), METRIC.format(name="more", window="1m", total=2880)
    )
    with served(tmp_path) as one:
        one.send(*ROWS)
        one.server.refuse_reload("serve.yaml, line 3: wrong.")
        assert one.server.readiness() == (
            True,
            ["the settings file was refused at the last reload; those before are in force"],
        )
        one.server.reload(settings_of_text(two, tmp_path))
        assert one.server.readiness() == (True, [])
        one.to(NOON + MINUTE)
        assert 'latency_seconds{quantile="0.5",route="/pay"} NaN' not in one.scrape
        assert 'more_seconds{quantile="0.5",route="/pay"} NaN' in one.scrape
        one.server.reload(settings_of_text(settings_text(), tmp_path))
        assert "more_seconds" not in one.scrape


def test_person__at_most_so_many_items_of_a_person_count(tmp_path: Path) -> None:
    metric = METRIC.format(name="latency", window="1m", total=2880) + "    person: {attribute: who, max_items: 1}\n"
    with served(tmp_path, settings_text(metric)) as one:
        one.send(*[{"route": "/pay", "ms": 1.0, "who": f"p{i}"} for i in range(300)])
        one.send(*[{"route": "/pay", "ms": 9_000.0, "who": "flood"}] * 5_000)
        one.send({"route": "/pay", "ms": 1.0})
        one.to(NOON + 60)
        line = next(
            line for line in one.scrape.splitlines() if line.startswith('latency_seconds{quantile="0.5",route="/pay"')
        )
        assert float(line.split()[1]) < 0.1
        assert one.server.figures.refused["latency_seconds", "no person"] == 1


def test_discovery__only_keys_of_many_items_are_shown_in_the_order_of_keys(tmp_path: Path) -> None:
    metric = METRIC.format(name="latency", window="1m", total=1).replace(
        "declared: [/home, /pay]", "discover: {epsilon: 2, delta: 1.0e-6}"
    )
    metric = metric.replace("{epsilon: 1}", "{epsilon: 400, delta: 1.0e-3}")
    with served(tmp_path, settings_text(metric)) as one:
        one.send(
            *[{"route": key, "ms": 5.0} for key in ("/b", "/a") for _ in range(500)], {"route": "/rare", "ms": 5.0}
        )
        one.to(NOON + 60)
        assert [release.keys for release in one.server.store.releases().releases] == [("/a", "/b")]


def test_discovery__a_flood_of_other_keys_hides_no_key(tmp_path: Path) -> None:
    metric = METRIC.format(name="latency", window="1m", total=1).replace(
        "declared: [/home, /pay]",
        "discover: {epsilon: 2, delta: 1.0e-12}",  # for each of 200,000 keys with a row
    )
    metric = metric.replace("{epsilon: 1}", "{epsilon: 400, delta: 1.0e-3}")
    with served(tmp_path, settings_text(metric)) as one:
        one.send(*[{"route": f"/{n}", "ms": 5.0} for n in range(200_000)])
        one.send(*[{"route": "/a", "ms": 5.0}] * 500, {"ms": 5.0})
        one.to(NOON + 60)
        assert [release.keys for release in one.server.store.releases().releases] == [("/a",)]
        assert one.server.figures.refused["latency_seconds", "undeclared key"] == 1


def test_server__an_item_after_the_end_of_a_window_is_none_of_it_also_where_the_cut_is_late(tmp_path: Path) -> None:
    with served(tmp_path) as one:
        one.clock.now = NOON + 60.2  # the loop was busy: nothing has cut the window yet
        one.send(*ROWS)
        one.to(NOON + 60.3)
        assert 'latency_seconds{quantile="0.5",route="/pay"} NaN' in one.scrape
        one.to(NOON + 120)
        assert 'latency_seconds{quantile="0.5",route="/pay"} NaN' not in one.scrape
        assert released(one) == [NOON + 60, NOON + 120]


def test_server__the_time_of_release_says_nothing_of_how_long_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as one:
        release = OpenWindow.release

        def slow(window: OpenWindow) -> Quantiles:
            one.clock.now += 7
            return release(window)

        monkeypatch.setattr(OpenWindow, "release", slow)
        one.to(NOON + 60)
        (found,) = one.server.store.releases().releases
        assert found.released == NOON + 60
        shown = one.client().get("/api/v1/releases").json()["releases"]
        assert shown[0]["released"] == shown[0]["window_end"] == "2027-01-15T12:01:00Z"


def test_server__a_value_beyond_all_numbers_in_its_base_unit_warns_nobody(tmp_path: Path) -> None:
    metric = METRIC.format(name="size", window="1m", total=2880).replace("milliseconds", "kilobytes")
    with served(tmp_path, settings_text(metric.replace("    high: 100000\n", ""))) as one:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one.send(*[{"route": "/pay", "ms": 1.6e308}] * 600)
            one.to(NOON + 60)
        assert 'size_bytes{quantile="0.5",route="/pay"} +Inf' in one.scrape
