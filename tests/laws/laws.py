"""What every estimator obeys, whichever it is: run over all of them by test_laws.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf


@dataclass(frozen=True)
class Kind:
    """How to make an estimator, and how a test (and only a test) looks at its raw state."""

    make: Callable[..., Any]
    raw: Callable[[Any], list[int]]
    private: bool


KINDS = {
    "Frugal1U": Kind(
        make=lambda **options: dpf.Frugal1U([0.25, 0.9], coin_seed=11, **options),
        raw=lambda estimator: estimator._settled().tolist(),
        private=False,
    ),
    "DPFrugal1U": Kind(
        make=lambda **options: dpf.DPFrugal1U([0.25, 0.9], dpf.PureDP(epsilon=1.0), coin_seed=11, **options),
        raw=lambda estimator: estimator._walk._settled().tolist(),
        private=True,
    ),
}


def after(kind: Kind, batches: list[Any], **options: Any) -> tuple[list[int], int]:
    """The raw state and the number of items after some batches."""
    estimator = kind.make(**options)
    for batch in batches:
        estimator.update_many(batch)
    return kind.raw(estimator), estimator.items


def batch_equals_one_by_one(kind: Kind, items: NDArray[Any]) -> None:
    """A batch, the same items one by one, and any mixture of both end in the same state."""
    single, mixed = kind.make(decimals=1), kind.make(decimals=1)
    for item in items.tolist():
        single.update(item)
    half = items.size // 2
    for item in items[:half].tolist():
        mixed.update(item)
    mixed.update_many(items[half:])
    assert (kind.raw(single), single.items) == (kind.raw(mixed), mixed.items) == after(kind, [items], decimals=1)


def cut_anywhere(kind: Kind, items: NDArray[Any], cuts: list[int]) -> None:
    """Where a stream is cut into batches leaves no trace."""
    assert after(kind, np.split(items, sorted(cuts)), decimals=2) == after(kind, [items], decimals=2)


def refusal_changes_nothing(kind: Kind, bad: Any) -> None:
    """A refused batch leaves the state and the count of items as they were."""
    estimator = kind.make(decimals=1)
    estimator.update_many(np.linspace(-5, 40, 500))
    estimator.update(3.0)
    before = (kind.raw(estimator), estimator.items)
    with pytest.raises(dpf.DPFrugalError) as refusal:
        estimator.update_many(bad)
    assert isinstance(refusal.value, TypeError | ValueError)
    assert "4242" not in str(refusal.value), "an item is in the message"
    assert (kind.raw(estimator), estimator.items) == before


def repr_shows_no_raw_state(kind: Kind) -> None:
    """A private estimator that is printed shows parameters and the number of items only."""
    estimator = kind.make(decimals=0)
    estimator.update_many(np.full(5_000, 4242.0))
    shown = repr(estimator) + str(estimator)
    assert not any(str(point) in shown for point in kind.raw(estimator))
