"""The search for one quantile: it asks for public edges and takes in noisy CDFs. It never sees an item or a raw count.

*Locate* finds a bracket, *refine* makes it as accurate as the sample quantile, and where one number holds the
quantile (*atom*) it is the answer, confirmed by every further segment. A search that is contradicted starts again
from what is left. Worked number: at q = 0.5 and ε = 1, locating takes 300 to 800 items, and 2,000 to
3,000 where the data lie 1e9 of their widths away from the start; at q = 0.99, about 16,000.
"""

import copy
import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Final

from dpfrugal.estimators.segments.cdf_rise import MeasuredRise
from dpfrugal.estimators.segments.edge_placement import after
from dpfrugal.estimators.segments.evidence import Agreement, Target
from dpfrugal.estimators.segments.locate import HUGE, Locate
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf
from dpfrugal.estimators.segments.one_scan import OneScan
from dpfrugal.estimators.segments.refine import Refine, settled_length
from dpfrugal.storage.json_values import packed, unpacked


@dataclass
class Atom:
    """One number holds the quantile: what lies below it is less than q, with it more."""

    target: Target
    estimate: float
    weight: float = 0.0  # sums over segments of weights, and of weights times both shares minus q
    below: float = 0.0
    upto: float = 0.0
    proven: tuple[float, float] = (-math.inf, math.inf)  # numbers below and above the quantile, by earlier segments

    def edges(self) -> list[float]:
        """Before and after the number."""
        return [self.estimate, after(self.estimate)]

    def length(self, total: float, noise_variance: float, bin_variance: float) -> float:
        """As in refine."""
        return settled_length(self.target, total, noise_variance)

    def confirmed(self, cdf: NoisyCdf) -> bool:
        """Whether all segments together still agree."""
        i = cdf.index(self.estimate)
        weight = 1 / max(cdf.error_at(i, self.target.q), cdf.error_at(i + 1, self.target.q)) ** 2
        self.weight += weight
        self.below += weight * float(cdf.share[i] - self.target.q)
        self.upto += weight * float(cdf.share[i + 1] - self.target.q)
        slack = 4 * math.sqrt(self.weight)
        return self.below <= slack and self.upto >= -slack

    def interval(self, certainty: float) -> tuple[float, float]:
        """The number alone, where it is certain that neither less nor more than it holds the quantile."""
        slack = certainty * math.sqrt(self.weight)
        low, high = self.proven if self.weight else (self.estimate, self.estimate)
        return self.estimate if self.below < -slack else low, self.estimate if self.upto > slack else high


Stage = Locate | Refine | Atom | OneScan
# The names that checkpoints have for the stages.
STAGES: dict[str, type[Stage]] = {"Locate": Locate, "Refine": Refine, "Atom": Atom, "Conclude": OneScan}
NAMES = {kind: name for name, kind in STAGES.items()}


# What checkpoints of the first versions do not have.
LATER: Final[dict[str, Any]] = {
    "coarseness": packed(0.0),
    "proven": packed((-math.inf, math.inf)),
    "rise": packed(MeasuredRise()),
    "misses": packed((0.0, 0.0)),
    "refuted": packed(0.0),
    "multiples": packed((0.0, 0.0)),
}
# What they have, and nothing has any more.
RETIRED: Final = (("half_life", None),)


def _without_retired(record: Any) -> Any:
    """The record of a search without fields of older versions that say nothing."""
    if not isinstance(record, dict):
        return record
    return {name: value for name, value in record.items() if (name, value) not in RETIRED}


def _completed(record: Any) -> Any:
    """The record of a stage with fields that it lacks because it is older."""
    if not isinstance(record, dict):
        return record
    if "refine" in record:
        return record | {"refine": _completed(record["refine"])}
    wanted = {"window": LATER, "upto": {"proven": LATER["proven"]}}  # by a field that only this stage has
    return next((more for field, more in wanted.items() if field in record), {}) | record


