"""One holder: no copy, no fork, no call from within; threads take turns; and nothing raw is seen from outside."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.laws import laws
from tests.laws.kinds import KINDS, PRIVATE, Kind
from tests.support.noise_tape import no_noise, replace_noise

every_private_kind = pytest.mark.parametrize("kind", PRIVATE.values(), ids=PRIVATE)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_repr__shows_no_raw_state_nor_does_any_public_attribute(kind: Kind) -> None:
    laws.text_and_attributes_show_no_raw_state(kind)


@every_private_kind
@pytest.mark.parametrize("copier", laws.COPIERS.values(), ids=laws.COPIERS)
def test_copies__are_refused(kind: Kind, copier: Callable[[Any], Any]) -> None:
    laws.no_copy_is_made(kind, copier)


@every_private_kind
@pytest.mark.parametrize("name", ["release", "update_many", "update", "save"])
def test_calls_from_within__are_refused(kind: Kind, name: str) -> None:
    if name == "update" and not kind.takes_single_items:
        pytest.skip("it takes batches only")
    laws.no_call_from_within(kind, name)


@every_private_kind
def test_threads__end_where_one_thread_ends(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_noise(monkeypatch, no_noise)
    laws.threads_take_turns(kind)


@every_private_kind
def test_threads__may_release_while_others_update(kind: Kind) -> None:
    laws.threads_may_release(kind)


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("fork", laws.FORKS)
def test_forks__leave_the_child_without_the_estimator(name: str, fork: str, tmp_path: Path) -> None:
    if not (hasattr(os, "fork") and hasattr(ctypes.PyDLL(None), "fork")):
        pytest.skip("this system has no fork")
    laws.no_use_after_a_fork(name, fork, tmp_path / "state")
