"""The promise for a dataset, and the spends on it: how much, under which neighbours, for how many items of a person.

Two guarantees add up only if they speak of the same neighbours. A total is for data in which one item is *replaced*, or
for data of which one has an item more (*add-remove*); a spend under the other relation is no part of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from time import time as clock
from typing import Any, Final

from dpfrugal import parameters
from dpfrugal.budget import composition
from dpfrugal.budget.claims import Claim, Tally
from dpfrugal.budget.composition import Spent
from dpfrugal.budget.person_moves import Exposure
from dpfrugal.budget.spend_facts import Asked, checked_asked
from dpfrugal.errors import ParameterError
from dpfrugal.parameters import Neighbours, positive
from dpfrugal.privacy.guarantees import Guarantee, PureDP, checked_guarantee

FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)
LAST: Final = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One guarantee that was spent: when, by what, and the composition rule by which it fits the total."""

    dataset: str
    guarantee: Guarantee
    when: datetime
    by: str
    rule: str
    max_items_per_person: int
    generation: int  # how often noise was drawn for it
    neighbours: Neighbours = "replace"
    rho: float | None = None
    exposure: Exposure | None = None  # that of an estimator; a spend by hand has none
    asked: Asked = field(default_factory=dict, hash=False)  # public facts; older ledgers have none

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        return _unit(self.max_items_per_person, self.neighbours)

    @property
    def claim(self) -> Claim:
        """The spend, for composition."""
        return Claim(self.guarantee, self.rho, self.exposure)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The promise for a dataset, and its spends.

    What the spends come to is known from their tally; they themselves are read from the ledger when they are asked for.
    """

    name: str
    total: Guarantee
    max_items_per_person: int
    adaptive: bool
    opened: datetime
    neighbours: Neighbours = "replace"
    tally: Tally = field(default=Tally(), repr=False)
    latest: datetime | None = None  # the time of the last spend
    head: str = field(default="", repr=False)  # the last link of the chain of its spends: their digest
    history: Callable[[], tuple[Spend, ...]] = field(default=tuple, repr=False, compare=False)

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """Every spend, in order."""
        return self.history()

    @property
    def claims(self) -> list[Claim]:
        """The spends one by one, for composition."""
        return [spend.claim for spend in self.spends]

    @property
    def left(self) -> Guarantee | None:
        """The largest guarantee that still fits: of the total's kind, or a pure ε where the total is (ε, δ)."""
        like = PureDP(epsilon=1.0) if self.total.composition_rule is None else self.total
        return composition.left(self.total, self.tally, like, adaptive=self.adaptive)

    def spent(self, delta: float) -> Spent:
        """All spends together as (ε, δ)."""
        return composition.total_spent(self.tally, delta)

    @property
    def used(self) -> float:
        """How much of the total is spent, in the total's size: its ρ, or its ε."""
        return composition.used(self.total, self.tally, adaptive=self.adaptive)

    @property
    def share(self) -> float:
        """The part of the total that is spent, between 0 and 1."""
        return self.used / self.total.size

    @property
    def promised(self) -> tuple[Guarantee, int, bool, str]:
        """All that was promised."""
        return self.total, self.max_items_per_person, self.adaptive, self.neighbours

    @property
    def promise(self) -> str:
        """The total and whom it protects, in words."""
        return f"{self.total} per {self.unit}{', adaptive' if self.adaptive else ''}"

    @property
    def unit(self) -> str:
        """Whose change the total hides."""
        return _unit(self.max_items_per_person, self.neighbours)


def _unit(max_items_per_person: int, neighbours: Neighbours) -> str:
    whom = "item" if max_items_per_person == 1 else f"person of ≤ {max_items_per_person} items"
    return f"{whom} {'replaced' if neighbours == 'replace' else 'added or removed'}"


def spend_of(
    dataset: str,
    guarantee: Guarantee,
    by: str,
    rho: float | None,
    max_items_per_person: int,
    exposure: Exposure | None = None,
    *,
    neighbours: Neighbours = "replace",
    asked: Mapping[str, Any] | None = None,
) -> Spend:
    """A spend that is about to be made, with its arguments checked; its time and rule are set when it is made."""
    if exposure is not None and not exposure.accords(guarantee, rho):
        raise ParameterError(f"exposure must be no smaller than {guarantee}: it states more noise than that needs.")
    return Spend(
        dataset=parameters.name("dataset", dataset),
        guarantee=checked_guarantee(guarantee),
        when=now(),
        by=parameters.name("by", by),
        rule="",
        max_items_per_person=parameters.max_items_per_person(max_items_per_person),
        generation=0,
        neighbours=parameters.neighbours(neighbours),
        rho=None if rho is None else positive("rho", rho),
        exposure=exposure,
        asked=checked_asked(asked),
    )


def now(*not_before: datetime) -> datetime:
    """The time, or that of the last entry if the clock was set back; a clock beyond the year 9999 shows its end."""
    return max([time_of(clock()), *not_before])


def time_of(seconds: float) -> datetime:
    """The moment so many seconds after 1970, or the first or the last that can be written down."""
    return datetime.fromtimestamp(min(max(seconds, FIRST.timestamp()), LAST.timestamp()), UTC)
