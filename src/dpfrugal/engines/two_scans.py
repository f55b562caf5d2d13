"""Private quantiles of a table in two scans: a sample finds the place, the rest is counted around it at once.

The first scan fetches a small sample of the rows, chosen and ordered by a hash of their positions, never by what they
hold. It goes through ``PrivateQuantile`` segment by segment. The second scan counts all other rows between edges that
the sample's noisy counts have chosen, as one more segment. So every row is in one segment (docs/proofs.md, Theorem 13).

A row that changed its position between the scans could be counted twice. Both scans therefore take a fingerprint of
the sampled rows with their positions; where the two differ, nothing is released.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.ledger import Ledger
from dpfrugal.errors import ItemError, ParameterTypeError, PrivacyError
from dpfrugal.estimators.releases import SegmentRelease
from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.parameters import NanPolicy
from dpfrugal.privacy.guarantees import Guarantee

SAMPLE: Final = 1 << 17
MUCH: Final = 2  # times the sample


class Options(TypedDict, total=False):
    """What ``PrivateQuantile`` takes besides the quantiles and the guarantee."""

    max_items_per_person: int
    start: float
    nan_policy: NanPolicy
    ledger: Ledger | None
    dataset: str | None


def checked_options(options: Mapping[str, Any], kind: type) -> None:
    """Refuse options that do not exist, whatever class would have been given them."""
    known = kind.__annotations__
    if unknown := sorted(options.keys() - known.keys()):
        raise ParameterTypeError(f"There is no option {unknown[0]!r}; there are {', '.join(sorted(known))}.")


@dataclass(frozen=True)
class Sample:
    """Some rows' items in an order that no item has a part in; and the public facts about them."""

    items: Any  # whatever ``update_many`` takes
    size: int
    rows: int  # about how many rows there are in all
    fingerprint: int


@dataclass(frozen=True)
class Counts:
    """How many items lie between the edges, how many are missing, and the fingerprint of the rows left out."""

    bins: NDArray[np.int64]
    missing: int
    fingerprint: int = 0


class Rows(Protocol):
    """A column of a table, as an engine sees it."""

    def sample(self, wanted: int) -> Sample:
        """About so many rows, in one scan; all of them where there are no more."""

    def rest(self, edges: NDArray[np.float64]) -> Counts:
        """The counts of all rows that are not in the sample, in one scan."""


def private_quantiles(
    rows: Rows, quantiles: float | Sequence[float], guarantee: Guarantee, options: Options
) -> SegmentRelease:
    """A release from the whole table."""
    checked_options(options, Options)
    estimator = PrivateQuantile(quantiles, guarantee, **options)
    with estimator.account.owning_up():
        take(estimator, rows)
        if not estimator.items:
            raise ItemError("There is nothing to release: the table has no rows.")
        return estimator.release(close=True)


def take(estimator: PrivateQuantile, rows: Rows) -> None:
    """Take in all rows: those of a sample one by one, the rest as one segment. Few rows are all in the sample."""
    sample = rows.sample(SAMPLE)
    if not sample.size:
        return
    estimator.update_many(sample.items)
    if sample.size == sample.rows:
        return
    if (rest := sample.rows - sample.size) > MUCH * sample.size:
        estimator.expect(rest)  # for less, the edges that the sample has led to do better than many
    counts = rows.rest(estimator.edges)
    if counts.fingerprint != sample.fingerprint:
        raise PrivacyError(
            "The rows of the table did not keep their order between two scans, so a row could have been counted "
            "twice; nothing was released. Write the table to a file first, and give that."
        )
    if counts.bins.sum() + counts.missing:
        estimator.absorb(counts.bins, missing=counts.missing)
