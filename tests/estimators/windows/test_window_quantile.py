"""``WindowQuantile``: each window is released as a table, once, and by nobody else."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.windows import window_quantile
from tests.support.bits import replace_bits

ONE = dpf.PureDP(epsilon=1.0)
DAY = np.random.default_rng(5).lognormal(3, 1, 30_000)


def released(estimator: Any, *batches: Any, seed: int = 3) -> dpf.WindowRelease:
    """What an estimator releases after some batches, with bits that another call repeats."""
    for batch in batches:
        estimator.update_many(batch)
    with pytest.MonkeyPatch.context() as patch:
        replace_bits(patch, seed)
        patch.setattr(window_quantile, "rehearse", lambda *_: None)  # which draws as well, once in a process
        release: dpf.WindowRelease = estimator.release()
    return release


OPTIONS: list[dict[str, Any]] = [
    {},
    {"intervals": False},
    {"neighbours": "add-remove"},
    {"low": 0, "high": 500, "decimals": 1},
    {"max_items_per_person": 3},
    {"interval_of": "table", "confidence": 0.9},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("size", [1, 400, 30_000])
def test_release__is_that_of_a_table_of_the_same_items(options: dict[str, Any], size: int) -> None:
    """Bit for bit, whatever came before."""
    with pytest.MonkeyPatch.context() as patch:
        replace_bits(patch, 3)
        table = dpf.private_quantiles(DAY[:size], [0.9, 0.5], ONE, **options)
    windows = dpf.WindowQuantile([0.9, 0.5], ONE, hold=None, **options)
    released(windows, DAY * 1e6)
    release = released(windows, *np.array_split(DAY[:size], 3))
    assert (release.values, release.lower, release.upper) == (table.values, table.lower, table.upper)
    assert release.items == (None if options.get("neighbours") else size)
    assert release.window == windows.windows_released == 2


def test_release__of_an_empty_window_is_one_like_any_other() -> None:
    windows = dpf.WindowQuantile([0.5, 0.99], ONE)
    release = windows.release()
    assert release.items == 0
    assert release.intervals() == ((-np.inf, np.inf), (-np.inf, np.inf))
    assert all(reason is not None and "too few rows" in reason for reason in release.reasons)
    assert windows.release().window == 2


def test_release__answers_integers_where_every_batch_states_them() -> None:
    windows = dpf.WindowQuantile(0.5, ONE)
    assert type(released(windows, np.arange(5_000), []).value) is int, "an empty list states nothing"
    mixed = released(windows, np.arange(2_500), np.arange(2_500, 5_000) + 0.5)
    assert type(mixed.value) is float
    assert 2_400 < mixed.value < 2_600
    assert type(released(dpf.WindowQuantile(0.5, ONE), list(range(5_000))).value) is float, "a list states no type"
    assert type(released(dpf.WindowQuantile(0.5, ONE, decimals=1), np.arange(5_000)).value) is float


@pytest.mark.parametrize(
    ("items", "median"),
    [
        (np.arange(5_000).astype("timedelta64[s]"), np.timedelta64(2_500, "s")),
        (pd.Series(pd.date_range("2026-01-01", periods=5_000, freq="s")), np.datetime64("2026-01-01T00:41:40")),
        (pl.Series([datetime.timedelta(seconds=at) for at in range(5_000)]), np.timedelta64(2_500, "s")),
        ([datetime.timedelta(seconds=at) for at in range(5_000)], np.timedelta64(2_500, "s")),
        ([np.datetime64(at, "ns") for at in range(0, 5_000_000, 1_000)], np.datetime64(2_500, "us")),
        ([pd.Timestamp(at) for at in range(0, 5_000_000, 1_000)], np.datetime64(2_500, "us")),
        (pa.array(np.arange(5_000, dtype=np.int32), pa.date32()), np.datetime64(2_500, "D")),
    ],
    ids=["numpy", "pandas", "polars", "list", "list of numpy", "list of pandas", "arrow"],
)
def test_release__answers_times_in_their_own_type(items: Any, median: Any, tmp_path: Path) -> None:
    """In all containers; and over a checkpoint and a hand-over, where the type is stored."""
    windows = dpf.WindowQuantile(0.5, ONE, nan_policy="omit")
    windows.update_many([None, None])
    windows.update_many(items)
    windows.update(None)  # type: ignore[arg-type]
    windows.save(tmp_path / "state")
    again = dpf.WindowQuantile.load(tmp_path / "state", accept_replay_risk=True)
    other = dpf.WindowQuantile(0.5, ONE, nan_policy="omit")
    value = released(windows).value
    assert type(value) is type(median)
    assert abs((value - median) / (items[1] - items[0] if not isinstance(items, pa.Array) else 1)) < 200
    assert released(again).value == value
    again.update_many(items)
    other.merge(again.hand_over())
    assert type(released(other).value) is type(median)


def test_release__answers_decimals_of_arrow_as_decimals() -> None:
    windows = dpf.WindowQuantile(0.5, ONE)
    assert released(windows, pa.array([Decimal("1.50")] * 500)).value == Decimal("1.50")
    assert type(released(dpf.WindowQuantile(0.5, ONE), [Decimal("1.50")] * 500).value) is float, "a list states no type"


@pytest.mark.parametrize("dtype", ["Int64", "int32[pyarrow]"])
def test_release__answers_integers_of_pandas_with_or_without_nulls(dtype: str) -> None:
    for last in (7, None):
        windows = dpf.WindowQuantile(0.5, ONE, nan_policy="omit")
        assert type(released(windows, pd.Series([*range(900), last], dtype=dtype)).value) is int


def test_update__refuses_another_type_and_takes_nothing_in() -> None:
    day, second = datetime.datetime(2026, 1, 1), datetime.timedelta(seconds=1)
    numbers, times = dpf.WindowQuantile(0.5, ONE), dpf.WindowQuantile(0.5, ONE)
    numbers.update(3.0)
    times.update(day)
    wrong: tuple[Any, ...] = (day, second, [day, 3.0], [datetime.date(2026, 1, 1), day], [3.0, day])
    for windows, several in ((numbers, wrong), (times, (3.0, second, [3.0], [day, 3.0]))):
        for items in several:
            with pytest.raises(dpf.ItemTypeError):
                (windows.update_many if isinstance(items, list) else windows.update)(items)
        assert windows.items == 1
    with pytest.raises(dpf.ItemTypeError):
        numbers.merge(times)
    assert (numbers.items_in_window, times.items_in_window) == (1, 1), "what is refused stays where it is"
    ours, theirs = dpf.WindowQuantile(0.5, ONE), dpf.WindowQuantile(0.5, ONE)
    ours.update_many([1.0], ["ann"])
    theirs.update_many([1.0])
    with pytest.raises(dpf.ItemError, match="every batch"):
        ours.merge(theirs)
    assert theirs.items_in_window == 1
    keyed = dpf.KeyedWindowQuantile(0.5, ONE, keys=["a"])
    keyed.update_many(["a"] * 900, [second] * 900)
    with pytest.raises(dpf.ItemTypeError):
        keyed.update_many(["a"], [1.0])
    assert keyed.release()["value"].to_pylist() == [second]


def test_hold__bounds_what_is_held_and_the_sample_answers() -> None:
    windows = dpf.WindowQuantile([0.1, 0.5, 0.9], ONE, hold=20_000)
    windows.update_many(np.sort(DAY.repeat(10)))
    assert windows._held.arrays()["codes"].size == 20_000
    release = windows.release()
    assert release.items == 300_000
    ranks = np.searchsorted(np.sort(DAY), release.values) / DAY.size
    assert np.abs(ranks - [0.1, 0.5, 0.9]).max() < 0.025, "six standard deviations of a sample of 20,000"


def test_hold__lets_an_interval_hold_the_window_only_where_all_of_it_is_held() -> None:
    with pytest.raises(dpf.ParameterError, match="hold=None"):
        dpf.WindowQuantile(0.5, ONE, interval_of="table")


@pytest.mark.parametrize("hold", [None, 50, 10_000])
@pytest.mark.parametrize("as_bytes", [True, False])
@pytest.mark.parametrize("persons", [True, False])
def test_merge__holds_what_one_would_have_held(hold: int | None, as_bytes: bool, persons: bool) -> None:
    """Exactly, for the same priorities: what two replicas held and one that was given everything release the same."""
    rng = np.random.default_rng(8)
    one, first, second = (dpf.WindowQuantile(0.5, ONE, hold=hold, max_items_per_person=2) for _ in range(3))
    for seed, replica, items in ((1, first, DAY[:500]), (2, second, np.arange(700))):
        ids = {"person": rng.integers(0, 90, items.size)} if persons else {}
        for estimator in (replica, one):
            estimator._with(persons)  # as the first batch would, which decides what is held of each item
            estimator._held._generator = np.random.Generator(np.random.SFC64(seed))
            estimator.update_many(items, **ids)
    first.merge(second.hand_over() if as_bytes else second)
    assert first.items == one.items == 1_200
    assert second.items_in_window == 0
    mine, all_of_it = (estimator._held.arrays() for estimator in (first, one))
    assert sorted(mine) == sorted(all_of_it)
    assert all(np.array_equal(mine[name], all_of_it[name]) for name in mine)
    assert released(first).values == released(one).values


def test_merge__takes_a_hand_over_once_and_only_whole() -> None:
    first, second = (dpf.WindowQuantile(0.5, ONE) for _ in range(2))
    second.update_many(DAY)
    handed = second.hand_over()
    for broken in (handed[:-1], handed[:50] + b"x" + handed[51:], b"", b"GET / HTTP/1.1"):
        with pytest.raises(dpf.CheckpointError):
            first.merge(broken)
    assert first.items == 0
    first.merge(handed)
    assert first.items_in_window == DAY.size
    with pytest.raises(dpf.CheckpointError, match="before"):
        first.merge(handed)
    first.release()
    with pytest.raises(dpf.CheckpointError, match="before"):
        first.merge(handed)
    for other in (dpf.WindowQuantile(0.9, ONE), dpf.WindowQuantile(0.5, ONE, hold=9)):
        with pytest.raises(dpf.ParameterError, match="same parameters"):
            first.merge(other)
    with pytest.raises(dpf.ParameterError, match="itself"):
        first.merge(first)
    with pytest.raises(dpf.ParameterTypeError):
        first.merge(3)  # type: ignore[arg-type]


def test_hand_over__makes_earlier_checkpoints_stale(tmp_path: Path) -> None:
    """A checkpoint from before it holds items that are released elsewhere."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=ONE)
    windows = dpf.WindowQuantile(0.5, ONE, ledger=ledger, dataset="clicks")
    windows.update_many(DAY)
    windows.save(tmp_path / "state")
    windows.hand_over()
    with pytest.raises(dpf.ReplayError, match="stale"):
        dpf.WindowQuantile.load(tmp_path / "state", ledger=ledger)


