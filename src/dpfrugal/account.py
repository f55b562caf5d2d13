"""An estimator's account: it spends once, and notes in the ledger every time that noise is taken.

An estimator and everything restored from its checkpoints are one *lineage*, with one spend and one generation
counter. The counter moves in the ledger, durably, before noise is taken, and only for whoever has seen the last move;
so of all copies of the same raw items one goes on, and the others are refused (docs/proofs.md, Theorem 12).
"""

import os
from dataclasses import replace

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.guarantees import ApproxDP, Guarantee, Sensitivity
from dpfrugal.ledger import Ledger
from dpfrugal.ledger_rows import Spend, spend_of


def concentrated(guarantee: Guarantee, *sensitivities: Sensitivity) -> float | None:
    """The ρ of zCDP that Gaussian noise for (ε, δ) has besides, when each item meets one of these sensitivities."""
    if not isinstance(guarantee, ApproxDP):
        return None
    return max(s.l2_squared / (2 * guarantee.noise_scale(s) ** 2) * (1 + 1e-12) for s in sensitivities)


class Account:
    """What a private estimator is charged to; without a ledger it only counts its generations."""

    def __init__(self, ledger: Ledger | None, spend: Spend | None, lineage: str | None = None) -> None:
        self._ledger, self._spend = ledger, spend
        self._lineage = lineage or os.urandom(16).hex()
        self._holder = os.urandom(16).hex()  # never saved: no two objects share it
        self.generation = 0

    @classmethod
    def opened(
        cls,
        ledger: Ledger | None,
        dataset: str | None,
        guarantee: Guarantee,
        *sensitivities: Sensitivity,
        by: str,
        max_items_per_person: int = 1,
    ) -> "Account":
        """The account of a new estimator, refused if the dataset's total would not cover it now."""
        if ledger is None:
            if dataset is not None:
                raise ParameterError("dataset is the name of a dataset in a ledger: give ledger= too.")
            return cls(None, None)
        if not isinstance(ledger, Ledger):
            raise ParameterTypeError(f"ledger must be a Ledger, not {type(ledger).__name__}.")
        if dataset is None:
            raise ParameterError("ledger needs the name of the dataset that is spent on: give dataset= too.")
        rho = concentrated(guarantee, *sensitivities)
        ledger.check(dataset, guarantee, by=by, rho=rho, max_items_per_person=max_items_per_person)
        return cls(ledger, spend_of(dataset, guarantee, by, rho, max_items_per_person))

    def before_noise(self) -> None:
        """Spend, or note one more generation; on disk when this returns, and only then may noise be taken."""
        if self._ledger is None or self._spend is None:
            self.generation += 1
            return
        known = replace(self._spend, generation=self.generation)
        self.generation = self._ledger.advance(known, self._lineage, self._holder)
