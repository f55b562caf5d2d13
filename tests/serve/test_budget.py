"""A metric's day: windows are covered until its total is spent, with a ledger block by block, and never beyond it."""

from dataclasses import replace
from pathlib import Path

import pytest

import dpfrugal as dpf
from dpfrugal.budget.ledger import Ledger
from dpfrugal.serve.budget import Budget, Standing, terms_of
from dpfrugal.serve.settings import Metric
from dpfrugal.serve.settings_reading import settings_of_text
from dpfrugal.serve.store import Store
from tests.support.serving import METRIC, settings_text

MIDNIGHT = 1_800_000_000.0 // 86_400 * 86_400


def metric(total: int) -> Metric:
    (found,) = settings_of_text(settings_text(METRIC.format(name="latency", window="1m", total=total))).metrics
    return found


def use(budget: Budget, store: Store, one: Metric, windows: int, first: float = MIDNIGHT + 60.0) -> int:
    """End so many windows; how many of them may be released."""
    covered = 0
    for ends in (first + one.window * place for place in range(windows)):
        budget.reserve(one, ends)
        if budget.may_release(one, ends):
            covered += 1
            store.spend(one.name, ends - one.window, ends, budget.standing(one, ends).day, terms_of(one))
    return covered


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "releases.db")


def test_budget__without_a_ledger_the_day_s_total_counts(store: Store) -> None:
    one = metric(total=20)  # at ε = 2 per window
    budget = Budget(store, None, 3600.0)
    assert use(budget, store, one, 30) == 10
    assert budget.standing(one, MIDNIGHT + 60.0) == Standing("2027-01-15", 10, 10)
    assert use(budget, store, one, 30, first=MIDNIGHT + 86_400.0 + 60.0) == 10  # the next day has a total of its own


@pytest.mark.parametrize("block", [60.0, 300.0, 3600.0])
def test_budget__the_ledger_is_charged_for_blocks_and_never_beyond_the_total(
    block: float, store: Store, tmp_path: Path
) -> None:
    one, path = metric(total=20), tmp_path / "budget.db"
    assert use(Budget(store, path, block), store, one, 30) == 10
    (dataset,) = Ledger(path).datasets()
    assert (dataset.name, dataset.total) == ("latency 2027-01-15", dpf.PureDP(epsilon=20.0))
    windows = [spend.asked["windows"] for spend in dataset.spends]
    assert sum(windows) == 10
    assert max(windows) <= block / one.window
    assert all(spend.guarantee == one.cost_of(spend.asked["windows"]) for spend in dataset.spends)


def test_budget__a_ledger_with_less_left_than_a_block_gives_what_it_has(store: Store, tmp_path: Path) -> None:
    one, path = metric(total=20), tmp_path / "budget.db"
    other = Ledger(path, total=one.total, adaptive=True, neighbours=one.neighbours)
    other.spend("latency 2027-01-15", dpf.PureDP(epsilon=15.0), by="another", neighbours=one.neighbours)
    assert use(Budget(store, path, 3600.0), store, one, 30) == 2  # 2·2 of the 5 that are left


def test_budget__a_block_ends_with_its_day(store: Store, tmp_path: Path) -> None:
    one, path = metric(total=2880), tmp_path / "budget.db"
    budget = Budget(store, path, 3600.0)
    last = MIDNIGHT + 86_400.0
    budget.reserve(one, last - one.window)
    assert store.granted(one.name, "2027-01-15", terms_of(one)) == 2
    assert replace(budget.standing(one, last), spent=0) == Standing("2027-01-15", 0, 1440)


def test_budget__windows_to_come_are_paid_for_ahead_within_their_day(store: Store, tmp_path: Path) -> None:
    one, path = metric(total=2880), tmp_path / "budget.db"
    budget, terms = Budget(store, path, 120.0), terms_of(one)
    budget.reserve(one, MIDNIGHT + 60.0)
    assert store.granted(one.name, "2027-01-15", terms) == 2
    budget.reserve(one, MIDNIGHT + 60.0, needed=2)
    assert store.granted(one.name, "2027-01-15", terms) == 2
    budget.reserve(one, MIDNIGHT + 60.0, needed=3)
    assert store.granted(one.name, "2027-01-15", terms) == 4
    budget.reserve(one, MIDNIGHT + 86_400.0 - 60.0, needed=5)  # two are left of the day
    assert store.granted(one.name, "2027-01-15", terms) == 4


def test_budget__windows_on_other_terms_take_their_share_of_the_day(store: Store) -> None:
    dear, cheap = metric(total=20), metric(total=200)
    budget = Budget(store, None, 3600.0)
    assert use(budget, store, dear, 5) == 5  # half of its ten
    assert budget.standing(cheap, MIDNIGHT + 60.0) == Standing("2027-01-15", 50, 100)
    assert use(budget, store, cheap, 80, first=MIDNIGHT + 6000.0) == 50