def test_person__has_no_more_items_than_stated_in_a_window() -> None:
    for seed in range(5):
        windows = dpf.WindowQuantile(0.5, ONE, max_items_per_person=2)
        ids = np.concatenate([np.arange(2_000), np.full(50_000, 7)])
        windows.update_many(np.concatenate([np.full(2_000, 10.0), np.full(50_000, 1e9)]), ids)
        assert released(windows, seed=seed).value == 10.0
        windows.update_many(np.full(50_000, 1e9), ids[-50_000:])
        assert windows.release().reasons[0] is None or windows.items == 102_000
    assert "per window" in windows.release().unit


def test_person__comes_with_every_batch_or_with_none() -> None:
    windows = dpf.WindowQuantile(0.5, ONE)
    windows.update_many([])
    with pytest.raises(dpf.ItemError, match="one id for each"):
        windows.update_many([1.0, 2.0], ["ann"])
    with pytest.raises(dpf.ItemError, match="null"):
        windows.update_many([1.0, 2.0], ["ann", None])
    windows.update_many([1.0, 2.0], ["ann", "bob"])
    windows.update(3.0, "ann")
    with pytest.raises(dpf.ItemError, match="every batch"):
        windows.update_many([1.0])
    with pytest.raises(dpf.ItemError, match="every batch"):
        windows.update(1.0)
    assert windows.items == 3
    windows.release()
    with pytest.raises(dpf.ItemError, match="every batch"):
        windows.update_many([1.0])


