"""Micro-batches: whatever dies when, each window is drawn from once, and a replay shows what was shown.

Windows, answers and records are of this process: what Spark does with them is tested in ``test_stream.py``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.budget.spending import Account
from dpfrugal.engines.spark.stream_batches import Batches, Order, goes_on, state_of
from dpfrugal.engines.spark.stream_windows import Ended, Span
from dpfrugal.errors import PrivacyError

ONE = dpf.PureDP(epsilon=1.0)


class Batch(NamedTuple):
    """A micro-batch: for each window that has ended its start and how many rows it has."""

    windows: tuple[tuple[int, int], ...]
    sparkSession: None = None  # noqa: N815 - Spark's name


class Crash(Exception):  # noqa: N818 - the driver dies
    pass


class World:
    """What outlives a driver: the ledger, the records, and what was shown; ``fail`` names where the next one dies."""

    def __init__(self, ledger: dpf.Ledger | None = None, hidden: bool = False) -> None:
        self.ledger, self.hidden = ledger, hidden
        self.records: dict[int, dict[str, Any]] = {}
        self.shown: list[tuple[int, int, Any]] = []  # batch, start of the window, what was drawn
        self.fail = ""
        self.drafts = 0

    def at(self, where: str) -> None:
        if self.fail == where:
            self.fail = ""
            raise Crash

    # Records
    def write(self, batch: int, state: dict[str, Any]) -> None:
        if batch >= 0:
            self.at("before the record")
        self.records[batch] = state
        if batch >= 0:
            self.at("after the record")

    # Windows
    empty = 0

    @contextmanager
    def ended(self, batch: Batch) -> Iterator[Iterator[Ended]]:
        yield (Ended(Span(start, start + 10), rows, start) for start, rows in batch.windows)

    def pass_over(self, batch: Batch) -> None:
        pass

    # Answers
    @property
    def plan(self) -> Any:
        neighbours = "add-remove" if self.hidden else "replace"
        return type("Plan", (), {"asked": type("Asked", (), {"neighbours": neighbours})})

    def read(self, data: int) -> Callable[[], dict[str, Any]]:
        self.at("while rows are read")

        def draw() -> dict[str, Any]:
            self.at("while noise is drawn")
            self.drafts += 1
            return {"value": self.drafts}

        return draw

    def show(self, sink: Any, session: Any, shown: Any, batch: int) -> None:
        for each in shown:
            self.at("before it is shown")
            self.shown.append((batch, each.span.start, each.record["value"]))

    def driver(self, term: int | None = None) -> Batches:
        """One that goes on from the newest record, as Spark starts it again."""
        if not self.records:
            dataset, state = None if self.ledger is None else "clicks", None
            account = Account.opened(self.ledger, dataset, ONE, by="a stream", max_items_per_person=1)
        else:
            newest = max(self.records)
            state = self.records[newest]
            account = goes_on(state["account"], self.ledger, None, newest)
        mine: Any = self
        return Batches(mine, mine, mine, mine, account, term, state)


WHERE = ["while rows are read", "while noise is drawn", "before the record", "after the record", "before it is shown"]
SIZES = st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=4)


def batches_of(sizes: list[list[int]]) -> list[Batch]:
    start, found = 0, []
    for rows in sizes:
        found.append(Batch(tuple((start + 10 * k, number) for k, number in enumerate(rows))))
        start += 10 * len(rows)
    return found


@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, crashes=st.lists(st.sampled_from(WHERE), max_size=5), hidden=st.booleans(), data=st.data())
def test_batches__over_crashes_show_one_answer_for_each_window(
    sizes: list[list[int]], crashes: list[str], hidden: bool, data: Any
) -> None:
    """Every window that is due is shown, and never two answers; batches are replayed from the last one on."""
    world, batches = World(hidden=hidden), batches_of(sizes)
    driver, at = world.driver(), 0
    while at < len(batches):
        if crashes and data.draw(st.booleans()):
            world.fail = crashes.pop()
        try:
            driver.take(batches[at], at)
            at += 1
        except Crash:
            world.fail = ""
            driver = world.driver()
        else:
            if data.draw(st.booleans()):  # Spark's own checkpoint is behind: the last batch comes again
                world.fail, driver, at = "", world.driver(), at - 1
                driver.take(batches[at], at)
                at += 1
    due = {start for batch in batches for start, rows in batch.windows if rows or hidden}
    shown: dict[int, set[int]] = {}
    for _, start, value in world.shown:
        shown.setdefault(start, set()).add(value)
    assert shown.keys() == due
    assert all(len(values) == 1 for values in shown.values())


@pytest.mark.parametrize("where", ["before the record", "while noise is drawn"])
@pytest.mark.parametrize("term", [None, 1])
def test_batches__a_crash_after_the_spend_does_not_spend_again(where: str, term: int | None, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "b.db", total=dpf.PureDP(epsilon=9.0))
    world = World(ledger)
    first, second = batches_of([[5], [5]])
    world.driver(term).take(first, 0)
    world.fail = where
    with pytest.raises(Crash):
        world.driver(term).take(second, 1)
    world.driver(term).take(second, 1)
    assert len(ledger.dataset("clicks").spends) == (1 if term is None else 2)
    assert [start for _, start, _ in world.shown] == [0, 10]


def test_batches__rows_that_cannot_be_read_spend_nothing(tmp_path: Path) -> None:
    world = World(dpf.Ledger(tmp_path / "b.db", total=ONE))
    world.fail = "while rows are read"
    with pytest.raises(Crash):
        world.driver().take(batches_of([[5]])[0], 0)
    assert world.ledger is not None
    assert world.ledger.datasets() == ()


def test_batches__an_older_copy_of_the_records_is_refused(tmp_path: Path) -> None:
    """A release was shown since: the copy would show the same rows a second time."""
    world = World(dpf.Ledger(tmp_path / "b.db", total=ONE))
    batches = batches_of([[5]] * 3)
    driver = world.driver()
    for at, batch in enumerate(batches[:1]):
        driver.take(batch, at)
    copy = dict(world.records)
    for at, batch in enumerate(batches[1:], 1):
        driver.take(batch, at)
    world.records = copy
    with pytest.raises(dpf.ReplayError, match="older copy"):
        world.driver()


def test_batches__a_window_that_comes_again_is_refused() -> None:
    world = World()
    driver = world.driver()
    driver.take(Batch(((0, 3), (10, 3))), 0)
    with pytest.raises(PrivacyError, match="came again"):
        driver.take(Batch(((10, 3),)), 1)


def test_batches__windows_without_rows_are_released_where_their_number_is_private() -> None:
    world = World(hidden=True)
    driver = world.driver()
    driver.take(Batch(((0, 3),)), 0)
    driver.take(Batch(((40, 0),)), 1)
    assert [start for _, start, _ in world.shown] == [0, 10, 20, 30, 40]


@given(st.lists(st.integers(-1, 6), max_size=12))
def test_order__lets_the_next_batch_come_or_the_last_one_again(asked: list[int]) -> None:
    order, newest = Order(-1), -1
    for batch in asked:
        if batch in (newest, newest + 1):
            with order.turn(batch) as is_new:
                assert is_new is (batch == newest + 1)
            newest = batch
        else:
            with pytest.raises(PrivacyError, match="is next"), order.turn(batch):
                pass


def test_order__after_a_failure_nothing_comes() -> None:
    order = Order(0)
    with pytest.raises(Crash), order.turn(1):
        raise Crash
    with pytest.raises(PrivacyError, match="start it again"), order.turn(1):
        pass


def test_state__before_the_first_batch_is_the_account_alone() -> None:
    account = Account.opened(None, None, ONE, by="a stream", max_items_per_person=1)
    state = state_of(account)
    assert (state["batch"], state["released"], state["last"], state["shown"]) == (-1, 0, [], [])
    assert state["account"] == account.to_record()
