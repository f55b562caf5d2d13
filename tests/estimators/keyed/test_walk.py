"""The walk of rows with keys: its forms are equal, in one thread and in several, and it says which one runs."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.keyed import walk
from dpfrugal.estimators.keyed.walk import advance_keys, comparable, is_one_call, is_small, walk_keys_plainly
from dpfrugal.estimators.walk.kernel_choice import Path
from dpfrugal.kernels import compiler

PATH = Path((0.5, 0.9), Grid(1), 12345)


def walked(form: Any, keys: int, codes: NDArray[np.int32], values: NDArray[Any], **options: Any) -> list[list[int]]:
    estimates = np.zeros((keys, 2), dtype=np.int64)
    steps = np.arange(2 * keys, dtype=np.uint8).reshape(keys, 2) % 4
    clock = np.array([1000], dtype=np.int64)
    if form is advance_keys:
        items, scale = comparable(values, PATH, 10**6)
        advance_keys(estimates, steps, clock, codes, items, scale, PATH, **options)
    else:
        form(estimates, steps, clock, codes, values, PATH)
    return [*estimates.tolist(), clock.tolist()]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_advance_keys__equals_its_readable_form(dtype: Any, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "WORTH_A_THREAD", 1)
    rng = np.random.default_rng(5)
    keys = 50
    codes = rng.integers(-1, keys, 600, dtype=np.int32)  # -1: undeclared
    values = (100 * rng.standard_normal(600)).astype(dtype)
    found = walked(advance_keys, keys, codes, values, threads=threads)
    assert found == walked(walk_keys_plainly, keys, codes, values)
    assert found[-1] == [1600]  # every row used its position up, also those without a key


def test_comparable__are_items_as_they_are_or_grid_points() -> None:
    floats, integers = np.array([1.25, -2.0]), np.array([3, 4])
    points, scale = comparable(floats, PATH, 100)
    assert (points.tolist(), scale) == (floats.tolist(), 10.0)
    points, scale = comparable(floats, PATH, 2**60)  # a float may not hold such an estimate
    assert (points.tolist(), scale) == ([12, -20], None)
    whole = Path((0.5,), Grid(0), 1)
    assert comparable(integers, whole, 100)[0] is integers
    assert comparable(integers, PATH, 100)[0].tolist() == [30, 40]


def test_is_one_call__where_compiled_code_runs_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "worth_loading", lambda work, at_least: work >= at_least)
    monkeypatch.setattr(compiler, "is_off", lambda: False)
    assert is_small(walk.WORTH_COMPILING - 1)
    assert not is_one_call(walk.WORTH_COMPILING - 1, 1)
    assert is_one_call(walk.WORTH_COMPILING, 1)
    assert not is_one_call(walk.WORTH_COMPILING, 2)
    monkeypatch.setattr(compiler, "is_off", lambda: True)
    assert not is_one_call(walk.WORTH_COMPILING, 1)
