"""The base of private estimators: an account is of one estimator, and for the noise that it was charged for."""

from pathlib import Path

import pytest

import dpfrugal as dpf
from dpfrugal.estimators.base import resume

ONE = dpf.PureDP(epsilon=1.0)


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    return dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=10.0))


def test_resume__lends_no_account_to_another_estimator(ledger: dpf.Ledger) -> None:
    """Else its noise would be drawn on a spend that stands for other items."""
    charged = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks")
    charged.update_many(range(1000))
    charged.release()
    other = dpf.DPFrugal1U(0.5, ONE)
    other.update_many(range(1000))
    with pytest.raises(dpf.PrivacyError, match="another one has it"):
        resume(other, charged.account)
    with pytest.raises(dpf.PrivacyError, match="an account of its own"):
        resume(charged, dpf.DPFrugal1U(0.5, ONE).account)
    assert not hasattr(other, "resume")
    assert ledger.dataset("clicks").used == 1.0


def test_resume__refuses_an_account_for_other_noise(ledger: dpf.Ledger) -> None:
    from dpfrugal.budget.spending import Account

    charged = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks")
    charged.update_many(range(10))
    restored = dpf.DPFrugal1U._of_contents(dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=50.0))._contents())
    account = Account.of_record(charged.account.to_record(), ledger)
    with pytest.raises(dpf.CheckpointError, match="other noise"):
        resume(restored, account)
    again = dpf.DPFrugal1U._of_contents(charged._contents())
    resume(again, account)
    assert again.release().items == 10
