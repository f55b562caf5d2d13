"""Datasets and spends: their words, their arithmetic, and the checks of a spend before it is made."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.budget.claims import Tally
from dpfrugal.budget.person_moves import Exposure, Move
from dpfrugal.budget.promises import Dataset, now, spend_of
from dpfrugal.errors import ParameterError

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def dataset(total: Any, spends: tuple[Any, ...] = (), **options: Any) -> Dataset:
    options = {"max_items_per_person": 1, "adaptive": False} | options
    return Dataset(name="d", total=total, opened=NOON, tally=Tally.of(spend.claim for spend in spends), **options)


@pytest.mark.parametrize(
    ("options", "promise"),
    [
        ({}, "ε=2 per item replaced"),
        ({"max_items_per_person": 3}, "ε=2 per person of ≤ 3 items replaced"),
        ({"neighbours": "add-remove", "adaptive": True}, "ε=2 per item added or removed, adaptive"),
    ],
)
def test_dataset__says_whom_it_protects(options: dict[str, Any], promise: str) -> None:
    assert dataset(dpf.PureDP(epsilon=2), **options).promise == promise


def test_dataset__counts_what_is_spent_and_left() -> None:
    spent = tuple(spend_of("d", dpf.PureDP(epsilon=epsilon), "by hand", None, 1) for epsilon in (0.5, 0.25))
    promised = dataset(dpf.PureDP(epsilon=2), spent)
    assert promised.used == pytest.approx(0.75)
    assert promised.share == pytest.approx(0.375)
    left = promised.left
    assert isinstance(left, dpf.PureDP)
    assert left.epsilon == pytest.approx(1.25)
    full = dataset(dpf.PureDP(epsilon=0.75), spent)
    assert full.left is None or full.left.size < 1e-9


def test_dataset__of_an_approximate_total_has_a_pure_epsilon_left() -> None:
    left = dataset(dpf.ApproxDP(epsilon=1, delta=1e-6)).left
    assert isinstance(left, dpf.PureDP)
    assert left.epsilon >= 1.0


def test_spend_of__refuses_an_exposure_with_more_noise_than_the_guarantee_needs() -> None:
    one = dpf.PureDP(epsilon=1)
    fitting = Exposure("laplace", 1, (Move(1, 2.0, 2, 1),))
    assert spend_of("d", one, "x", None, 1, fitting).exposure == fitting
    for wrong in (Exposure("laplace", 1, (Move(1, 4.0, 2, 1),)), Exposure("gaussian", 1, (Move(1, 2.0, 2, 1),))):
        with pytest.raises(ParameterError, match="exposure must be no smaller than"):
            spend_of("d", one, "x", None, 1, wrong)


@pytest.mark.parametrize(
    "wrong", [{"dataset": ""}, {"by": ""}, {"rho": -1.0}, {"max_items_per_person": 0}, {"neighbours": "both"}]
)
def test_spend_of__refuses_what_is_no_spend(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {
        "dataset": "d",
        "guarantee": dpf.PureDP(epsilon=1),
        "by": "x",
        "rho": None,
        "max_items_per_person": 1,
    }
    assert spend_of(**right).by == "x"
    with pytest.raises((ParameterError, TypeError)):
        spend_of(**right | wrong)


def test_now__does_not_go_back_behind_what_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpfrugal.budget.promises.clock", lambda: NOON.timestamp())
    assert now() == NOON
    assert now(NOON + timedelta(hours=1)) == NOON + timedelta(hours=1)
    assert now(NOON - timedelta(hours=1)) == NOON