@dataclass
class Search:
    """The search for one quantile."""

    target: Target
    start: float
    agreement: Agreement = field(default_factory=Agreement)
    travelled: tuple[float, float] = (math.inf, -math.inf)  # where the estimate has been while segments disagreed

    def __post_init__(self) -> None:
        self.stage: Stage = Locate(self.target, self.start, self.start)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Search":
        """An independent copy. Only what is changed in place is copied, for this is done for every batch."""
        copied = copy.copy(self)
        copied.agreement, copied.stage = copy.copy(self.agreement), copy.copy(self.stage)
        if isinstance(copied.stage, OneScan):
            copied.stage = copy.deepcopy(copied.stage)
        elif not isinstance(copied.stage, Atom):
            copied.stage.evidence = copy.copy(copied.stage.evidence)
        return copied

    def to_state(self) -> dict[str, Any]:
        """For a checkpoint: all that the noisy counts so far have determined."""
        return {"search": packed(self), "kind": NAMES[type(self.stage)], "stage": packed(self.stage)}

    @classmethod
    def of_state(cls, state: Any) -> "Search":
        """The search that ``to_state`` was taken of."""
        search = unpacked(cls, _without_retired(state["search"]))
        search.stage = unpacked(STAGES[state["kind"]], _completed(state["stage"]))
        search.edges(), search.interval(0.95)  # a state that cannot continue is refused now
        return search

    def edges(self) -> list[float]:
        """The edges wanted for the next segment."""
        return [min(max(edge, -HUGE), HUGE) for edge in self.stage.edges() if math.isfinite(edge)]

    def length(self, total: int, noise_variance: float, bin_variance: float) -> float:
        """Items wanted in the next segment."""
        return self.stage.length(total, noise_variance, bin_variance)

    def absorb(self, cdf: NoisyCdf) -> None:
        """Take in the noisy CDF of one segment."""
        before = self.estimate
        self._advance(cdf)
        if not self.agreement.stable:
            places = (before, self.estimate, *self.travelled)
            self.travelled = min(places), max(places)

    def _advance(self, cdf: NoisyCdf) -> None:
        """Update the stage, and replace it by another where its result asks for that."""
        stage = self.stage
        if isinstance(stage, Atom):
            if not stage.confirmed(cdf):
                self.agreement.contradicted()
                self.stage = Locate(self.target, self.start, stage.estimate)
            else:
                self.agreement.note(0.0)
            return
        if isinstance(stage, OneScan):
            stage.absorb(cdf, self.agreement)
            if stage.atom is not None:
                self.agreement.explained()
                self.stage = Atom(self.target, stage.atom, proven=stage.refine.proven)
            else:
                self.stage = Locate(self.target, self.start, self.estimate) if stage.lost else stage.refine
            return
        stage.absorb(cdf, self.agreement)
        if stage.atom:
            number = stage.low if isinstance(stage, Locate) else stage.number
            self.stage = Atom(self.target, number, proven=stage.proven)
        elif isinstance(stage, Locate):
            if stage.ready:
                window = stage.low, stage.high
                self.stage = Refine(self.target, stage.estimate, window, stage.evidence, proven=window)
        elif stage.lost or stage.tied:
            low, high = stage.window
            reach = 8 * (high - low) if stage.lost else 0.0
            bounds = max(low - reach, -HUGE), min(high + reach, HUGE)
            self.stage = Locate(self.target, self.start, stage.estimate, *bounds, (low, high), mass=0.5)
            self.stage.asked = cdf.items
            if stage.tied:
                self.stage.evidence.add(stage.estimate, 0.0, stage.evidence.weight)
                self.stage.gathered_over = high - low

    def expect(self, items: int, bins: int) -> None:
        """Cut the window into so many bins for one long segment, if there is a window."""
        stage = self.stage.refine if isinstance(self.stage, OneScan) else self.stage
        if isinstance(stage, Refine):
            self.stage = OneScan(stage, items, bins)

    @property
    def estimate(self) -> float:
        """The quantile, as far as it is known."""
        stage = self.stage.refine if isinstance(self.stage, OneScan) else self.stage
        return stage.number if isinstance(stage, Refine) else stage.estimate

    @property
    def locating(self) -> bool:
        """Whether the search still has no bracket to refine."""
        return isinstance(self.stage, Locate)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds that hold the true quantile with probability ``confidence``."""
        certainty = NormalDist().inv_cdf((1 + confidence) / 2) * self.agreement.widening
        stage = self.stage.refine if isinstance(self.stage, OneScan) else self.stage
        low, high = stage.interval(certainty)
        low, high = min(low, self.estimate), max(high, self.estimate)
        return (low, high) if self.agreement.stable else (min(low, self.travelled[0]), max(high, self.travelled[1]))
