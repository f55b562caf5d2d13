"""The guard of a private estimator: nothing is released twice, whoever holds it.

A copy, a pickle or a forked process would hold the same raw items and could release them again with noise of its own;
a call from within another, or from a second thread at the same time, would see half a batch. The first three are
refused, and threads take turns.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from dpfrugal.account import Account
from dpfrugal.errors import PrivacyError

forks = 0


def _count_fork() -> None:
    global forks
    forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Guarded:
    """What every private estimator inherits. Before it takes noise it must call ``self._account.before_noise()``."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._forks = forks

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
        if self._forks != forks:
            raise PrivacyError(
                "A private estimator cannot be used after a fork: parent and child could release the same items. "
                "Make a new one in each process."
            )
        if self._owner == threading.get_ident():
            raise PrivacyError("A private estimator cannot be used from within its own update_many or release.")

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("A private estimator cannot be copied or pickled: the copy could release the same items.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce__()