def test_persons_of_whom_nothing_is_held__are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = dpf.WindowQuantile(0.5, ONE, hold=100)
    for first in range(0, 3_000_000, 300_000):
        windows.update_many(np.ones(300_000), np.arange(first, first + 300_000))
    assert windows._people.index.size < 1_000_000
    who = windows._held.column("who")
    assert np.unique(who).size == who.size == 100


def test_ledger__is_charged_once_or_after_so_many_windows(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=2.0))
    for_ever = dpf.WindowQuantile(0.5, ONE, ledger=ledger, dataset="once")
    by_the_day = dpf.WindowQuantile(0.5, ONE, windows=2, ledger=ledger, dataset="by the day")
    for window in range(1, 5):
        for windows in (for_ever, by_the_day):
            windows.update_many([1.0] * 500)
            windows.release()
        assert [len(ledger.dataset(name).spends) for name in ("once", "by the day")] == [1, (window + 1) // 2]
    by_the_day.update_many([1.0] * 500)
    with pytest.raises(dpf.BudgetExceeded):
        by_the_day.release()
    assert by_the_day.items_in_window == 500, "what was refused is still to be released, or discarded"
    by_the_day.discard()
    assert (by_the_day.items, by_the_day.items_in_window) == (2_500, 0)


def test_windows__share_one_guarantee() -> None:
    """A person in 24 windows is covered by the guarantee: each window's choices are 24 times as gentle."""
    one, many = (dpf.WindowQuantile(0.5, ONE, intervals=False, windows=windows) for windows in (None, 24))
    rho = dpf.WindowQuantile(0.5, dpf.ZCDP(rho=1.0), intervals=False, windows=25)
    apart = dpf.WindowQuantile(0.5, dpf.ZCDP(rho=1.0), intervals=False)
    assert one._planned.slope == 24 * many._planned.slope
    assert float(apart._planned.slope / rho._planned.slope) == pytest.approx(5.0)
    assert many.release().unit == "person of ≤ 1 item per window, in ≤ 24 windows"


def test_add_remove__shows_no_number_of_items() -> None:
    windows = dpf.WindowQuantile(0.5, ONE, neighbours="add-remove")
    windows.update_many(DAY)
    assert windows.items is None
    assert windows.items_in_window is None
    assert "items" not in repr(windows)
    assert windows.release().items is None


def test_windows__of_a_daily_rhythm_show_each_period() -> None:
    """The stream that a running estimate could not follow: the true median alternates between 52 and 26."""
    rng, windows = np.random.default_rng(1), dpf.WindowQuantile(0.5, ONE)
    for period in range(10):
        median = 52.0 if period % 2 else 26.0
        windows.update_many(rng.normal(median, 3.0, 50_000))
        assert abs(windows.release().value - median) < 0.3


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"hold": 0}, "hold"),
        ({"hold": 2.5}, "hold"),
        ({"windows": 0}, "windows"),
        ({"neighbours": "both"}, "neighbours"),
        ({"confidence": 1.0}, "confidence"),
        ({"intervals": 1}, "intervals"),
        ({"low": 3, "high": 2}, "low"),
        ({"decimals": -1}, "decimals"),
        ({"dataset": "x"}, "dataset"),
    ],
)
def test_parameters__are_named_when_they_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises((dpf.ParameterError, dpf.ParameterTypeError), match=name):
        dpf.WindowQuantile(0.5, ONE, **options)


def test_window_quantile__of_integers_beyond_the_signed_ones_are_among_them() -> None:
    items = np.random.default_rng(1).normal(1.15e19, 1e17, 3_000).astype(np.uint64)
    for batch in (items, items.tolist()):
        window = dpf.WindowQuantile([0.5], dpf.PureDP(epsilon=10.0))
        window.update_many(batch)
        assert window.release().values[0] == pytest.approx(1.15e19, rel=0.02)
