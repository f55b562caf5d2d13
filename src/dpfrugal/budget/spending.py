"""An estimator's account: it spends once, and records in the ledger every time that noise is about to be drawn.

An estimator and everything restored from its checkpoints are one *lineage*, with one spend and one generation
counter. The counter is incremented in the ledger, durably, before noise is drawn, and only by a copy that knows its
latest value: of all copies of the same raw items one goes on, and the others are refused (docs/proofs.md, Theorem 12).
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dpfrugal.budget.ledger import STALE, Ledger
from dpfrugal.budget.person_moves import Exposure, exposure_of, of_exposure
from dpfrugal.budget.promises import Spend, spend_of
from dpfrugal.budget.spend_facts import checked_asked
from dpfrugal.errors import DPFrugalError, LedgerError, ParameterError, ParameterTypeError, PrivacyError, ReplayError
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from dpfrugal.storage.json_values import integer_of

SETTLED = "settled"


class Account:
    """The account that a private estimator is charged to; without a ledger it only counts generations."""

    def __init__(self, ledger: Ledger | None, spend: Spend | None, ledger_name: str | None = None) -> None:
        self._ledger, self._spend = ledger, spend
        self._ledger_name = ledger_name if ledger is None else ledger.name  # which ledger the spend is in
        self._lineage = os.urandom(16).hex()
        self._holder = os.urandom(16).hex()  # never saved: no two objects share it
        self.generation = 0
        self._held = False
        self._settled = 0  # of a stream: the generation of its newest recorded batch
        self._spent_before = False  # before the checkpoint that this was restored from
        self.exposure: Exposure | None = None if spend is None else spend.exposure
        self.stale = False  # noise was drawn after the checkpoint that this was restored from

    @classmethod
    def opened(
        cls,
        ledger: Ledger | None,
        dataset: str | None,
        guarantee: Guarantee,
        *sensitivities: Sensitivity,
        by: str,
        max_items_per_person: int = 1,
        exposure: Exposure | None = None,
        neighbours: Neighbours = "replace",
        asked: Mapping[str, Any] | None = None,
    ) -> "Account":
        """The account of a new estimator; an error if the dataset's total does not cover it now.

        ``sensitivities`` are those of numbers with noise of the guarantee's kind. Without any, as for choices, nothing
        but the guarantee is claimed. ``exposure`` is what one person can change in its transcripts, and the noise on
        it, where that is known. ``asked`` are public facts for the ledger's history: column, quantiles, source.
        """
        if ledger is None:
            if dataset is not None:
                raise ParameterError("dataset is the name of a dataset in a ledger: give ledger= too.")
            account = cls(None, None)
            account.exposure = exposure
            return account
        if not isinstance(ledger, Ledger):
            raise ParameterTypeError(f"ledger must be a Ledger, not {type(ledger).__name__}.")
        if dataset is None:
            raise ParameterError("ledger needs the name of the dataset that is spent on: give dataset= too.")
        spend = spend_of(
            *(dataset, guarantee, by, guarantee.noise_rho(*sensitivities), max_items_per_person, exposure),
            neighbours=neighbours,
            asked=asked,
        )
        ledger.check(spend)
        return cls(ledger, spend)

    def held(self) -> "Account":
        """The same account, for the one estimator that may draw noise on it."""
        if self._held:
            raise PrivacyError("An account is of one estimator; another one has it.")
        self._held = True
        return self

    @property
    def charged(self) -> bool:
        """Whether it spends in a ledger."""
        return self._spend is not None

    @property
    def dataset(self) -> str | None:
        """The dataset that is spent on."""
        return None if self._spend is None else self._spend.dataset

    def also_asked(self, **facts: Any) -> None:
        """More public facts for the ledger's history, before the spend: column and source, from whoever knows them."""
        if self._spend is not None:
            self._spend = replace(self._spend, asked=checked_asked(self._spend.asked | facts))

    def before_noise(self) -> None:
        """Spend, or record one more generation; it is on disk when this returns, and only then may noise be drawn."""
        if self._ledger is None or self._spend is None:
            self.generation += 1
            return
        known = replace(self._spend, generation=self.generation)
        self.generation = self._ledger.advance(known, self._lineage, self._holder)

    def spend_again(self) -> None:
        """Spend the same once more, before ``before_noise``: what was spent covers no more noise than was drawn."""
        if self._ledger is not None and self._spend is not None:
            spend = self._spend
            self._ledger.spend(
                spend.dataset,
                spend.guarantee,
                by=spend.by,
                rho=spend.rho,
                max_items_per_person=spend.max_items_per_person,
                neighbours=spend.neighbours,
                asked=spend.asked,
            )

    def prove_newest(self) -> None:
        """Refuse to replace a checkpoint by this state if another copy has drawn noise since: it is behind that one."""
        if self._ledger is None or self._spend is None:
            return
        generation, holder = self._ledger.last_noise(self._lineage)
        # Noise of this object's own, after which it was interrupted, is no other copy's.
        if generation > self.generation and holder != self._holder:
            raise ReplayError(
                "Another process has continued from this checkpoint and drawn noise: what this one holds is older, so "
                "it was not saved."
            )

    def begin_batch(self, batch: int) -> None:
        """Noise is drawn for this batch of a stream from now on."""
        self._settled, self._holder = self.generation, f"{self._holder.partition('@')[0]}@{batch}"

    def settle_batch(self) -> None:
        """The batch is recorded and may be shown: whoever continues from before it is refused from now on."""
        if self._ledger is not None and self._spend is not None and self.generation > self._settled:
            known = replace(self._spend, generation=self.generation)
            self._ledger.settle(known, self._lineage, self._holder, SETTLED)
        self._settled = self.generation

    def prove_batch_fresh(self, newest: int) -> None:
        """Refuse the state after batch ``newest`` of a stream if a later one may have been shown.

        Noise that was drawn last and is not settled was shown by nobody, and once it is claimed here it cannot be. If
        it was drawn for the next batch, this state is stale; if for this one, the batch's record is there to be shown.
        """
        if self._ledger is None:
            return
        if self._ledger_name is None:
            raise LedgerError("This checkpoint was never charged to a ledger: continue without one, or begin anew.")
        if self._ledger.name != self._ledger_name:
            raise LedgerError("This checkpoint is charged to another ledger.")
        known = self.generation
        generation, holder = self._ledger.last_noise(self._lineage)
        if generation < known:
            raise LedgerError("This ledger is older than the checkpoint: it was restored from a copy.")
        batch = holder.partition("@")[2]
        if generation > known and batch not in (str(newest), str(newest + 1)):
            raise ReplayError(
                "This checkpoint is an older copy: releases were shown since, and it would show the same rows again. "
                "Continue from the newest one, or begin anew."
            )
        self.generation = self._settled = generation
        self.stale = generation > known and batch == str(newest + 1)
        if batch in (str(newest), str(newest + 1)) and self._spend is not None:
            claim = f"{self._holder}@{batch}"
            self._ledger.settle(replace(self._spend, generation=generation), self._lineage, holder, claim)
            self._holder, self._settled = claim, generation - (batch == str(newest))

    @contextmanager
    def owning_up(self) -> Iterator[None]:
        """An error raised in here after the spend was made gets a note that says so."""
        try:
            yield
        except BaseException as error:
            if said := self._note_of_spend():
                error.add_note(said)
            raise

    @contextmanager
    def before_spending(self) -> Iterator[None]:
        """An error raised in here, where rows are read and nothing is spent yet, gets a note that says so."""
        try:
            yield
        except DPFrugalError as error:
            if self._ledger is not None and self._spend is not None:
                error.add_note(f"Nothing was spent on {self._spend.dataset!r} in {self._ledger.path}.")
            raise

    def _note_of_spend(self) -> str:
        """Asks the ledger, as an interrupt may have come between its commit and its answer."""
        if self._ledger is None or self._spend is None or self._spent_before:
            return ""
        spent = f"spent on {self._spend.dataset!r} in {self._ledger.path} before that"
        try:
            if not self._ledger.generation(self._lineage):
                return ""
            standing = self._ledger.dataset(self._spend.dataset)
        except DPFrugalError:
            return f"{self._spend.guarantee} may have been {spent}; the ledger could not be asked."
        return f"{self._spend.guarantee} was {spent}; {standing.left or 'nothing'} is left of {standing.total}."

    def to_record(self) -> dict[str, Any]:
        """For a checkpoint."""
        spend = self._spend
        return {
            "lineage": self._lineage,
            "generation": self.generation,
            "ledger": self._ledger_name,
            "spend": None
            if spend is None
            else {
                "dataset": spend.dataset,
                "guarantee": spend.guarantee.to_record(),
                "by": spend.by,
                "rho": spend.rho,
                "exposure": of_exposure(spend.exposure),
                "max_items_per_person": spend.max_items_per_person,
                "neighbours": spend.neighbours,
                "asked": spend.asked,
            },
        }

    @classmethod
    def of_record(cls, record: Any, ledger: Ledger | None) -> "Account":
        """The account of what was restored from a checkpoint; ``prove_fresh`` must follow."""
        spend = record["spend"]
        if spend is not None:
            spend = spend_of(
                *(spend["dataset"], Guarantee.of_record(spend["guarantee"]), spend["by"], spend["rho"]),
                *(spend["max_items_per_person"], exposure_of(spend["exposure"])),
                neighbours=spend.get("neighbours", "replace"),
                asked=spend.get("asked", {}),
            )
        if not (record["ledger"] is None or isinstance(record["ledger"], str)) or not isinstance(
            record["lineage"], str
        ):
            raise ValueError("not an account")
        account = cls(None, spend, record["ledger"])
        account._ledger, account._lineage = ledger, record["lineage"]
        account.generation = integer_of(record["generation"])
        account._spent_before = account.generation > 0
        return account

    def prove_fresh(self, *, accept_replay_risk: bool, forget_if_stale: bool) -> None:
        """Refuse a checkpoint whose items may have been released since, unless they are to be forgotten."""
        if self._ledger is not None and self._ledger_name is None:
            raise LedgerError("This checkpoint was never charged to a ledger: load it without one, or begin anew.")
        if self._ledger is None:
            if not accept_replay_risk:
                without = (
                    "has no ledger" if self._ledger_name is None else "is charged to a ledger, and ledger= is missing"
                )
                raise ReplayError(
                    f"This checkpoint {without}, so it may be an old copy whose items were already released. "
                    "If you know that it is not, pass accept_replay_risk=True."
                )
            return
        if self._ledger.name != self._ledger_name:
            raise LedgerError("This checkpoint is charged to another ledger.")
        generation = self._ledger.generation(self._lineage)
        if generation < self.generation:
            raise LedgerError("This ledger is older than the checkpoint: it was restored from a copy.")
        self.stale = generation > self.generation
        if self.stale and not forget_if_stale:
            raise ReplayError(STALE)
        self.generation = generation
