"""The settings of a server: what it listens to, and for each metric where values come from and what is promised.

A metric's daily total covers a fixed number of its windows: with ε = 0.01 per window and 7.2 per day, 720 windows of
the 1,440 minutes are released, those that end first. How many are left depends on the clock only.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.keyed.release_table import total_cost
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee

DAY: Final = 86_400.0
MOST_KEYS: Final = 1_000_000  # that a metric declares
LONGEST_KEY: Final = 200  # characters; an item with a longer one counts as one of an undeclared key
Signal = Literal["spans", "logs", "statsd", "json"]

TO_BASE_UNIT: Final[dict[str, tuple[str, Fraction]]] = {  # the unit of the name, and what one unit of the values is
    "seconds": ("seconds", Fraction(1)),
    "milliseconds": ("seconds", Fraction(1, 1000)),
    "microseconds": ("seconds", Fraction(1, 10**6)),
    "nanoseconds": ("seconds", Fraction(1, 10**9)),
    "bytes": ("bytes", Fraction(1)),
    "kilobytes": ("bytes", Fraction(1000)),
    "kibibytes": ("bytes", Fraction(1024)),
    "megabytes": ("bytes", Fraction(10**6)),
    "percent": ("ratio", Fraction(1, 100)),
    "ratio": ("ratio", Fraction(1)),
    "none": ("", Fraction(1)),
}


@dataclass(frozen=True)
class Source:
    """Which items are a metric's: ``what`` is an attribute, a StatsD name or a JSON field; None: a duration."""

    signal: Signal
    what: str | None
    where: tuple[tuple[str, str], ...] = ()  # attributes, tags or fields that an item must have
    time: str | None = None  # of JSON: the field with the item's Unix time in seconds


@dataclass(frozen=True)
class Keys:
    """Which keys are shown. ``declared`` is None where they are discovered, at ``discovery`` per window."""

    attribute: str
    declared: tuple[str, ...] | None
    discovery: ApproxDP | None = None
    other: str | None = None


@dataclass(frozen=True)
class Person:
    """Whose items are protected together: at most ``max_items`` of them count in a window."""

    attribute: str
    max_items: int


@dataclass(frozen=True)
class Metric:
    """One metric: its source, its keys, its quantiles, its windows and their guarantee."""

    name: str
    about: str
    unit: str
    source: Source
    label: str
    keys: Keys | None
    person: Person | None
    quantiles: tuple[float, ...]
    window: float
    guarantee: Guarantee
    total: Guarantee
    windows_per_day: int
    neighbours: Neighbours = "add-remove"
    low: float | None = None
    high: float | None = None
    hold: int = 1_000_000

    @property
    def base_name(self) -> str:
        """The name with its base unit, as the field wants it: ``request_duration_seconds``."""
        unit = self.base_unit
        return self.name if not unit or self.name.endswith(f"_{unit}") else f"{self.name}_{unit}"

    @property
    def base_unit(self) -> str:
        """The unit of what is released; empty where values have none."""
        return TO_BASE_UNIT[self.unit][0]

    @property
    def scale(self) -> Fraction:
        """What one unit of the values is in the base unit."""
        return TO_BASE_UNIT[self.unit][1]

    @property
    def is_time(self) -> bool:
        """Whether values are durations: none can be negative."""
        return self.base_unit == "seconds"

    @property
    def shown_keys(self) -> tuple[str, ...] | None:
        """The keys that every release shows, "" for all items together; None where they are discovered."""
        if self.keys is None:
            return ("",)
        other = () if self.keys.other is None else (self.keys.other,)
        return None if self.keys.declared is None else (*self.keys.declared, *other)

    @property
    def cost(self) -> Guarantee:
        """What one window costs in all: its values, and which keys it shows."""
        return self.cost_of(1)

    def cost_of(self, windows: int) -> Guarantee:
        """What so many windows cost together, for a person who is there in all of them."""
        return total_cost(self.guarantee, None if self.keys is None else self.keys.discovery).repeated(windows)


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Tokens:
    """Who may send items, read releases, and see the operator's figures. None: whoever reaches the port."""

    ingest: tuple[str, ...] | None = field(default=None, repr=False)
    read: tuple[str, ...] | None = field(default=None, repr=False)
    operator: tuple[str, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Limits:
    """What one client may take."""

    body: int = 8 << 20
    decompressed: int = 16 << 20
    ratio: int = 200
    seconds: float = 10.0  # for the head of a request, and for its body
    connections: int = 256
    event_streams: int = 64
    far: float = 3600.0  # an item whose own time is farther from now is refused


@dataclass(frozen=True)
class Settings:
    """All of a server."""

    metrics: tuple[Metric, ...]
    listen: Address = Address("127.0.0.1", 4318)
    operator: Address = Address("127.0.0.1", 4319)
    statsd: Address | None = None
    store: Path = Path("releases.db")
    keep: float = 30 * DAY
    ledger: Path | None = None
    reserve: float = 3600.0
    hosts: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    certificate: Path | None = None
    private_key: Path | None = None
    limits: Limits = Limits()

    def needs_restart(self, other: "Settings") -> list[str]:
        """What a reload cannot change."""
        names = ("listen", "operator", "statsd", "store", "certificate", "private_key", "limits")
        return [name for name in names if getattr(self, name) != getattr(other, name)]


def windows_covered(total: Guarantee, metric_cost: Guarantee) -> int:
    """How many windows a total covers, exactly.

    >>> from dpfrugal.privacy.guarantees import PureDP
    >>> windows_covered(PureDP(epsilon=0.3), PureDP(epsilon=0.1))
    3
    """
    if not total.is_like(metric_cost):
        raise ParameterError(f"{total} is of another kind than a window's {metric_cost}: state both in the same terms")
    return total.how_many(metric_cost)


def base_unit_names() -> tuple[str, ...]:
    """The units that values may have."""
    return tuple(TO_BASE_UNIT)


NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
