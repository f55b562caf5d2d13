"""The guard of a private estimator: nothing is released twice, whoever holds it.

A copy, a pickle or a forked process would hold the same raw items and could release them again with noise of its own;
a call from within another, or from a second thread at the same time, would see half a batch. The first three are
refused, and threads take turns.
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
from dpfrugal.storage import checkpoint_file
from dpfrugal.storage.checkpoint_file import Contents

forks = 0


def _count_fork() -> None:
    global forks
    forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Guarded:
    """What every private estimator inherits.

    Before it takes noise it must call ``self._account.before_noise()``. To be saved and loaded it needs ``_contents``,
    ``_of_contents`` and ``_forget``.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._forks, self._process = forks, os.getpid()

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

        It is written whole or not at all, and is on disk when this returns.
        """
        self._save(path)

    def _save(self, path: str | os.PathLike[str], **notes: Any) -> None:
        with self._alone():
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
        """Go on from a checkpoint exactly as it would have gone on (docs/proofs.md, Theorem 12).

        The ledger that it is charged to proves it fresh: no noise was taken since it was saved. A stale one is refused,
        or, with ``forget_if_stale=True``, goes on from its last public values without the items it held. Without a
        ledger nothing proves that its items are not released twice: ``accept_replay_risk=True`` says so aloud.
        """
        return cls._load(path, ledger, accept_replay_risk=accept_replay_risk, forget_if_stale=forget_if_stale)[0]

    @classmethod
    def _load(
        cls, path: str | os.PathLike[str], ledger: Ledger | None, *, accept_replay_risk: bool, forget_if_stale: bool
    ) -> tuple[Self, dict[str, Any]]:
        """The estimator, and the notes that were saved with it."""
        contents = checkpoint_file.read(path, cls.__name__)
        account = checkpoint_file.restored(path, lambda: Account.of_record(contents.account, ledger))
        estimator = checkpoint_file.restored(path, lambda: cls._of_contents(contents))
        if account.charged and account.exposure != estimator._account.exposure:
            raise CheckpointError(f"{path} is charged for other noise than this version takes: begin anew.")
        account.prove_fresh(accept_replay_risk=accept_replay_risk, forget_if_stale=forget_if_stale)
        estimator._account = account
        if account.stale:
            estimator._forget()
        return estimator, contents.notes

    def _contents(self) -> Contents:
        """All parameters and all state."""
        raise NotImplementedError

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        """The estimator that ``_contents`` was taken of."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop every item that no release has taken in: go on from public values only."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("A private estimator cannot be copied or pickled: the copy could release the same items.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce__()
