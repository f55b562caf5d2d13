"""The checkpoint of ``watch``: saved whenever noise was drawn, and before and after a release is printed.

The order of events: the ledger records a generation, noise is drawn, the re-anchored state is saved, the release is
printed, and that it was printed is saved. After a kill before the state was saved, the checkpoint is stale: its items
are dropped, and nobody has seen the noise drawn for them. After a kill before "printed" was saved, the same release is
printed again.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from dpfrugal.errors import CheckpointError, CheckpointWarning, ParameterError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U

Estimator = TypeVar("Estimator", bound="PrivateQuantile | DPFrugal1U | KeyedDPFrugal1U")

# Seconds between checkpoints while items arrive and nothing is released: a kill loses no more than that.
INTERVAL = 1.0


class WatchCheckpoint:
    """The checkpoint of a run of ``watch``; without a file, its methods do nothing."""

    file: Path | None
    shown_items: int
    unprinted: bool

    def __init__(self, file: Path | None, ledger: "Ledger | None") -> None:
        self.file, self.ledger = file, ledger
        self._generation, self._saved_at, self._printed = 0, 0.0, True
        self.shown_items = 0  # at the last release
        self.unprinted = False  # the last release may not have been printed
        self.went_on_at: int | None = None  # the number of items in the checkpoint that this run continues

    @classmethod
    def of_options(cls, file: Path | None, ledger: "Ledger | None", *, accept_replay_risk: bool) -> "WatchCheckpoint":
        """--checkpoint with --ledger, or with --accept-replay-risk."""
        if file is not None and ledger is None and not accept_replay_risk:
            raise ParameterError(
                "--checkpoint needs --ledger and --dataset, which prevent a copy from releasing the same items again; "
                "without them use --accept-replay-risk."
            )
        return cls(file, ledger)

    def estimator(self, make: "Callable[[Ledger | None, str | None], Estimator]", dataset: str | None) -> Estimator:
        """The estimator in the checkpoint if there is one, else a new one."""
        if self.file is None or not (self.file.exists() or self.file.is_symlink()):
            estimator = make(self.ledger, dataset)
        else:
            estimator = self._restored(self.file, make(None, None), dataset)
        self.save(estimator)
        return estimator

    def _restored(self, file: Path, asked: Estimator, dataset: str | None) -> Estimator:
        from dpfrugal.cli.stderr_notes import note, notes
        from dpfrugal.storage.json_values import integer_of

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CheckpointWarning)
            found, saved = type(asked).load_with_notes(file, self.ledger, accept_replay_risk=True, forget_if_stale=True)
        for warning in caught:
            note(str(warning.message))
        if found.parameters() != asked.parameters() or found.account.dataset != dataset:
            raise CheckpointError(f"{file} was made with other options: use the same options, or another file.")
        try:
            shown, items = integer_of(saved["shown_items"]), integer_of(saved["items"])
            self._printed = saved["printed"] is True
        except (LookupError, TypeError, ValueError):
            raise CheckpointError(f"{file} is not a checkpoint of dpfrugal watch; use another file.") from None
        self.shown_items, self.unprinted = min(shown, found.items), not self._printed
        self.went_on_at = found.items
        notes.print(f"Continuing from {file}: {found.items:,} items.")
        if found.account.stale:
            note(
                f"noise was drawn after {file} was saved: "
                f"{items - found.items:,} items in it are dropped, so that none is released twice."
            )
        if self.unprinted:
            note("the first line may have been printed before; it is the same release.")
        return cast(Estimator, found)

    def keep(self, estimator: "PrivateQuantile | DPFrugal1U | KeyedDPFrugal1U") -> None:
        """Save if noise was drawn since the last time, or if that was long ago."""
        late = time.monotonic() - self._saved_at > INTERVAL
        if late or estimator.account.generation != self._generation:
            self.save(estimator)

    def save(
        self,
        estimator: "PrivateQuantile | DPFrugal1U | KeyedDPFrugal1U",
        *,
        released: bool = False,
        printed: bool = True,
    ) -> None:
        """Write the checkpoint; with ``released``, after a release that was ``printed`` or not yet."""
        if released:
            self.shown_items, self._printed = estimator.items, printed
        if self.file is not None:
            notes = {"shown_items": self.shown_items, "printed": self._printed, "items": estimator.items}
            estimator.save_with_notes(self.file, notes)
            self._generation, self._saved_at = estimator.account.generation, time.monotonic()
