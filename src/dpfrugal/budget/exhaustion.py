"""When a total will be exhausted, where the same is spent on it again and again, as by windows.

Worked number: a total of ε = 7, on which ε = 1 was spent on each of the last two days, has room for five more and is
exhausted in five days.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dpfrugal.budget.promises import Dataset, Spend

# The pace is that of so many last spends; of a dataset with many, whose history is long to read, that of all of them.
LAST: Final = 10
MANY: Final = 2_000


@dataclass(frozen=True)
class Outlook:
    """How many more spends like the last ones fit at least, and when the last of them is made at the present pace."""

    spend: str  # what these spends are
    more: int
    until: datetime


def outlook(dataset: Dataset) -> Outlook | None:
    """What is to come, or None where the last two spends differ.

    Sizes are added up, which is exact for totals in ε or ρ and never too long for those in (ε, δ).
    """
    number = dataset.tally.size
    if number > MANY and dataset.latest is not None:
        times = math.floor((dataset.total.size - dataset.used) / (dataset.used / number))
        return Outlook("those before", times, dataset.latest + (dataset.latest - dataset.opened) / number * times)
    if number < 2:
        return None
    last = dataset.spends[-1]
    alike = [spend for spend in dataset.spends[-LAST:] if (spend.by, spend.guarantee) == (last.by, last.guarantee)]
    if len(alike) < 2 or dataset.spends[-2] is not alike[-2]:
        return None
    room = [_times(dataset.total.size - dataset.used, _size(dataset, last))]
    if dataset.total.composition_rule is None and last.guarantee.epsilon_delta and dataset.total.epsilon_delta:
        taken = sum(spend.guarantee.epsilon_delta[1] for spend in dataset.spends if spend.guarantee.epsilon_delta)
        room.append(_times(dataset.total.epsilon_delta[1] - taken, last.guarantee.epsilon_delta[1]))
    more = min((each for each in room if each is not None), default=None)
    if more is None:
        return None
    return Outlook(
        f"{last.guarantee} by {last.by}", more, last.when + (last.when - alike[0].when) / (len(alike) - 1) * more
    )


def _size(dataset: Dataset, spend: Spend) -> float | None:
    """What the spend takes of the total, in the total's size."""
    if dataset.total.composition_rule is not None:
        return dataset.total.taken_by(spend.guarantee, spend.claim.zcdp_rho)
    return spend.guarantee.epsilon_delta[0] if spend.guarantee.epsilon_delta else None


def _times(left: float, each: float | None) -> int | None:
    return None if not each else max(0, math.floor(left / each * (1 + 1e-12)))
