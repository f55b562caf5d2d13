"""``KeyedWindowQuantile``: each window is released as ``quantiles_by`` would, for the same public keys."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.windows import keyed_window_quantile
from tests.support.bits import replace_bits

ONE = dpf.PureDP(epsilon=1.0)
FOUND = dpf.ApproxDP(epsilon=1.0, delta=1e-6)
RNG = np.random.default_rng(4)
KEYS = RNG.choice(["/home", "/pay", "/help", "/else"], 12_000, p=[0.6, 0.3, 0.05, 0.05])
VALUES = RNG.lognormal(3, 1, 12_000)
PEOPLE = RNG.integers(0, 900, 12_000)
NAMES = ["/home", "/pay", "/help", "/none"]
TABLE = pa.table({"key": KEYS, "value": VALUES, "person": PEOPLE})


def released(estimator: Any, seed: int = 3) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        replace_bits(patch, seed)
        patch.setattr(keyed_window_quantile, "rehearse", lambda *_: None)  # which draws as well, once in a process
        return estimator.release()


OPTIONS: list[dict[str, Any]] = [
    {"keys": NAMES},
    {"keys": NAMES, "other": "the others", "counts": False},
    {"keys": NAMES, "neighbours": "add-remove", "hold_in_all": None},
    {"keys": NAMES, "intervals": False, "max_items_per_person": 4, "max_keys_per_person": 2},
    {"discover_keys": FOUND},
    {"discover_keys": FOUND, "other": "the others", "max_items_per_person": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_release__is_that_of_a_table_of_the_same_rows(options: dict[str, Any]) -> None:
    """Bit for bit, whatever came in the windows before, and for keys that had no rows."""
    with pytest.MonkeyPatch.context() as patch:
        replace_bits(patch, 3)
        asked = {name: option for name, option in options.items() if name != "hold_in_all"}
        table = dpf.quantiles_by(TABLE, "value", [0.5, 0.1], ONE, by="key", **asked)
    windows = dpf.KeyedWindowQuantile([0.5, 0.1], ONE, **options)
    if "keys" in options:
        windows.update_many(KEYS, VALUES * 1e6)
        windows.release()
    for part in np.array_split(np.arange(12_000), 5):
        windows.update_many(KEYS[part], VALUES[part])
    release = released(windows)
    assert release.drop_columns("key").equals(table.drop_columns("key"))
    assert release["key"].to_pylist() == table["key"].to_pylist()
    assert windows.keys.to_pylist() == [key for key in dict.fromkeys(table["key"].to_pylist()) if key != "the others"]
    claims = [{name.decode(): claim.decode() for name, claim in t.schema.metadata.items()} for t in (release, table)]
    assert claims[0] == claims[1] | {"unit": claims[0]["unit"], "window": str(windows.windows_released)}
    assert claims[0]["unit"] == ("item" if "max_items_per_person" not in options else claims[0]["unit"])


@pytest.mark.parametrize(
    "names", [NAMES, pa.array(NAMES), np.array(NAMES), pd.Series(NAMES), pl.Series(NAMES)], ids=type
)
def test_release__has_a_row_for_every_declared_key(names: Any) -> None:
    windows = dpf.KeyedWindowQuantile(0.5, ONE, keys=names)
    for rows in (0, 5):
        windows.update_many(["/pay"] * rows, [1.0] * rows)
        table = windows.release()
        assert table["key"].to_pylist() == NAMES
        assert table["value"].to_pylist() == [None] * 4, "nothing can be told of so few rows"
        assert all("too few rows" in reason for reason in table["reason"].to_pylist())


def test_discovered_keys__stay_public_and_the_others_are_forgotten() -> None:
    windows = dpf.KeyedWindowQuantile(0.5, ONE, discover_keys=FOUND)
    windows.update_many(["b"] * 500 + ["a"] * 500 + [f"secret {i}" for i in range(100)], np.arange(1_100.0))
    assert windows.keys.type == pa.null()
    assert windows.release()["key"].to_pylist() == ["a", "b"]
    assert windows._keys.index.size == 2, "keys that are not public do not outlive their window"
    windows.update_many(["c"] * 700, np.arange(700.0))
    table = windows.release()
    assert table["key"].to_pylist() == ["a", "b", "c"]
    assert table["value"].is_null().to_pylist() == [True, True, False]
    assert dpf.KeyedWindowQuantile(0.5, ONE, discover_keys=FOUND).release()["key"].type == pa.null()


@pytest.mark.parametrize("as_bytes", [True, False])
@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize(
    "options",
    [{"keys": NAMES, "other": "?"}, {"keys": NAMES, "hold": 40}, {"keys": NAMES, "hold_in_all": 99},
     {"discover_keys": FOUND}, {"discover_keys": FOUND, "hold": 40}],
    ids=str,
)  # fmt: skip
def test_merge__holds_what_one_would_have_held(options: dict[str, Any], persons: bool, as_bytes: bool) -> None:
    """Exactly, for the same priorities, though two replicas number persons and keys in different ways."""
    if persons and "hold" in options:
        pytest.skip("a bound for each key is without persons")
    one, first, second = (dpf.KeyedWindowQuantile(0.5, ONE, max_items_per_person=2, **options) for _ in range(3))
    for seed, replica, part in ((1, first, slice(0, 500)), (2, second, slice(500, 1_500))):
        for estimator in (replica, one):
            estimator._with(persons)
            estimator._held._generator = np.random.Generator(np.random.SFC64(seed))
            ids = {"person": PEOPLE[part]} if persons else {}
            estimator.update_many(KEYS[part], VALUES[part], **ids)
    first.merge(second.hand_over() if as_bytes else second)
    assert (first.items, second.items_in_window) == (1_500, 0)
    assert first._keys.index.keys.equals(one._keys.index.keys)
    mine, all_of_it = (estimator._held.arrays() for estimator in (first, one))
    for name in mine:
        if name != "who":
            assert np.array_equal(mine[name], all_of_it[name]), name
    if persons:
        whose = [e._people.index.keys.take(e._held.column("who")).to_pylist() for e in (first, one)]
        assert whose[0] == whose[1]
    assert released(first).equals(released(one))


@pytest.mark.parametrize("persons", [True, False])
@pytest.mark.parametrize("options", [OPTIONS[1], OPTIONS[-1], {"keys": [3, 1, 2], "hold": 50}], ids=str)
def test_save_and_load__go_on_exactly(options: dict[str, Any], persons: bool, tmp_path: Path) -> None:
    keys = KEYS if options.get("keys") != [3, 1, 2] else RNG.integers(0, 4, KEYS.size)
    persons = persons and "hold" not in options
    ids = {"person": PEOPLE} if persons else {}
    windows = dpf.KeyedWindowQuantile([0.5, 0.9], ONE, **options)
    windows.update_many(keys, VALUES, **ids)
    windows.release()
    windows.update_many(keys[::-1], VALUES, **ids)
    windows.save(tmp_path / "state")
    again = dpf.KeyedWindowQuantile.load(tmp_path / "state", accept_replay_risk=True)
    assert again.parameters() == windows.parameters()
    assert again.items_in_window == windows.items_in_window == KEYS.size
    assert released(again).equals(released(windows))


@pytest.mark.parametrize(
    "keys", [["a", None, "z"], pa.array(["a", None, "z"]).dictionary_encode()], ids=["list", "arrow"]
)
@pytest.mark.parametrize("options", [{"keys": ["a"]}, {"discover_keys": FOUND}], ids=["declared", "discovered"])
def test_null_keys__that_are_dropped_are_none_of_the_others(keys: Any, options: dict[str, Any]) -> None:
    windows = dpf.KeyedWindowQuantile(0.5, ONE, other="others", null_keys="drop", **options)
    windows.update_many(keys, [1.0, 2.0, 3.0])
    assert windows._held.column("codes").size == 2
    assert windows.items == 3


def test_hold__of_each_key_leaves_room_for_small_ones() -> None:
    windows = dpf.KeyedWindowQuantile(0.5, ONE, keys=["large", "small"], hold=2_000)
    windows.update_many(["large"] * 300_000 + ["small"] * 1_000, np.append(np.full(300_000, 5.0), np.full(1_000, 7.0)))
    assert np.bincount(windows._held.column("groups")).tolist() == [2_000, 1_000]
    assert windows.release()["value"].to_pylist() == [5.0, 7.0]


def test_person__takes_nobody_elses_place() -> None:
    """One with a million rows leaves room for all others in the sample, and counts for two rows."""
    windows = dpf.KeyedWindowQuantile(0.5, ONE, keys=["a", "b"], hold_in_all=4_000, max_items_per_person=2)
    flood = 1_000_000
    keys = np.concatenate([np.full(flood, "a"), np.tile(["a", "b"], 1_000)])
    values = np.concatenate([np.full(flood, 1e9), np.full(2_000, 5.0)])
    windows.update_many(keys, values, np.concatenate([np.zeros(flood, int), np.arange(1, 2_001)]))
    assert windows._held.column("codes").size == 2_002
    assert windows.release()["value"].to_pylist() == [5.0, 5.0]
    with pytest.raises(dpf.ParameterError, match="hold_in_all"):
        dpf.KeyedWindowQuantile(0.5, ONE, keys=["a"], hold=5).update_many(["a"], [1.0], ["ann"])


def test_hold__of_each_key_is_paid_for() -> None:
    """A row that leaves a sample lets another one in: two groups may have a row replaced (Theorem 20)."""
    for q, factor in ((0.5, 2.0), (0.99, 2 / 1.98)):
        plain, held = (
            dpf.KeyedWindowQuantile(q, ONE, keys=[1], intervals=False, counts=False, hold=h) for h in (None, 9)
        )
        assert float(plain._planned.slope / held._planned.slope) == pytest.approx(factor)
    for hold_in_all, factor in ((None, 1.0), (9, 2.0)):
        table = dpf.KeyedWindowQuantile(
            0.5, ONE, keys=[1], intervals=False, counts=False, neighbours="add-remove", hold_in_all=hold_in_all
        )
        assert 2 * float(table._planned.slope) == pytest.approx(0.96 / factor)  # the pilot has the rest


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((["/pay"], [1.0, 2.0]), dpf.ItemError, "same length"),
        ((["/pay", None], [1.0, 2.0]), dpf.ItemError, "null keys"),
        (([4242], [1.0]), dpf.ItemTypeError, "keys must be strings"),
        ((["/pay"], ["4242"]), dpf.ItemTypeError, "real number"),
        ((["/pay"], [float("nan")]), dpf.ItemError, "NaN"),
        ((["/pay"], [1.0], ["ann", "bob"]), dpf.ItemError, "one id for each"),
        ((["/pay"], [1.0], [None]), dpf.ItemError, "null ids"),
    ],
)
@pytest.mark.parametrize("discovers", [True, False])
def test_update_many__refuses_a_whole_batch(arguments: Any, error: Any, said: str, discovers: bool) -> None:
    options: dict[str, Any] = {"discover_keys": FOUND} if discovers else {"keys": NAMES}
    windows = dpf.KeyedWindowQuantile(0.5, ONE, **options)
    windows.update_many(["/home"], [1.0], *([["ann"]] if len(arguments) == 3 else []))
    before = repr((windows._held.arrays(), windows._keys.index.size, windows._people.index.size))
    with pytest.raises(error, match=said) as refusal:
        windows.update_many(*arguments)
    assert "4242" not in str(refusal.value)
    assert before == repr((windows._held.arrays(), windows._keys.index.size, windows._people.index.size))
    assert windows.items == 1


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "keys"),
        ({"keys": ["a"], "discover_keys": FOUND}, "keys"),
        ({"keys": []}, "keys"),
        ({"keys": ["a", "a"]}, "keys"),
        ({"keys": ["a"], "other": "a"}, "other"),
        ({"keys": ["a"], "other": 3}, "other"),
        ({"keys": ["a"], "hold_in_all": 0}, "hold_in_all"),
        ({"keys": ["a"], "max_keys_per_person": 0}, "max_keys_per_person"),
        ({"keys": ["a"], "counts": 1}, "counts"),
        ({"discover_keys": ONE}, "discover_keys"),
    ],
)
def test_parameters__are_named_when_they_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises((dpf.ParameterError, dpf.ParameterTypeError), match=name):
        dpf.KeyedWindowQuantile(0.5, ONE, **options)


def test_ledger__is_charged_for_keys_too(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=2.0, delta=1e-6))
    windows = dpf.KeyedWindowQuantile(0.5, ONE, discover_keys=FOUND, ledger=ledger, dataset="clicks")
    for _ in range(3):
        windows.release()
    (spend,) = ledger.dataset("clicks").spends
    assert str(spend.guarantee) == "ε=2, δ=1e-06"
    assert spend.asked["quantiles"] == [0.5]


def test_keys__no_more_are_remembered_than_rows_are_held_and_a_flood_hides_none() -> None:
    rarely = dpf.ApproxDP(epsilon=1.0, delta=1e-12)  # each of 100,000 keys of one row is shown with at most this δ
    windows = dpf.KeyedWindowQuantile(0.5, ONE, discover_keys=rarely, hold_in_all=50_000)
    for part in range(6):
        windows.update_many([f"{part} {n}" for n in range(60_000)], np.zeros(60_000))
        windows.update_many(["a"] * 20_000, np.full(20_000, 7.0))
    assert windows._keys.index.size <= 2 * (1 << 16) + 60_001
    table = windows.release()
    assert table["key"].to_pylist() == ["a"]
    assert table["value"].to_pylist() == [7.0]
    windows.update_many([f"later {n}" for n in range(200_000)], np.zeros(200_000))
    assert windows.release()["key"].to_pylist() == ["a"]
