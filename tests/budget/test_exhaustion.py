"""When a total will be exhausted, at the pace of the last spends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.budget.claims import Tally
from dpfrugal.budget.exhaustion import outlook
from dpfrugal.budget.promises import Dataset, spend_of

DAY = datetime(2026, 11, 1, tzinfo=UTC)


def spent(total: dpf.Guarantee, *guarantees: dpf.Guarantee, by: str = "WindowQuantile") -> Dataset:
    spends = [
        replace(spend_of("clicks", guarantee, by, None, 1), when=DAY + timedelta(days=day))
        for day, guarantee in enumerate(guarantees)
    ]
    return Dataset(
        name="clicks", total=total, max_items_per_person=1, adaptive=False, opened=DAY, latest=spends[-1].when,
        tally=Tally.of(spend.claim for spend in spends), history=lambda: tuple(spends),
    )  # fmt: skip


PURE, APPROX = dpf.PureDP(epsilon=1.0), dpf.ApproxDP(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("total", "guarantees", "more"),
    [
        (dpf.PureDP(epsilon=7.0), [PURE] * 2, 5),
        (dpf.PureDP(epsilon=7.0), [PURE] * 7, 0),
        (dpf.PureDP(epsilon=0.3), [dpf.PureDP(epsilon=0.1)] * 2, 1),
        (dpf.ZCDP(rho=1.0), [dpf.ZCDP(rho=0.1)] * 4, 6),
        (dpf.ApproxDP(epsilon=9.0, delta=4e-6), [APPROX] * 2, 2),  # by its δ
        (dpf.PureDP(epsilon=7.0), [PURE], None),
        (dpf.PureDP(epsilon=7.0), [PURE, PURE, dpf.PureDP(epsilon=2.0)], None),
        (dpf.PureDP(epsilon=7.0), [PURE, dpf.PureDP(epsilon=2.0), PURE], None),
    ],
)
def test_outlook__says_how_many_more_fit_and_until_when(total: Any, guarantees: Any, more: int | None) -> None:
    coming = outlook(spent(total, *guarantees))
    if more is None:
        assert coming is None
    else:
        assert coming is not None
        assert coming.more == more
        assert coming.until == DAY + timedelta(days=len(guarantees) - 1 + more)


def test_outlook__of_many_spends_reads_no_history() -> None:
    def unread() -> Any:
        raise AssertionError("the history is long")

    few = spent(dpf.PureDP(epsilon=10_000.0), PURE, PURE)
    tally = few.tally.plus(few.spends[0].claim, 4_998)
    many = replace(few, tally=tally, latest=DAY + timedelta(days=5_000), history=unread)
    coming = outlook(many)
    assert coming is not None
    assert (coming.more, coming.until) == (5_000, DAY + timedelta(days=10_000))
