"""Events: sets of transcripts by which an attacker tells two streams apart, learnt from runs of both.

A transcript is the public output of one run: a row of numbers per release. A score is a number computed from it that
is larger on the first stream; an event is "the score reaches a threshold". The scores tried are every number alone and
the sum of all log-likelihood ratios: under Laplace noise, under Gaussian noise and, for choices among few answers, by
how often each was seen; each of the released numbers, and of their changes from release to release. The bound from
fresh runs is valid whatever event was learnt here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfrugal.privacy.guarantees import Guarantee

Transcripts = NDArray[np.float64]  # runs × releases × numbers
Scores = NDArray[np.float64]
View = Callable[[NDArray[np.float64]], NDArray[np.float64]]
MOST_ALONE = 12
RUNS_PER_VALUE = 5
SURE = 4.9  # standard deviations, about the confidence of the bound that the event is meant for


@dataclass(frozen=True)
class Score:
    """A number that is larger on the first stream."""

    name: str
    view: View
    rate: View

    def of(self, transcripts: Transcripts) -> Scores:
        """The score of every transcript."""
        return self.rate(self.view(transcripts))


@dataclass(frozen=True)
class Event:
    """The transcripts whose score reaches the threshold, and the bound for ε or ρ that is expected of counting them."""

    score: Score
    threshold: float
    expected: float


def shown(transcripts: Transcripts) -> Transcripts:
    """All numbers of a transcript side by side."""
    return transcripts.reshape(len(transcripts), -1)


def changes(transcripts: Transcripts) -> Transcripts:
    """The first release, and how each later one differs from the one before."""
    return shown(np.diff(transcripts, axis=1, prepend=0.0))


def alone(k: int, sign: float) -> View:
    """One number, or its negative."""
    return lambda numbers: sign * numbers[:, k]


def by_laplace(one: Scores, other: Scores) -> View:
    """The sum of the log-likelihood ratios of two centres under Laplace noise of scale 1."""
    return lambda numbers: np.asarray((np.abs(numbers - other) - np.abs(numbers - one)).sum(axis=1))


def by_gaussian(weight: Scores) -> View:
    """The log-likelihood ratio under Gaussian noise, up to a constant."""
    return lambda numbers: np.asarray(numbers @ weight)


def by_frequency(one: Scores, other: Scores) -> View:
    """The sum of the log-likelihood ratios of the values that each number takes, as often as they were seen."""
    ratios = []
    for k in range(one.shape[1]):
        values = np.unique(np.concatenate([one[:, k], other[:, k]]))
        seen = [np.searchsorted(np.sort(side[:, k]), values, "right") for side in (one, other)]
        counts = [np.diff(upto, prepend=0) + 0.5 for upto in seen]
        ratios.append((values, np.log(counts[0] / len(one)) - np.log(counts[1] / len(other))))

    def rate(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros(len(numbers))
        for k, (values, ratio) in enumerate(ratios):
            at = np.minimum(np.searchsorted(values, numbers[:, k]), values.size - 1)
            total += np.where(values[at] == numbers[:, k], ratio[at], 0.0)
        return total

    return rate


def _few_values(one: Scores, other: Scores) -> bool:
    """Whether every number takes so few values that each was seen often."""
    both = np.concatenate([one, other])
    return all(np.unique(both[:, k]).size <= len(one) / RUNS_PER_VALUE for k in range(both.shape[1]))


def scores(first: Transcripts, second: Transcripts, *, chosen: bool = False) -> Iterator[Score]:
    """Scores that may tell the streams apart, centred on the observed means and medians.

    Frequencies are tried for numbers that were chosen only: of numbers with noise they learn the luck of the runs.
    """
    views = {"shown": shown, "change": changes} if first.shape[1] > 1 else {"shown": shown}
    for name, view in views.items():
        one, other = view(first), view(second)
        spread = np.maximum(np.sqrt((one.var(axis=0) + other.var(axis=0)) / 2), 1e-9)
        shift = one.mean(axis=0) - other.mean(axis=0)
        for k in np.argsort(-np.abs(shift) / spread)[:MOST_ALONE].tolist():
            if shift[k]:
                yield Score(f"{name} {k + 1}", view, alone(k, float(np.sign(shift[k]))))
        yield Score(f"{name}, all, Laplace", view, by_laplace(np.median(one, axis=0), np.median(other, axis=0)))
        yield Score(f"{name}, all, Gaussian", view, by_gaussian(shift / spread**2))
        if chosen and _few_values(one, other):
            yield Score(f"{name}, all, frequencies", view, by_frequency(one, other))


def best_event(
    first: Transcripts, second: Transcripts, guarantee: Guarantee, runs: int, *, chosen: bool = False
) -> Event:
    """The event with the largest bound that ``runs`` fresh runs of each stream can be expected to give."""
    best = Event(Score("nothing", shown, lambda numbers: np.zeros(len(numbers))), 0.0, 0.0)
    for score in scores(first, second, chosen=chosen):
        one, other = np.sort(score.of(first)), np.sort(score.of(second))
        thresholds = np.unique(np.concatenate([one, other]))
        hits = [side.size - np.searchsorted(side, thresholds) for side in (one, other)]
        # The best of many thresholds is partly luck: two standard deviations are taken off.
        p = _bent(hits[0] / one.size, one.size, runs, down=True)
        q = _bent((hits[1] + 1) / other.size, other.size, runs, down=False)
        expected = guarantee.least_size(p, q)
        k = int(np.argmax(expected))
        if expected[k] > best.expected:
            best = Event(score, float(thresholds[k]), float(expected[k]))
    return best


def _bent(share: Scores, learnt: int, runs: int, *, down: bool) -> Scores:
    """A share of the learning runs, less the luck in learning and the width of the bound to come."""
    moved = np.sqrt(share * np.maximum(1 - share, 0)) * (2 / np.sqrt(learnt) + SURE / np.sqrt(runs))
    bent = share - moved if down else share + moved + SURE**2 / 2 / runs
    return np.asarray(np.clip(bent, 0.0, 1.0))
