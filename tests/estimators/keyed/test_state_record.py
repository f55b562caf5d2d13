"""Many walks on the ledger and in checkpoints: they go on exactly, and no row is released twice."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.privacy import noise
from tests.support.command_line import refused, run

ONE = dpf.PureDP(epsilon=1.0)
FOUND = dpf.ApproxDP(epsilon=1.0, delta=1e-6)
NAMES = np.array(["a", "b", "c", "d"])
rng = np.random.default_rng(8)
ROWS = NAMES[rng.integers(0, 4, 6_000)], rng.normal(50, 5, 6_000), rng.integers(0, 900, 6_000)
MAKERS: dict[str, dict[str, Any]] = {
    "declared": {"keys": NAMES[:3].tolist(), "start": [40.0, 50.0, 60.0]},
    "numbers": {"keys": [7, 9]},
    "discovered": {"discover_keys": FOUND, "max_items_per_person": 3, "max_keys_per_person": 2},
    "fixed steps": {"keys": NAMES.tolist(), "adaptive_steps": False, "nan_policy": "omit", "threads": 2},
}


def make(name: str, **options: Any) -> dpf.KeyedDPFrugal1U:
    return dpf.KeyedDPFrugal1U([0.9, 0.5], ONE, decimals=1, coin_seed=4, **MAKERS[name], **options)


def feed(estimator: dpf.KeyedDPFrugal1U, name: str, first: int, last: int) -> None:
    keys, values, people = (column[first:last] for column in ROWS)
    if name == "numbers":
        keys = np.searchsorted(NAMES, keys) + 6
    estimator.update_many(keys, values, person=people if name == "discovered" else None)


def tape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise from a tape, so that two runs can be compared; who of a person's rows is taken, too."""
    draws = np.random.default_rng(3)
    monkeypatch.setattr(noise, "add_noise_to_many", lambda raw, *_: raw + draws.integers(-4, 5, raw.size))
    monkeypatch.setattr(noise, "add_noise", lambda raw, *_: [x + int(draws.integers(-4, 5)) for x in raw])
    monkeypatch.setattr("dpfrugal.keys.person_limits.secrets.randbits", lambda _: 5)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("cut", [0, 1_000, 3_500])
def test_state_record__goes_on_exactly(name: str, cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_through(*, restore: bool) -> list[Any]:
        tape(monkeypatch)
        estimator, seen = make(name), []
        feed(estimator, name, 0, min(cut, 1_500))
        if cut > 1_500:
            seen.append(estimator.release())
            feed(estimator, name, 1_500, cut)
        if restore:
            estimator.save(tmp_path / "k.private")
            estimator = dpf.KeyedDPFrugal1U.load(tmp_path / "k.private", accept_replay_risk=True)
            if estimator._person_limits is not None:  # sampling goes on anew; here as before
                estimator._person_limits._order = np.random.default_rng(6)
        elif estimator._person_limits is not None:
            estimator._person_limits._order = np.random.default_rng(6)
        if seen and cut == 1_500:
            seen.append(estimator.release())
        feed(estimator, name, cut, 6_000)
        seen += [estimator.release(), estimator.keys, estimator.items, estimator.set_aside, estimator.guarantee]
        feed(estimator, name, 0, 500)
        return [*seen, estimator.release()]

    for was, now in zip(run_through(restore=False), run_through(restore=True), strict=True):
        assert was.equals(now, check_metadata=True) if isinstance(was, pa.Table) else was == now


@pytest.mark.parametrize("name", ["declared", "discovered"])
def test_state_record__that_is_stale_is_refused_or_forgets(name: str, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=2.0, delta=1e-6))
    k = make(name, ledger=ledger, dataset="clicks")
    k.update_many(ROWS[0][:2_000], ROWS[1][:2_000])
    first = k.release()
    k.update_many(ROWS[0][2_000:4_000], ROWS[1][2_000:4_000])
    k.save(tmp_path / "k.private")
    k.release()
    with pytest.raises(dpf.ReplayError, match="stale"):
        dpf.KeyedDPFrugal1U.load(tmp_path / "k.private", ledger=ledger)
    restored = dpf.KeyedDPFrugal1U.load(tmp_path / "k.private", ledger=ledger, forget_if_stale=True)
    assert restored.items == 2_000
    assert restored.release().equals(first)
    state = restored._state
    assert np.array_equal(state.estimates, np.rint(state.anchors * 10).astype(np.int64))
    if restored._discovery is not None:
        assert not restored._discovery.counts().any()
    assert ledger.dataset("clicks").claims[0].guarantee == (
        ONE if name == "declared" else dpf.ApproxDP(epsilon=2.0, delta=1e-6)
    )
    assert len(ledger.dataset("clicks").spends) == 1


