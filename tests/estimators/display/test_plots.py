"""Pictures of releases: every known value is a point, every bounded interval a bar, and nothing else is drawn."""

import sys
from decimal import Decimal
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf

mpl.use("Agg")
ONE = dpf.PureDP(epsilon=1.0)
DAY = np.datetime64("2026-03-01T00:00:00", "ms")


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def points(axes: Any) -> list[tuple[Any, Any]]:
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines]


def bars(axes: Any) -> list[Any]:
    return [collection.get_segments()[0] for collection in axes.collections]


def test_release__has_a_point_and_a_bar_for_each_quantile() -> None:
    rows = np.random.default_rng(1).normal(50, 3, 5_000)
    release = dpf.private_quantiles(rows, [0.9, 0.5], ONE)
    axes = release.plot()
    assert points(axes) == [(0, release.values[1]), (1, release.values[0])]
    assert [(bar[0][1], bar[1][1]) for bar in bars(axes)] == [release.intervals()[1], release.intervals()[0]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["p50", "p90"]


def test_release__with_too_few_rows_has_no_point() -> None:
    axes = dpf.private_quantiles(np.full(5_000, 7), [0.5, 0.9999], ONE).plot()
    assert len(points(axes)) == 1
    assert [text.get_text() for text in axes.texts] == ["too few\nrows"]


def test_release__is_drawn_on_axes_that_are_given() -> None:
    import matplotlib.pyplot as plt

    _, given = plt.subplots()
    estimator = dpf.DPFrugal1U([0.5, 0.9], ONE, start=50)
    estimator.update_many(range(100))
    assert estimator.release().plot(ax=given) is given
    assert len(points(given)) == 2


@pytest.mark.parametrize(
    "rows",
    [
        DAY + np.arange(4_000).astype("timedelta64[m]"),
        np.arange(4_000).astype("timedelta64[s]"),
        pa.array([Decimal(each) / 100 for each in range(4_000)]),
        pa.array([1, 2, None] * 2_000),
    ],
    ids=["times", "durations", "decimals", "nulls"],
)
def test_release__of_every_type_of_column_can_be_drawn(rows: Any) -> None:
    axes = dpf.private_quantiles(rows, [0.5, 0.9], ONE, nan_policy="omit").plot()
    axes.figure.canvas.draw()
    assert len(points(axes)) == 2


def test_table__has_a_line_for_each_key() -> None:
    table = pa.table({"key": ["$a$", "b"] * 4_000, "other": ["x"] * 8_000, "value": [1.0, 1000.0] * 4_000})
    keys = pa.table({"key": ["$a$", "b", "none"], "other": ["x"] * 3})
    found = dpf.quantiles_by(table, "value", [0.1, 0.5], ONE, by=["key", "other"], keys=keys)
    axes = dpf.plot_quantiles(found)
    assert sorted(value for value, _ in points(axes)) == [1.0, 1.0, 1000.0, 1000.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [r"\$a\$, x", "b, x", "none, x"]
    assert [text.get_text() for text in axes.texts] == ["too few rows"]
    assert axes.get_xscale() == "log"
    few = dpf.plot_quantiles(found, most_keys=1)
    assert "the first 1 of 3 keys" in few.get_title().replace("\n", " ")
    assert few.get_xscale() == "linear"


def test_table__that_is_no_release_is_refused() -> None:
    with pytest.raises(dpf.ParameterError, match="as quantiles_by or release returns it"):
        dpf.plot_quantiles(pa.table({"quantile": [0.5], "value": [1.0]}))


def test_description__has_a_box_for_each_column() -> None:
    table = pa.table({"age": [20, 30, 40] * 5_000, "few": [None] * 14_999 + [1]})
    figure = dpf.describe(table, ONE, nan_policy="omit").plot("people.csv")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["age", "few"]
    assert figure.get_suptitle().startswith("people.csv: ε=1 in all")


def test_plot__says_how_to_install_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    release = dpf.private_quantiles(np.full(500, 7), 0.5, ONE)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(dpf.ParameterError, match=r"pip install 'dpfrugal\[plot\]'"):
        release.plot()
