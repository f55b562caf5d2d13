"""A window's release: a table's with its number, and whose change it hides in words."""

from dataclasses import fields

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.release import TableRelease
from dpfrugal.estimators.windows.window_release import unit_of, window_release


@pytest.mark.parametrize(
    ("items", "keys", "windows", "unit"),
    [
        (1, None, 1, "item"),
        (3, None, 1, "person of ≤ 3 items per window"),
        (1, 2, 1, "person of ≤ 1 item in each of ≤ 2 keys per window"),
        (1, None, 24, "person of ≤ 1 item per window, in ≤ 24 windows"),
        (5, 2, 24, "person of ≤ 5 items in each of ≤ 2 keys per window, in ≤ 24 windows"),
    ],
)
def test_unit__is_said_in_words(items: int, keys: int | None, windows: int, unit: str) -> None:
    assert unit_of(items, keys, windows) == unit


def test_unit__of_items_that_came_with_persons_is_a_person() -> None:
    assert unit_of(1, None, 1, has_persons=True) == "person of ≤ 1 item per window"


def test_window_release__is_the_table_s_with_its_number() -> None:
    table = dpf.private_quantiles(np.arange(1000), [0.5], dpf.PureDP(epsilon=1.0))
    window = window_release(table, 7, has_persons=False)
    assert all(getattr(window, each.name) == getattr(table, each.name) for each in fields(TableRelease))
    assert window.to_dict() == table.to_dict() | {"unit": "item", "window": 7}
