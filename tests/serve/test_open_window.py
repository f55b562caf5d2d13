"""The window that is open: every item is in it once, whatever the batches; no name of a key or a person is shown."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.serve.figures import Figures
from dpfrugal.serve.ingest.items import NO_KEY, REPEATED, Rows
from dpfrugal.serve.open_window import OpenWindow, Quantiles
from dpfrugal.serve.repeated_items import SeenItems
from dpfrugal.serve.settings import Metric
from dpfrugal.serve.settings_reading import settings_of_text
from tests.support.bits import replace_bits
from tests.support.serving import METRIC, settings_text

KEYS = ["/home", "/pay", "/else", None]


def metric(**changes: str) -> Metric:
    text = METRIC.format(name="latency", window="1m", total=2880)
    for old, new in changes.items():
        before = {
            "keys": "keys: {attribute: route, declared: [/home, /pay]}",
            "guarantee": "guarantee: {epsilon: 2}",
            "total": "total_per_day: {epsilon: 2880}",
        }[old]
        assert before in text
        text = text.replace(before, new)
    (found,) = settings_of_text(settings_text(text)).metrics
    return found


def rows(keys: list[str | None], values: Any, identities: list[int] | None = None, persons: Any = None) -> Rows:
    named = None if identities is None else np.array(identities, dtype=np.int64)
    return Rows(keys, np.array(values, dtype=np.float64), persons, named)


def shown(window: OpenWindow, seed: int = 4) -> Quantiles:
    """What it releases, with bits that another call repeats."""
    with pytest.MonkeyPatch.context() as patch:
        replace_bits(patch, seed)
        return window.release()


items = st.lists(st.tuples(st.sampled_from(KEYS), st.floats(0, 1e4), st.integers(0, 30)), max_size=60)


@settings(max_examples=40, deadline=None)
@given(found=items, cuts=st.lists(st.integers(0, 60), max_size=4), gathered=st.integers(1, 40))
def test_window__depends_on_no_batch(found: list[tuple[Any, float, int]], cuts: list[int], gathered: int) -> None:
    """Item by item or all at once, gathered or not: the same release, and the same figures of the operator."""
    ends = [0, *sorted(min(cut, len(found)) for cut in cuts), len(found)]
    several = [found[low:high] for low, high in itertools.pairwise(ends)]
    released, counted = [], []
    for batches, most in ((several, gathered), ([found], 1 << 16)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dpfrugal.serve.open_window.GATHERED", most)
            window, figures = OpenWindow(metric(), SeenItems()), Figures()
            for batch in batches:
                taken = rows([row[0] for row in batch], [row[1] for row in batch], [row[2] for row in batch])
                figures.refuse("latency_seconds", window.take(taken, figures))
            window.close(figures)
        released.append(shown(window))
        counted.append((dict(figures.refused), {name: held[2].tolist() for name, held in figures.rows.items()}))
    assert released[0].keys == released[1].keys == ("/home", "/pay")
    assert np.array_equal(released[0].numbers(), released[1].numbers(), equal_nan=True)
    assert counted[0] == counted[1]
    refused, held = counted[0]
    assert refused.get(("latency_seconds", REPEATED), 0) == len(found) - len({row[2] for row in found})
    assert refused.get(("latency_seconds", NO_KEY), 0) == sum(row[0] not in ("/home", "/pay") for row in found)
    first = list({row[2]: row for row in reversed(found)}.values())
    if found:
        assert sorted(held["latency"]) == sorted(sum(row[0] == key for row in first) for key in ("/home", "/pay"))


def test_window__releases_in_the_base_unit_and_keys_without_items_too() -> None:
    window, figures = OpenWindow(metric(), None), Figures()
    window.take(rows(["/home"] * 2_000, np.full(2_000, 250.0)), figures)
    window.close(figures)
    found = shown(window)
    assert found.keys == ("/home", "/pay")
    assert found.values[0, 0] == 0.25
    assert np.isnan(found.values[1]).all()
    assert found.items is None, "the number of items is private"
    assert found.numbers().shape == (3, 2, 1)


def test_window__that_is_used_again_has_no_items_of_the_one_before() -> None:
    window, figures = OpenWindow(metric(), None), Figures()
    window.take(rows(["/home"] * 2_000, np.full(2_000, 250.0)), figures)
    window.close(figures)
    shown(window)
    again = OpenWindow(metric(), None, window.emptied())
    again.close(figures)
    assert np.isnan(shown(again).values).all()
    fresh = OpenWindow(metric(), None)
    for one in (again, fresh):
        one.take(rows(["/pay"] * 2_000, np.arange(2_000.0)), figures)
        one.close(figures)
    assert np.array_equal(shown(again).numbers(), shown(fresh).numbers(), equal_nan=True)


def test_window__persons_are_hashes_under_a_key_of_its_own() -> None:
    """The same person is one within a window, and cannot be followed into the next."""
    one, other = (OpenWindow(metric(), None) for _ in range(2))
    names = ["ann", "bob", "ann", ""]
    first, again, elsewhere = one._persons_of(names), one._persons_of(names), other._persons_of(names)
    assert np.array_equal(first, again)
    assert first[0] == first[2] != first[1]
    assert not np.isin(first, elsewhere).any()


def test_window__of_discovered_keys_starts_with_none_known() -> None:
    found = metric(
        keys="keys: {attribute: route, discover: {epsilon: 1, delta: 1e-6}}",
        guarantee="guarantee: {epsilon: 1}",
        total="total_per_day: {epsilon: 2, delta: 1e-6}",
    )
    window, figures = OpenWindow(found, None), Figures()
    keys: list[str | None] = [*["/often"] * 3_000, *["/rare"] * 3, None]
    refused = window.take(rows(keys, np.full(len(keys), 10.0)), figures)
    assert refused == {NO_KEY: 1}
    window.close(figures)
    assert shown(window).keys == ("/often",)
    assert window.emptied() is not window._window
