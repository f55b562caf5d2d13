"""A box plot of each column: what is drawn is what was released."""

from typing import Any

import matplotlib as mpl
import pytest

from dpfrugal.estimators.display.answers import Answer
from dpfrugal.estimators.display.box_plots import MOST_COLUMNS, box_plots

mpl.use("Agg")
FIVE = (0.05, 0.25, 0.5, 0.75, 0.95)


def answers(*values: float | None) -> list[Answer]:
    return [
        Answer(q, value, value - 1, value + 1) if value is not None else Answer(q, 0.0, None, None, "too few rows")
        for q, value in zip(FIVE, values, strict=True)
    ]


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def boxes(axes: Any) -> list[tuple[float, float]]:
    found = [collection.get_paths()[0].get_extents() for collection in axes.collections]
    return [(box.x0, box.x1) for box in found]


def lines(axes: Any) -> list[list[float]]:
    return [list(line.get_xdata()) for line in axes.lines]


def test_box_plots__of_five_values_have_box_whiskers_median_and_intervals() -> None:
    (axes,) = box_plots({"ms": answers(10, 20, 30, 40, 50)}, "title", 0.95).axes
    assert lines(axes) == [[20, 10], [10, 10], [40, 50], [50, 50], [30, 30]]
    assert boxes(axes) == [(20, 40), *((value - 1, value + 1) for value in (10, 20, 30, 40, 50))]


def test_box_plots__leave_out_what_is_not_known() -> None:
    (axes,) = box_plots({"ms": answers(None, None, 30, 40, None)}, "title", None).axes
    assert lines(axes) == [[30, 30]]
    assert boxes(axes) == [(29, 31), (39, 41)]


def test_box_plots__a_column_of_which_nothing_is_known_says_so() -> None:
    (axes,) = box_plots({"ms": answers(*[None] * 5)}, "title", None).axes
    assert ([text.get_text() for text in axes.texts], lines(axes)) == (["too few rows"], [])


def test_box_plots__have_an_axis_for_each_column_with_its_own_scale() -> None:
    figure = box_plots({"even": answers(1, 2, 3, 4, 5), "wide $x$": answers(1, 10, 100, 1000, 10000)}, "$", 0.9)
    assert [axes.get_xscale() for axes in figure.axes] == ["linear", "log"]
    assert figure.axes[1].get_ylabel() == r"wide \$x\$"
    assert "90% intervals" in figure.get_suptitle()
    assert len(box_plots({str(k): answers(1, 2, 3, 4, 5) for k in range(70)}, "", None).axes) == MOST_COLUMNS
