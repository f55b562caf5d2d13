"""What one person can move under which noise: as it is recorded, as it is added, and as a ledger reads it back."""

import json
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as distributions

import dpfrugal as dpf
from dpfrugal.budget.ledger_schema import seal_of
from dpfrugal.budget.person_moves import MOST_BUDGET, Exposure, Move, exposure_of, of_exposure
from dpfrugal.budget.promises import spend_of
from dpfrugal.estimators.keyed.sensitivity import keyed_exposure, keyed_sensitivity
from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.estimators.walk.dp_frugal import sensitivity_of, walk_exposure
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Sensitivity

GUARANTEES = [
    dpf.PureDP(epsilon=0.7),
    dpf.ZCDP(rho=0.1),
    dpf.ApproxDP(epsilon=1.0, delta=1e-6),
    dpf.ApproxDP(epsilon=0.9, delta=1e-5, calibration="classic"),
]


def made(kind: str, guarantee: dpf.Guarantee, **options: Any) -> Any:
    if kind == "keyed":
        return dpf.KeyedDPFrugal1U([0.5, 0.9], guarantee, keys=["a", "b"], **options)
    quantile = [0.5, 0.9, 0.99] if kind == "several" else 0.5
    return (dpf.PrivateQuantile if kind == "segments" else dpf.DPFrugal1U)(quantile, guarantee, **options)


