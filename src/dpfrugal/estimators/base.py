"""The base of every private estimator: it spends, releases nothing twice, and is saved and loaded.

A copy, a pickle or a forked process would hold the same raw items and could release them again with fresh noise; a
nested call, or one from a second thread at the same time, would see half a batch. Copies, pickles, forks and nested
calls are refused; threads take turns.

The command line uses ``account``, ``parameters`` and the notes of a checkpoint. All of these are public values. Raw
state leaves an estimator only as a checkpoint, or as what it hands over to be merged, never to be shown.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn, Self

from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import CheckpointError, PrivacyError
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.storage import checkpoint_file
from dpfrugal.storage.checkpoint_file import Contents

forks: int = 0


def _count_fork() -> None:
    global forks
    forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class PrivateEstimator:
    """What every private estimator inherits.

    Before it draws noise it must call ``self._account.before_noise()``. To be saved and loaded it implements
    ``_contents``, ``_of_contents`` and ``_forget``.
    """

    _guarantee: Guarantee

    def __init__(self, account: Account) -> None:
        self._account = account.held()
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._forks, self._process = forks, os.getpid()

    @property
    def guarantee(self) -> Guarantee:
        """What covers every value of every release of this estimator together."""
        return self._guarantee

    @property
    def account(self) -> Account:
        """Internal: what this estimator is charged to. It holds no item."""
        return self._account

    def parameters(self) -> dict[str, Any]:
        """Internal: the parameters as a checkpoint records them, all public; equal ones make equal estimators."""
        with self._alone():
            return self._contents().parameters

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, and never a call from within another."""
        self._refuse_copies_and_loops()
        with self._lock:
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    def _refuse_copies_and_loops(self) -> None:
        if self._forks != forks or self._process != os.getpid():  # a fork from C runs no hooks
            raise PrivacyError(
                "A private estimator cannot be used after a fork: parent and child could release the same items. "
                "Make a new one in each process."
            )
        if self._owner == threading.get_ident():
            raise PrivacyError("A private estimator cannot be used from within its own update_many or release.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint: **raw private state**, readable by its owner only. This estimator may go on.

        It is written whole or not at all, and is on disk when this returns. If another copy of this estimator has drawn
        noise meanwhile, a file that is there already is newer than this state, and is not overwritten.
        """
        self.save_with_notes(path, {})

    def save_with_notes(self, path: str | os.PathLike[str], notes: dict[str, Any]) -> None:
        """Internal: ``save``, with notes of the caller's own in the same file."""
        with self._alone():
            if os.path.exists(path):
                self._account.prove_newest()
            contents = self._contents()
            checkpoint_file.write(path, replace(contents, account=self._account.to_record(), notes=notes))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        ledger: Ledger | None = None,
        accept_replay_risk: bool = False,
        forget_if_stale: bool = False,
    ) -> Self:
        """Continue from a checkpoint exactly as the saved estimator would have (docs/proofs.md, Theorem 12).

        The ledger that it is charged to proves it fresh: no noise was drawn since it was saved. A stale checkpoint is
        refused or, with ``forget_if_stale=True``, continues from its last public values without the items it held.
        Without a ledger nothing proves that its items are not released twice; ``accept_replay_risk=True`` accepts that.
        """
        return cls.load_with_notes(
            path, ledger, accept_replay_risk=accept_replay_risk, forget_if_stale=forget_if_stale
        )[0]

    @classmethod
    def load_with_notes(
        cls, path: str | os.PathLike[str], ledger: Ledger | None, *, accept_replay_risk: bool, forget_if_stale: bool
    ) -> tuple[Self, dict[str, Any]]:
        """Internal: ``load``, and the notes that were saved with it."""
        contents = checkpoint_file.read(path, cls.__name__)
        account = checkpoint_file.restored(path, lambda: Account.of_record(contents.account, ledger))
        estimator = checkpoint_file.restored(path, lambda: cls._of_contents(contents))
        if account.charged and account.exposure != estimator._account.exposure:
            raise CheckpointError(f"{path} is charged for other noise than this version draws: start a new estimator.")
        account.prove_fresh(accept_replay_risk=accept_replay_risk, forget_if_stale=forget_if_stale)
        resume(estimator, account)
        return estimator, contents.notes

    def _contents(self) -> Contents:
        """All parameters and all state."""
        raise NotImplementedError

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        """The estimator whose ``_contents`` these are."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop every item since the last release: continue from public values only."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("A private estimator cannot be copied or pickled: the copy could release the same items.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce__()


def resume(estimator: PrivateEstimator, account: Account) -> None:
    """Let a restored estimator continue under the account of its checkpoint; if that is stale, without its items.

    An account is of one estimator only, and for the noise that it was charged for: another estimator could draw noise
    on it that no spend stands for.
    """
    with estimator._alone():
        own = estimator._account
        if own.charged or own.generation:
            raise PrivacyError("This estimator has an account of its own and cannot continue under another one.")
        if account.charged and account.exposure != own.exposure:
            raise CheckpointError("The checkpoint is charged for other noise than this estimator draws.")
        estimator._account = account.held()
        if account.stale:
            estimator._forget()
