"""Results summarised: one point per setting."""

import statistics
from pathlib import Path

import pytest

from dpfrugal.paper.noise_conventions import CONVENTIONS
from dpfrugal.paper.results import Row
from dpfrugal.paper.summary import error_matrix, points_of
from tests.paper.small_runs import rows_of


def test_accuracy__knows_whether_the_walk_can_have_converged(everything: Path) -> None:
    points = points_of(rows_of(everything / "results", "4"))
    assert not any(point.can_converge for point in points if point.convention in CONVENTIONS)  # 2000 items from 0
    assert all(point.can_converge for point in points if point.convention not in CONVENTIONS)
    assert all(point.standard_error <= point.mean for point in points)


def row(repetition: int, error: float, **changes: object) -> Row:
    values: dict[str, object] = {
        "convention": "as published", "algorithm": "L", "dataset": "D5", "items": 1_000, "quantile": 0.5,
        "epsilon": 1.0, "delta": None, "rho": None, "repetition": repetition, "exact_lower": 50.0,
        "exact_upper": 51.0, "released": 50 * (1 + error), "relative_error": error,
    } | changes  # fmt: skip
    return {name: "" if value is None else str(value) for name, value in values.items()}


def test_points__are_one_for_each_setting_and_convention_with_repetitions_in_order() -> None:
    errors = {repetition: repetition / 10 for repetition in (10, 2, 1)}
    rows = [row(repetition, error) for repetition, error in errors.items()]
    (point,) = points_of(rows)
    assert point.errors == (0.1, 0.2, 1.0)
    assert point.mean == pytest.approx(statistics.fmean(point.errors))
    assert point.standard_error == pytest.approx(statistics.stdev(point.errors) / 3**0.5)
    others = [row(1, 0.5, epsilon=2.0), row(1, 0.5, convention="on the grid"), row(1, 0.5, quantile=0.9)]
    assert [(p.convention, p.setting.quantile, p.setting.epsilon) for p in points_of([*others, *rows])] == [
        ("as published", 0.5, 1.0), ("as published", 0.5, 2.0), ("as published", 0.9, 1.0), ("on the grid", 0.5, 1.0),
    ]  # fmt: skip


def test_error_matrix__has_the_repetitions_that_all_settings_have() -> None:
    full = points_of([row(repetition, float(repetition)) for repetition in (1, 2, 3)])
    short = points_of([row(repetition, 10.0 * repetition, epsilon=2.0) for repetition in (1, 2)])
    assert error_matrix([*full, *short]).tolist() == [[1.0, 10.0], [2.0, 20.0]]


@pytest.mark.parametrize(("quantile", "items", "converges"), [(0.5, 100_000, True), (0.5, 99_998, False)])
def test_walk__can_converge_where_it_has_items_for_its_way(quantile: float, items: int, converges: bool) -> None:
    """From 0 to 50 are 50,000 steps of 0.001, each after two items on average at the median."""
    (point,) = points_of([row(1, 0.1, quantile=quantile, items=items)])
    assert point.can_converge is converges