def fill(estimator: Any, items: int = 20_000) -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, items)
    if isinstance(estimator, dpf.KeyedDPFrugal1U):
        estimator.update_many(["a", "b"] * (items // 2), values)
    else:
        estimator.update_many(values)
    estimator.release()


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("kind", ["one", "several", "keyed", "segments"])
@pytest.mark.parametrize("persons_items", [1, 3])
def test_exposure__records_the_noise_that_is_asked_of_opendp(
    kind: str, guarantee: dpf.Guarantee, persons_items: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every scale that a sampler is made for is on record, and no other; nor is a sampler used that was not made."""
    asked: list[tuple[str, float]] = []
    real = noise._opendp()

    def spied(name: str) -> Any:
        def make(*arguments: Any, scale: float) -> Any:
            asked.append((name.removeprefix("make_"), scale))
            return getattr(real, name)(*arguments, scale=scale)

        return make

    fake = type(real)(**{**vars(real), "make_gaussian": spied("make_gaussian"), "make_laplace": spied("make_laplace")})
    monkeypatch.setattr(noise, "_opendp", lambda: fake)
    noise.measurement.cache_clear()
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=20.0, delta=1e-4))
    try:
        fill(made(kind, guarantee, ledger=ledger, dataset="d", max_items_per_person=persons_items))
    finally:
        noise.measurement.cache_clear()
    (spend,) = ledger.dataset("d").spends
    assert spend.exposure is not None
    recorded = {(spend.exposure.noise, move.scale) for move in spend.exposure.moves}
    assert set(asked) <= recorded
    assert set(asked) == recorded or kind == "segments"  # of which one kind of segment may not have come


@pytest.mark.parametrize("guarantee", GUARANTEES[:3])
@pytest.mark.parametrize("items", [1, 2, 3])
def test_exposure__has_moves_that_together_come_to_the_sensitivity(guarantee: dpf.Guarantee, items: int) -> None:
    """What the largest moves of a budget come to, in ε or ρ, is what the noise was calibrated for."""
    machine = SegmentPlanner([0.5], guarantee, max_items_per_person=items)
    cases: list[tuple[Exposure | None, tuple[Sensitivity, ...]]] = [
        (walk_exposure(guarantee, 3, items), (sensitivity_of(3, items),)),
        (keyed_exposure(guarantee, 2, items, None), (keyed_sensitivity(2, items, None),)),
        (keyed_exposure(guarantee, 2, 1, items), (keyed_sensitivity(2, 1, items),)),
        (machine.exposure, machine.sensitivities),
    ]
    for exposure, sensitivities in cases:
        assert exposure is not None
        costs = [
            s.l1 / guarantee.noise_scale(s)
            if exposure.noise == "laplace"
            else s.l2_squared / (2 * guarantee.noise_scale(s) ** 2)
            for s in sensitivities
        ]
        assert exposure.size == pytest.approx(max(costs), rel=1e-12)


def test_exposure__is_not_recorded_where_it_could_not_be_worked_out() -> None:
    guarantee = dpf.ZCDP(rho=0.1)
    assert walk_exposure(guarantee, 1, MOST_BUDGET) is not None
    assert walk_exposure(guarantee, 1, 10**9) is None
    assert walk_exposure(guarantee, 5000, 1) is None
    assert keyed_exposure(guarantee, 1, 1, 10**9) is None
    assert walk_exposure(dpf.ZCDP(rho=1e-12), 1, 1) is None
    assert SegmentPlanner([0.5], guarantee, max_items_per_person=10**6).exposure is None


def test_exposure__is_not_recorded_for_discovered_keys_and_spends_by_hand(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=9.0, delta=1e-4))
    cost = dpf.ApproxDP(epsilon=1.0, delta=1e-6)
    keyed = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), discover_keys=cost, ledger=ledger, dataset="d")
    keyed.update_many(["a"] * 100, [1.0] * 100)
    keyed.release()
    ledger.spend("d", dpf.ZCDP(rho=0.1))
    assert [spend.exposure for spend in ledger.dataset("d").spends] == [None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"noise": "uniform"},
        {"budget": 0},
        {"budget": MOST_BUDGET + 1},
        {"budget": True},
        {"moves": ()},
        {"moves": (Move(2, 1.0, 1, 1),)},
        {"moves": (Move(1, 1.0, 0, 1),)},
        {"moves": (Move(1, 1.0, 1, 0),)},
        {"moves": (Move(1, 1.0, 1.5, 1),)},  # type: ignore[arg-type]
        {"moves": (Move(1, float("nan"), 1, 1),)},
        {"moves": (Move(1, float("inf"), 1, 1),)},
        {"moves": (Move(1, 1, 1, 1),)},
        {"moves": (Move(1, 1.0, 1, 1), Move(-1, 1.0, 1, 1))},
        {"moves": (Move(1, 1.0, 1, 1), Move(3, 1.0, 1, 1))},
    ],
)
def test_exposure__refuses_what_could_not_be_one(change: dict[str, Any]) -> None:
    sound = Exposure("gaussian", 2, (Move(1, 1.0, 1, 1), Move(2, 1.0, 2, 1)))
    with pytest.raises(ValueError, match="exposure"):
        replace(sound, **change)


def test_exposure__refuses_a_record_of_more_noise_than_was_promised() -> None:
    guarantee = dpf.ZCDP(rho=0.1)
    sound = walk_exposure(guarantee, 1, 1)
    assert sound is not None
    assert spend_of("d", guarantee, "me", None, 1, sound).exposure == sound
    louder = replace(sound, moves=(replace(sound.moves[0], scale=1.001 * sound.moves[0].scale),))
    smaller = replace(sound, moves=(replace(sound.moves[0], shift=1),))
    for wrong in (louder, smaller, replace(sound, noise="laplace")):
        with pytest.raises(dpf.ParameterError, match="more noise"):
            spend_of("d", guarantee, "me", None, 1, wrong)
    with pytest.raises(dpf.ParameterError, match="more noise"):
        spend_of("d", dpf.ApproxDP(epsilon=1.0, delta=1e-6), "me", None, 1, sound)  # an (ε, δ) needs its ρ
    with pytest.raises(dpf.ParameterError, match="more noise"):
        spend_of("d", dpf.PureDP(epsilon=1.0), "me", None, 1, sound)


@pytest.mark.parametrize("kind", ["one", "several", "keyed", "segments"])
def test_exposure__is_read_back_exactly(kind: str) -> None:
    guarantee = dpf.ZCDP(rho=0.3)
    exposure = {
        "one": walk_exposure(guarantee, 1, 1),
        "several": walk_exposure(guarantee, 3, 2),
        "keyed": keyed_exposure(guarantee, 2, 2, None),
        "segments": SegmentPlanner([0.5], guarantee).exposure,
    }[kind]
    record = json.loads(json.dumps(of_exposure(exposure)))
    assert exposure_of(record) == exposure
    assert exposure_of(None) is None
    wrong: list[Any] = [
        [],
        {},
        record | {"more": 1},
        record | {"budget": "1"},
        record | {"moves": [{}]},
        record | {"moves": 3},
    ]
    for bad in wrong:
        with pytest.raises(ValueError):  # noqa: PT011 - whichever it is
            exposure_of(bad)


def test_exposure__of_more_noise_is_damage_even_under_a_right_seal(tmp_path: Path) -> None:
    """Whoever can seal a row could as well write another guarantee; but no slip makes a total smaller unseen."""
    path = tmp_path / "budget.db"
    ledger = dpf.Ledger(path, total=dpf.ApproxDP(epsilon=9.0, delta=1e-6))
    fill(dpf.DPFrugal1U(0.5, dpf.ZCDP(rho=0.1), ledger=ledger, dataset="d"))
    with sqlite3.connect(path) as connection:
        ((record, lineage),) = connection.execute("SELECT record, lineage FROM spends").fetchall()
        fields = json.loads(record)
        fields["exposure"]["moves"][0]["scale"] = (2 * dpf.ZCDP(rho=0.1).noise_scale(2)).hex()
        changed = json.dumps(fields, ensure_ascii=False)
        link = seal_of(seal_of("chain", "d"), "d", lineage, changed)
        ((promised,),) = connection.execute("SELECT record FROM datasets").fetchall()
        connection.execute("UPDATE spends SET record = ?, seal = ?", (changed, link))
        connection.execute("UPDATE datasets SET head = ?, seal = ?", (link, seal_of("dataset", "d", promised, 1, link)))
    connection.close()
    with pytest.raises(dpf.LedgerError, match="damaged"):
        dpf.Ledger(path)


@pytest.mark.parametrize("kind", ["one", "segments"])
def test_exposure__is_carried_by_a_checkpoint(kind: str, tmp_path: Path) -> None:
    """Saved before its first noise, it spends after it was restored: with the noise that it has."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=9.0, delta=1e-6))
    first = made(kind, dpf.ZCDP(rho=0.1), ledger=ledger, dataset="d")
    first.save(tmp_path / "state")
    restored = type(first).load(tmp_path / "state", ledger=ledger)
    fill(restored)
    (spend,) = ledger.dataset("d").spends
    assert spend.exposure == first.account._spend.exposure
    assert spend.exposure is not None


def test_exposure__makes_a_ledger_say_what_dp_accounting_says_of_the_noise(tmp_path: Path) -> None:
    """Ten medians at ρ = 0.1: 7.285, not the 7.766 of their ρ."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=7.29, delta=1e-6))
    for _ in range(10):
        fill(dpf.DPFrugal1U(0.5, dpf.ZCDP(rho=0.1), ledger=ledger, dataset="d"), 10)
    spent = ledger.total_spent("d", delta=1e-6)
    truth = distributions.from_discrete_gaussian_mechanism(dpf.ZCDP(rho=0.1).noise_scale(2), sensitivity=2)
    assert spent.rule == "pld"
    assert spent.epsilon <= truth.self_compose(10).get_epsilon_for_delta(1e-6) + 1e-6
    assert spent.epsilon == pytest.approx(7.2854, abs=1e-4)
    with pytest.raises(dpf.BudgetExceeded):
        dpf.DPFrugal1U(0.5, dpf.ZCDP(rho=0.1), ledger=ledger, dataset="d")


def test_exposure__changes_nothing_where_spends_are_chosen_by_looking_or_totals_are_sums(tmp_path: Path) -> None:
    totals: list[tuple[dpf.Guarantee, dpf.Guarantee, bool]] = [
        (dpf.ApproxDP(epsilon=2.0, delta=1e-5), dpf.ApproxDP(epsilon=1.0, delta=1e-6), True),
        (dpf.ZCDP(rho=0.3), dpf.ZCDP(rho=0.1), False),
        (dpf.PureDP(epsilon=0.3), dpf.PureDP(epsilon=0.1), False),
    ]
    for number, (total, guarantee, adaptive) in enumerate(totals):
        ledger = dpf.Ledger(tmp_path / f"{number}.db", total=total, adaptive=adaptive)
        size = "rho" if isinstance(total, dpf.ZCDP) else "epsilon"
        fitting = int(Fraction(str(getattr(total, size))) / Fraction(str(getattr(guarantee, size))))
        for _ in range(fitting):
            fill(dpf.DPFrugal1U([0.5, 0.9], guarantee, ledger=ledger, dataset="d"), 10)
        with pytest.raises(dpf.BudgetExceeded):
            dpf.DPFrugal1U([0.5, 0.9], guarantee, ledger=ledger, dataset="d")
        assert {spend.rule for spend in ledger.dataset("d").spends} <= {"sum", "zcdp"}


@pytest.mark.parametrize("noise", ["uniform", None, ["laplace"], 1])
def test_exposure__of_an_unknown_noise_is_none(noise: Any) -> None:
    """Of a damaged record it may be anything."""
    assert Exposure("laplace", 1, (Move(1, 2.0, 2, 1),)).size == 1.0
    with pytest.raises(ValueError, match="not an exposure"):
        Exposure(noise, 1, (Move(1, 2.0, 2, 1),))
