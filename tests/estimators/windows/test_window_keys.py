"""The keys of windows: which codes rows get, which keys are public, and what outlives a window."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.coded_rows import KeyLookup
from dpfrugal.estimators.windows.held_items import HeldItems
from dpfrugal.estimators.windows.window_keys import WindowKeys, check_groups, null_keys_of
from dpfrugal.keys.discovery import KeyDiscovery
from dpfrugal.keys.index import MOST_KEYS


def discovering(other: Any = None) -> WindowKeys:
    return WindowKeys(None, KeyDiscovery(dpf.ApproxDP(epsilon=1.0, delta=1e-6), 1), other, MOST_KEYS)


def test_groups_of__sends_undeclared_keys_to_the_others_and_null_ones_nowhere() -> None:
    batch = ["b", "x", None, "a"]
    for other, expected in ((None, [1, -1, -1, 0]), ("rest", [1, 2, -1, 0])):
        keys = WindowKeys(["a", "b"], None, other, MOST_KEYS)
        assert keys.groups_of(KeyLookup(keys.index, batch, "drop")).tolist() == expected
        assert keys.groups == 2 + (other is not None)
    found = discovering("rest")
    assert found.groups_of(KeyLookup(found.index, batch, "drop")).tolist() == [0, 1, -1, 2]
    assert null_keys_of(KeyLookup(found.index, pa.array(batch), "drop")).tolist() == [False, False, True, False]


def test_other__is_none_of_the_declared_keys_and_of_their_type() -> None:
    with pytest.raises(dpf.ParameterError, match="other must not be one of keys"):
        WindowKeys(["a"], None, "a", MOST_KEYS)
    found = discovering("rest")
    found.check_other()
    found.index.codes(pa.array([3]))
    with pytest.raises(dpf.ParameterTypeError):
        found.check_other()


def test_begin__forgets_the_keys_that_are_not_public() -> None:
    found = discovering()
    assert found.public.type == pa.null()
    found.restore(pa.array(["a", "b", "secret"]), 2)
    found.begin()
    assert found.public.to_pylist() == found.index.keys.to_pylist() == ["a", "b"]
    declared = WindowKeys(["a"], None, None, MOST_KEYS)
    declared.begin()
    assert declared.public.to_pylist() == ["a"]


def test_adopt__gives_rows_of_another_window_the_codes_of_this_one() -> None:
    here, there = discovering(), discovering()
    here.index.codes(["a", "b"])
    there.index.codes(["c", "b"])
    held = HeldItems(None, ("groups",))
    held.add(np.arange(3), np.arange(3, dtype=np.uint32), groups=np.array([0, 1, 1], dtype=np.int32))
    here.adopt(there.saved()[0], held)
    assert here.index.keys.take(pa.array(held.column("groups"))).to_pylist() == ["c", "b", "b"]
    with pytest.raises(ValueError, match="not the keys"):
        check_groups(held, 1)


def test_parameters__have_a_digest_of_declared_keys_only() -> None:
    digests = {WindowKeys(keys, None, None, MOST_KEYS).parameters()["keys"] for keys in (["a"], ["b"], ["a", "b"])}
    assert len(digests) == 3
    assert discovering().parameters()["keys"] is None