def test_keyed_dp_frugal__spends_the_budget_before_any_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=2.0, delta=1e-6))
    k = make("discovered", ledger=ledger, dataset="clicks")
    feed(k, "discovered", 0, 100)
    spent: list[int] = []
    for name in ("add_noise", "add_noise_to_many"):
        real = getattr(noise, name)

        def watched(*given: Any, real: Any = real) -> Any:
            spent.append(len(ledger.dataset("clicks").spends))
            return real(*given)

        monkeypatch.setattr(noise, name, watched)
    k.release()
    assert spent
    assert set(spent) == {1}
    with pytest.raises(dpf.BudgetExceeded):
        make("discovered", ledger=ledger, dataset="clicks")


def test_keyed_dp_frugal__covers_a_person_wherever_the_rows_lie(tmp_path: Path) -> None:
    """Two rows in each of three keys cover any two rows of a person, but not any three: those may be in one key."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=ONE, max_items_per_person=3)
    for items, keys in ((2, 3), (3, 2)):
        with pytest.raises(dpf.ParameterError, match="protects less"):
            make("declared", ledger=ledger, dataset="c", max_items_per_person=items, max_keys_per_person=keys)
    for items, most in ((3, 3), (3, None), (4, 3)):
        make("declared", ledger=ledger, dataset="c", max_items_per_person=items, max_keys_per_person=most)


def test_keyed_dp_frugal__refuses_what_cannot_be_charged_or_saved(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ZCDP(rho=1.0))
    with pytest.raises(dpf.ParameterError, match="discover_keys"):
        dpf.KeyedDPFrugal1U(0.5, dpf.ZCDP(rho=0.1), discover_keys=FOUND, ledger=ledger, dataset="clicks")
    with pytest.raises(dpf.CheckpointError, match="cannot be saved"):
        dpf.KeyedDPFrugal1U(0.5, ONE, keys=[("a", 1), ("b", 2)]).save(tmp_path / "k.private")
    make("declared").save(tmp_path / "k.private")
    with pytest.raises(dpf.CheckpointError, match="not of PrivateQuantile"):
        dpf.PrivateQuantile.load(tmp_path / "k.private", accept_replay_risk=True)


def test_watch_by__goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    keys, ledger, lines = (
        tmp_path / "keys.txt",
        tmp_path / "budget.db",
        "".join(f"{'ab'[i % 2]} {i % 7}\n" for i in range(250)),
    )
    keys.write_text("a\nb\n")
    options = [
        "watch",
        "--by",
        "--keys",
        keys,
        "-q",
        0.5,
        "--epsilon",
        1,
        "--every",
        100,
        "--algorithm",
        "dp-frugal-1u",
    ]
    options += ["--checkpoint", tmp_path / "w.private", "--ledger", ledger, "--dataset", "clicks"]
    run("ledger", "add", ledger, "clicks", "--epsilon", 1)
    first = run(*options, text=lines)
    assert [line.split("\t")[:2] for line in first.stdout.splitlines()][-2:] == [["250", "a"], ["250", "b"]], (
        first.stderr
    )
    second = run(*options, text=lines)
    assert [line.split("\t")[0] for line in second.stdout.splitlines()][::2] == ["350", "450", "500"]
    keys.write_text("a\nc\n")
    assert "other options" in refused(*options, text=lines)


def test_state_record__that_is_stale_and_counts_people_cannot_go_on(tmp_path: Path) -> None:
    """Rows that were taken after the checkpoint are not in its counts: a person could have more than the bound."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=2.0, delta=1e-6))
    k = make("discovered", ledger=ledger, dataset="clicks")
    feed(k, "discovered", 0, 100)
    k.save(tmp_path / "k.private")
    k.release()
    with pytest.raises(dpf.ReplayError, match="rows per person"):
        dpf.KeyedDPFrugal1U.load(tmp_path / "k.private", ledger=ledger, forget_if_stale=True)
