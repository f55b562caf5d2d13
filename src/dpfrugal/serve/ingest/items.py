"""Items as they came, whatever the protocol, and which of them are a metric's.

Every decision here is about one item by itself: whether it counts never depends on another one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfrugal.serve.settings import LONGEST_KEY, Metric, Signal

# Why an item does not count; the operator sees how many of each.
NO_VALUE: Final = "no value"
NO_NUMBER: Final = "no finite number"
NEGATIVE: Final = "negative duration"
FAR: Final = "far from now"
NO_KEY: Final = "undeclared key"
NO_PERSON: Final = "no person"
REPEATED: Final = "repeated"
MALFORMED: Final = "malformed"
REASONS: Final = (NO_VALUE, NO_NUMBER, NEGATIVE, FAR, NO_KEY, NO_PERSON, REPEATED, MALFORMED)
LARGEST: Final = 1.7e308
MOST_ITEMS: Final = 200_000  # in a request


class Item(NamedTuple):
    """One item: what it carries by name, its duration where it is a span, and what makes a repetition of it."""

    attributes: Mapping[str, Any]
    duration: float | None = None
    identity: bytes | None = None


@dataclass(frozen=True)
class Rows:
    """The items of one metric as columns. Raw: nothing shows them."""

    keys: list[str | None]
    values: NDArray[np.float64]
    persons: list[str] | None
    identities: NDArray[np.int64] | None
    refused: Mapping[str, int] = field(default_factory=dict)


def text_of(value: Any) -> str | None:
    """A key or a person as text; None where there is none, or one that is too long to be shown."""
    if type(value) is int or type(value) is float:
        value = str(value)
    if type(value) is str:
        return value if len(value) <= LONGEST_KEY else None
    return ("true" if value else "false") if type(value) is bool else None


def _number(value: Any) -> float:
    """A number as a float; NaN for everything else, also for text that looks like one."""
    if type(value) is float:
        return value if -LARGEST < value < LARGEST else math.nan
    if type(value) is int and -LARGEST < value < LARGEST:
        return float(value)
    return math.nan


class Reader:
    """Takes the items of one metric out of batches that have those of others too."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.signal: Signal = metric.source.signal
        self._what = "value" if metric.source.signal == "statsd" else metric.source.what
        self._where = metric.source.where
        self._key = None if metric.keys is None else metric.keys.attribute
        self._person = None if metric.person is None else metric.person.attribute
        self._time = metric.source.time
        self._low = 0.0 if metric.is_time else -math.inf

    @property
    def names(self) -> set[str]:
        """The attributes that it looks at."""
        optional = (self._what, self._key, self._person, self._time)
        return {name for name in optional if name is not None} | {name for name, _ in self._where}

    def rows(self, items: Sequence[Item], now: float = 0.0, far: float = math.inf) -> Rows | None:
        """The columns of what is this metric's; None where nothing is.

        Where n is public, an item that does not count is still one of n: it stays, without a value.
        """
        for name, wanted in self._where:
            items = [item for item in items if text_of(item.attributes.get(name)) == wanted]
        if not items:
            return None
        what, refused = self._what, dict[str, int]()
        found = [item.duration if what is None else item.attributes.get(what) for item in items]
        values = np.array([_number(value) for value in found], dtype=np.float64)
        good = ~np.isnan(values)
        if missing := found.count(None):
            refused[NO_VALUE] = missing
        if strange := values.size - missing - int(good.sum()):
            refused[NO_NUMBER] = strange
        good = _without(good, values >= self._low, refused, NEGATIVE)
        if self._time is not None:
            times = [item.attributes.get(self._time) for item in items]
            good = _without(good, np.array([_is_near(time, now, far) for time in times]), refused, FAR)
        who: list[str] | None = None
        if self._person is not None:
            persons = [text_of(item.attributes.get(self._person)) for item in items]
            good = _without(good, np.array([person is not None for person in persons]), refused, NO_PERSON)
            who = [person or "" for person in persons]
        keys: list[str | None] = (
            [None] * len(items) if self._key is None else [text_of(item.attributes.get(self._key)) for item in items]
        )
        if not good.all():
            if self.metric.neighbours == "replace":
                values[~good] = math.nan
            else:
                kept = np.flatnonzero(good).tolist()
                items, values, keys = [items[at] for at in kept], values[good], [keys[at] for at in kept]
                who = None if who is None else [who[at] for at in kept]
        identities = None
        if self.signal == "spans":
            # A repetition is the same in everything that counts: no item can displace another one by its id.
            counted = [None if math.isnan(value) else value for value in values.tolist()]  # every NaN has its own hash
            each = zip((item.identity for item in items), keys, counted, strict=True)
            identities = np.array([hash(parts) for parts in each], dtype=np.int64)
        return Rows(keys, values, who, identities, refused)


def _without(
    good: NDArray[np.bool_], right: NDArray[np.bool_], refused: dict[str, int], reason: str
) -> NDArray[np.bool_]:
    """The good items that are right; how many are not is counted."""
    both = good & right
    if wrong := int(good.sum()) - int(both.sum()):
        refused[reason] = wrong
    return both


def _is_near(time: Any, now: float, far: float) -> bool:
    """Whether a Unix time in seconds is near; an item without one is."""
    return time is None or abs(_number(time) - now) <= far
