"""The checkpoint of ``watch``: saved whenever noise was drawn, before and after a release is printed, and on a timer.

The order of events: the ledger records a generation, noise is drawn, the state without the released items is saved
with what is to be printed, it is printed, and that it was printed is saved. After a kill before the state was saved,
the checkpoint is stale: its items are dropped, and nobody has seen the noise drawn for them. After a kill before
"printed" was saved, the same release is printed again.

While nothing is released the state is saved every second where an item has come since, also while the stream is silent;
less often where saving is slow: a twentieth of the time at most is spent on it.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dpfrugal.errors import CheckpointError, CheckpointWarning, ParameterError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.base import PrivateEstimator

Estimator = TypeVar("Estimator", bound="PrivateEstimator")

# Seconds between checkpoints while nothing is released: a kill loses no more than the items of that time.
INTERVAL = 1.0
# How many times as long as a save takes, the next one waits.
SPARING = 20.0


class CheckpointFile:
    """Where a run of ``watch`` saves, and when; without a file, its methods do nothing."""

    file: Path | None

    def __init__(self, file: Path | None, ledger: "Ledger | None") -> None:
        self.file, self.ledger = file, ledger
        self._generation, self._saved_at, self._took = 0, 0.0, 0.0
        self._unsaved = False  # an item came since

    @classmethod
    def check(cls, file: Path | None, ledger: "Ledger | None", *, accept_replay_risk: bool) -> None:
        """--checkpoint with --ledger, or with --accept-replay-risk."""
        if file is not None and ledger is None and not accept_replay_risk:
            raise ParameterError(
                "--checkpoint needs --ledger and --dataset, which prevent a copy from releasing the same items again; "
                "without them use --accept-replay-risk."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only process that writes it."""
        from dpfrugal.storage.locks import checkpoint_lock

        if self.file is None:
            yield
            return
        with checkpoint_lock(self.file):
            yield

    def estimator(self, make: "Callable[[Ledger | None, str | None], Estimator]", dataset: str | None) -> Estimator:
        """The estimator in the checkpoint if there is one, else a new one."""
        if self.file is None or not (self.file.exists() or self.file.is_symlink()):
            estimator = make(self.ledger, dataset)
            estimator.account.also_asked(source="standard input")
        else:
            estimator = self._restored(self.file, make(None, None), dataset)
        self._write(estimator)
        return estimator

    def _restored(self, file: Path, asked: Estimator, dataset: str | None) -> Estimator:
        from dpfrugal.cli.terminal.stderr_notes import note

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CheckpointWarning)
            found, saved = type(asked).load_with_notes(file, self.ledger, accept_replay_risk=True, forget_if_stale=True)
        for warning in caught:
            note(str(warning.message))
        if found.parameters() != asked.parameters() or found.account.dataset != dataset:
            raise CheckpointError(f"{file} was made with other options: use the same options, or another file.")
        try:
            self._continue(cast(Any, found), saved)
        except (LookupError, TypeError, ValueError):
            raise CheckpointError(f"{file} is not a checkpoint of dpfrugal watch; use another file.") from None
        return found

    def _continue(self, found: Any, saved: dict[str, Any]) -> None:
        """Take over the notes of a checkpoint, and say what continues."""
        raise NotImplementedError

    def _notes(self, estimator: Any) -> dict[str, Any]:
        """The notes that are saved beside the state."""
        raise NotImplementedError

    def keep(self, estimator: "PrivateEstimator", *, arrived: bool = True) -> None:
        """Save if noise was drawn since the last time, or if it is time and an item has arrived."""
        self._unsaved |= arrived
        due = time.monotonic() - self._saved_at > max(INTERVAL, SPARING * self._took)
        if (due and self._unsaved) or estimator.account.generation != self._generation:
            self._write(estimator)

    def kept_if_unwritten(self, lines: list[str], dataset: str | None) -> AbstractContextManager[None]:
        """Print the lines in here; if that fails they are kept: in the checkpoint, the ledger or on standard error."""
        from dpfrugal.cli.terminal.output_files import flushed, kept_if_unwritten

        return flushed() if self.file else kept_if_unwritten(lambda: lines, self.ledger, dataset)

    def _write(self, estimator: "PrivateEstimator") -> None:
        if self.file is not None:
            begun = time.monotonic()
            estimator.save_with_notes(self.file, self._notes(estimator))
            self._saved_at = time.monotonic()
            self._took = self._saved_at - begun
        self._generation, self._unsaved = estimator.account.generation, False


