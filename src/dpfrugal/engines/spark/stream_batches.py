"""What becomes of a stream's micro-batches: each is released from once, and a replay shows what was released.

A batch has one record, written before anything of it leaves, with all that is released of it. A batch that Spark
replays after a crash is not drawn from again, and its sink gets what the record holds. So no two releases show the same
rows (docs/proofs.md, Theorem 13). Records hold nothing raw: open windows are Spark's own state.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.engines.spark.stream_answers import Answers, Record, Shown, Sink
from dpfrugal.engines.spark.stream_checkpoint import Records
from dpfrugal.engines.spark.stream_windows import Span, Windows, between
from dpfrugal.errors import ParameterError, PrivacyError, ReplayError


class Batches:
    """The micro-batches of a stream, in their order."""

    def __init__(
        self,
        windows: Windows,
        answers: Answers,
        records: Records,
        sink: Sink,
        account: Account,
        term: int | None,
        state: Record | None,
    ) -> None:
        self._windows, self._answers, self._records = windows, answers, records
        self._sink, self._account, self._term = sink, account, term
        self._begun, state = state is not None, state_of(account) if state is None else state
        self._released, self._last = state["released"], Span(*state["last"])
        self._shown = [Shown(each["number"], Span(*each["span"]), each["record"]) for each in state["shown"]]
        self._order = Order(state["batch"])

    def take(self, batch: Any, batch_id: int) -> None:
        """Release the windows of a batch, record and show them; where they are recorded, show them again."""
        with self._order.turn(batch_id) as is_new:
            if is_new:
                self._account.begin_batch(batch_id)
                self._shown = self._drawn(batch)
                self._records.write(batch_id, self._state(batch_id))
                self._begun = True
            else:
                self._windows.pass_over(batch)
            self._account.settle_batch()
        self._answers.show(self._sink, batch.sparkSession, self._shown, batch_id)

    def _drawn(self, batch: Any) -> list[Shown]:
        """What is released of the windows that have ended: all are read before anything is spent or drawn."""
        with self._windows.ended(batch) as ended:
            with self._account.before_spending():
                read = [(span, self._answers.read(data)) for span, data in self._every(ended)]
            if not read:
                return []
            self._spend(len(read))
            with self._account.owning_up():
                shown = [Shown(k, span, draw()) for k, (span, draw) in enumerate(read, self._released + 1)]
        self._released, self._last = self._released + len(shown), shown[-1].span
        return shown

    def _every(self, ended: Iterator[Any]) -> Iterator[tuple[Span, Any]]:
        """The windows that are released: where the number of rows is private, those without rows, too."""
        hidden, before = self._answers.plan.asked.neighbours == "add-remove", self._last
        for window in ended:
            span: Span = window.span
            if span.start is not None and before.end is not None and span.start < before.end:
                raise PrivacyError(
                    "A window that was released came again: Spark's state does not belong to this checkpoint; begin "
                    "with a new folder."
                )
            for empty in between(before, span) if hidden else ():
                yield empty, self._windows.empty
            if window.rows or hidden:
                yield span, window.data
            before = span

    def _spend(self, windows: int) -> None:
        """Count the batch in the ledger; where a guarantee covers so many windows, spend it again after as many.

        A batch that is taken anew, as the driver died before its record was written, has spent already.
        """
        if not self._begun:  # a driver that dies in its first batch leaves an account to go on with
            self._records.write(-1, state_of(self._account))
            self._begun = True
        numbers = range(max(self._released, 1), self._released + windows)
        if self._term is not None and not self._account.stale:
            for _ in range(sum(number % self._term == 0 for number in numbers)):
                self._account.spend_again()
        self._account.stale = False
        self._account.before_noise()

    def _state(self, batch: int) -> Record:
        shown = [
            {"number": each.number, "span": [each.span.start, each.span.end], "record": each.record}
            for each in self._shown
        ]
        last = [self._last.start, self._last.end]
        return state_of(self._account, batch, self._released, last, shown)


def state_of(
    account: Account, batch: int = -1, released: int = 0, last: Sequence[int | None] = (), shown: Sequence[Record] = ()
) -> Record:
    """What a record holds after a batch; before the first one nothing but the account."""
    state = {"batch": batch, "released": released, "last": list(last), "shown": list(shown)}
    return state | {"account": account.to_record()}


class Order:
    """Which batch of a stream may come: the one after the last, or the last one again, which has its record."""

    def __init__(self, newest: int) -> None:
        self._newest, self._failed = newest, False

    @contextmanager
    def turn(self, batch: int) -> Iterator[bool]:
        """Whether the batch is new; it is the newest one afterwards. What failed half way must be started again."""
        if self._failed:
            raise PrivacyError("An error has ended this stream in the middle of a batch; start it again.")
        if batch not in (self._newest, self._newest + 1):
            raise PrivacyError(
                f"Batch {batch} came where batch {self._newest + 1} is next: its rows may have been released already. "
                "The records in this checkpoint do not belong to Spark's own files; begin with a new folder."
            )
        self._failed = True
        yield batch > self._newest
        self._newest, self._failed = batch, False


def goes_on(record: Record, ledger: Ledger | None, dataset: str | None, newest: int) -> Account:
    """The account of a stream that is started again after the batch ``newest``.

    A driver that dies after the ledger has moved and before the batch has a record has shown nothing: the batch is
    released from anew. Where a later batch may have been shown, the checkpoint is an older copy, and refused.
    """
    if record["ledger"] is not None and ledger is None:
        raise ReplayError("The checkpoint of this stream is charged to a ledger: give ledger= and dataset= again.")
    account = Account.of_record(record, ledger)
    account.prove_batch_fresh(newest)
    if dataset not in (None, account.dataset):
        raise ParameterError(f"The checkpoint of this stream is charged to the dataset {account.dataset!r}.")
    return account
