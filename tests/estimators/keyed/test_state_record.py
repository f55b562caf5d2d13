"""Many walks on the ledger and in checkpoints: they go on exactly, and no row is released twice."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.raw_state import RawState
from dpfrugal.estimators.keyed.state_record import release_of_record, release_to_record, restore_record, to_record
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


# As an earlier version wrote them: streams that run today must go on after an update.
OLD_RECORD: dict[str, Any] = {
    "anchors": "AAAAAAAAFEAAAAAAAAAUQAAAAAAAABTAAAAAAAAA8L8=",
    "clock": 40,
    "coin_key": 10456931703713568484,
    "estimates": "BQAAAAAAAAAFAAAAAAAAAPv///////////////////8=",
    "farthest": 5,
    "public": None,
    "released_at": 40,
    "steps": "AAAAAA==",
    "widest": 1,
}
OLD_RELEASE = {
    "alphas": "AAAAAAAAKkAAAAAAAAAqQAAAAAAAACpAAAAAAAAAKkA=",
    "keys": None,
    "values": "AAAAAAAAFEAAAAAAAAAUQAAAAAAAABTAAAAAAAAA8L8=",
}


def test_state_record__a_stream_record_of_an_earlier_version_is_restored_and_written_alike() -> None:
    estimator = dpf.KeyedDPFrugal1U([0.5, 0.9], ONE, keys=["a", "b"], coin_seed=9)
    raw = RawState(estimator)
    restore_record(raw, OLD_RECORD)
    assert raw.walks.estimates.tolist() == [[5, 5], [-5, -1]]
    assert raw.walks.anchors.tolist() == [[5.0, 5.0], [-5.0, -1.0]]
    assert estimator.items == raw.walks.released_at == 40
    assert to_record(raw) == OLD_RECORD
    release = release_of_record(estimator, OLD_RELEASE)
    assert release["value"].to_pylist() == [5.0, 5.0, -5.0, -1.0]
    assert release["key"].to_pylist() == ["a", "a", "b", "b"]
    assert release_to_record(estimator, release) == OLD_RELEASE


def test_state_record__a_stream_record_holds_discovered_keys() -> None:
    cost: dict[str, Any] = {"discover_keys": FOUND, "adaptive_steps": False}
    raw = RawState(dpf.KeyedDPFrugal1U(0.5, ONE, **cost, coin_seed=1))
    raw.add_public_keys([])
    raw.add_public_keys(["x", "y"])
    raw.take(7, np.array([1], dtype=np.int32), np.array([[3]]))
    again = RawState(dpf.KeyedDPFrugal1U(0.5, ONE, **cost, coin_seed=2))
    again.add_public_keys([])
    restore_record(again, to_record(raw))
    assert again.estimator.keys.to_pylist() == ["x", "y"]
    assert again.walks.estimates.tolist() == [[0], [3]]
    assert again.walks.path == raw.walks.path
    assert again.estimator.items == 7
    with pytest.raises(ValueError, match="reshape"):
        restore_record(again, to_record(raw) | {"estimates": OLD_RECORD["estimates"]})