class WatchCheckpoint(CheckpointFile):
    """That of one running estimate: a release that may not have been printed is made again from the state."""

    def __init__(self, file: Path | None, ledger: "Ledger | None") -> None:
        super().__init__(file, ledger)
        self._printed = True
        self.shown_items = 0  # at the last release
        self.unprinted = False  # the last release may not have been printed
        self.went_on_at: int | None = None  # the number of items in the checkpoint that this run continues

    def _continue(self, found: Any, saved: dict[str, Any]) -> None:
        from dpfrugal.cli.terminal.stderr_notes import note, notes
        from dpfrugal.storage.json_values import integer_of

        shown, items = integer_of(saved["shown_items"]), integer_of(saved["items"])
        self._printed = saved["printed"] is True
        self.shown_items, self.unprinted = min(shown, found.items), not self._printed
        self.went_on_at = found.items
        notes.print(f"Continuing from {self.file}: {found.items:,} items.")
        if found.account.stale:
            note(
                f"noise was drawn after {self.file} was saved: "
                f"{items - found.items:,} items in it are dropped, so that none is released twice."
            )
        if self.unprinted:
            note("the first line may have been printed before; it is the same release.")

    def _notes(self, estimator: Any) -> dict[str, Any]:
        return {"shown_items": self.shown_items, "printed": self._printed, "items": estimator.items}

    def save(self, estimator: "PrivateEstimator", *, released: bool = False, printed: bool = True) -> None:
        """Write the checkpoint; with ``released``, after a release that was ``printed`` or not yet."""
        if released:
            self.shown_items, self._printed = cast(Any, estimator).items, printed
        self._write(estimator)


class WindowCheckpoint(CheckpointFile):
    """That of windows: with the lines of a window that may not have been printed, and the end of the open one."""

    def __init__(self, file: Path | None, ledger: "Ledger | None") -> None:
        super().__init__(file, ledger)
        self.unprinted: list[str] = []  # lines of the last window
        self.items = 0  # of the open window
        self.end: float | None = None  # of the open window, by the clock
        self.restored = False

    @staticmethod
    def counted(found: Any, number: int) -> str:
        """A number of items; without the number where it is private."""
        from dpfrugal.cli.terminal.stderr_notes import counted

        return "items" if found.items is None else counted(number, "item")

    def _continue(self, found: Any, saved: dict[str, Any]) -> None:
        from dpfrugal.cli.terminal.stderr_notes import counted, note, notes
        from dpfrugal.storage.json_values import float_of, integer_of, list_of

        self.unprinted = [str(line) for line in list_of(saved["unprinted"])]
        self.items = integer_of(saved["items_in_window"])
        self.end = None if saved["end"] is None else float_of(saved["end"])
        self.restored = True
        notes.print(
            f"Continuing from {self.file}: {counted(found.windows_released, 'window')} released, "
            f"{self.counted(found, self.items)} in the open one."
        )
        if found.account.stale:
            note(
                f"a window was released after {self.file} was saved: "
                f"{self.counted(found, self.items)} in it are dropped, so that none is released twice."
            )
            self.items = 0
        if self.unprinted:
            note("the first window may have been printed before; it is the same release.")

    def _notes(self, estimator: Any) -> dict[str, Any]:
        from dpfrugal.storage.json_values import of_float

        end = None if self.end is None else of_float(self.end)
        return {"unprinted": self.unprinted, "items_in_window": self.items, "end": end}

    def save(self, estimator: "PrivateEstimator", unprinted: list[str] | None = None) -> None:
        """Write the checkpoint, with the lines that are about to be printed."""
        self.unprinted = unprinted or []
        self._write(estimator)
