"""Pictures of releases: a point per value and a bar per interval, drawn with matplotlib.

A quantile that so few rows cannot tell has no point; an interval whose end is not known has no bar on that side.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfrugal import parameters
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.display.answers import Answer, answers_of_table, known_end, quantiles_shown
from dpfrugal.estimators.display.html import table_claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOGARITHMIC = 100  # from this ratio of the largest to the smallest value on


def plot_answers(answers: Sequence[Answer], claim: str, ax: "Axes | None" = None) -> "Axes":
    """A release: quantiles along the horizontal axis, values up."""
    axes = _axes(ax, (1.6 + 1.1 * len(answers), 4.0))
    for place, answer in enumerate(sorted(answers, key=lambda each: each.quantile)):
        value, low, high = _places(answer)
        if value is None:
            axes.text(place, 0.5, "too few\nrows", transform=axes.get_xaxis_transform(), ha="center", color="gray")
            continue
        if low is not None and high is not None:
            axes.vlines(place, low, high, color="C0", linewidth=7, alpha=0.35)
        axes.plot(place, value, "o", color="C0")
    labels = [_label(each.quantile) for each in sorted(answers, key=lambda each: each.quantile)]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.6, len(labels) - 0.4)
    if _wants_logarithm(answers):
        axes.set_yscale("log")
    _concise_dates(axes.yaxis)
    axes.set_title(_wrapped(claim, 36 + 12 * len(labels)), fontsize="small")
    return axes


def plot_quantiles(table: Any, *, ax: "Axes | None" = None, most_keys: int = 40) -> "Axes":
    """Draw a table of releases: a line per key, on it a point and an interval per quantile. Needs matplotlib.

    ``table`` is what ``quantiles_by`` or a keyed estimator's ``release`` returns. The first ``most_keys`` keys are
    drawn, on ``ax`` where it is given. The matplotlib axes are returned.

    >>> import dpfrugal as dpf, pyarrow as pa
    >>> rows = pa.table({"shop": ["north", "south"] * 2_000, "sales": [10, 20] * 2_000})
    >>> found = dpf.quantiles_by(rows, "sales", 0.5, dpf.PureDP(epsilon=1.0), by="shop", keys=["north", "south"])
    >>> dpf.plot_quantiles(found).figure.savefig("shops.png")  # doctest: +SKIP
    """
    parameters.integer("most_keys", most_keys, 1)
    answers = answers_of_table(table)
    keys = list(dict.fromkeys(each.key for each in answers))
    shown = keys[:most_keys]
    axes = _axes(ax, (7.0, 1.6 + 0.34 * max(2, len(shown))))
    quantiles, labelled = quantiles_shown(answers), set()
    for answer in answers:
        if answer.key not in shown:
            continue
        k = quantiles.index(answer.quantile)
        place = shown.index(answer.key) + 0.5 * ((k + 0.5) / len(quantiles) - 0.5)
        value, low, high = _places(answer)
        if value is None:
            continue
        if low is not None and high is not None:
            axes.hlines(place, low, high, color=f"C{k % 10}", linewidth=5, alpha=0.35)
        label = None if k in labelled else _label(answer.quantile)
        axes.plot(value, place, "o", color=f"C{k % 10}", markersize=4, label=label)
        labelled.add(k)
    for key in shown:
        if all(_places(each)[0] is None for each in answers if each.key == key):
            axes.text(
                0.5, shown.index(key), "too few rows",
                transform=axes.get_yaxis_transform(), ha="center", va="center", color="gray", fontsize="small",
            )  # fmt: skip
    axes.set_yticks(range(len(shown)), [plain_text(key) for key in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    if _wants_logarithm([each for each in answers if each.key in shown]):
        axes.set_xscale("log")
    _concise_dates(axes.xaxis)
    if labelled:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    left_out = "" if len(keys) == len(shown) else f"; the first {len(shown):,} of {len(keys):,} keys"
    axes.set_title(_wrapped(table_claim(table) + left_out, 80), fontsize="small")
    return axes


def _axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    if ax is not None:
        return ax
    axes: Axes = pyplot().subplots(figsize=size, layout="constrained")[1]
    return axes


def pyplot() -> Any:
    """The module pyplot of matplotlib, which is an extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ParameterError("A picture needs matplotlib: pip install 'dpfrugal[plot]'.") from None
    return plt


def _concise_dates(axis: Any) -> None:
    """Labels of times that do not repeat the year at every tick."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if isinstance(axis.get_major_locator(), AutoDateLocator):
        axis.set_major_formatter(ConciseDateFormatter(axis.get_major_locator()))


def _places(answer: Answer) -> tuple[Any, Any, Any]:
    """The value and the ends where matplotlib can place them; no value where there is a reason."""
    if answer.reason is not None:
        return None, None, None
    value, low, high = (place_of(each) for each in (answer.value, answer.lower, answer.upper))
    return value, low, high


def place_of(value: Any) -> Any:
    """Times as they are, durations in seconds, decimals and numbers as floats."""
    known = known_end(value)
    if known is None or isinstance(known, np.datetime64) or hasattr(known, "isoformat"):
        return known
    if isinstance(known, np.timedelta64):
        return float(known / np.timedelta64(1, "s"))
    return float(known) if math.isfinite(known) else None


def _wants_logarithm(answers: Sequence[Answer]) -> bool:
    values = [value for value, _, _ in map(_places, answers) if value is not None]
    if not values or not all(isinstance(value, float) for value in values):
        return False
    ends = [end for each in answers for end in _places(each)[1:] if isinstance(end, float)]
    return bool(min([*values, *ends]) > 0 and max(values) / min(values) > LOGARITHMIC)


def _label(quantile: float) -> str:
    return f"p{100 * quantile:g}"


def _wrapped(text: str, width: int) -> str:
    import textwrap

    return plain_text("\n".join(textwrap.wrap(text, width)))


def plain_text(text: str) -> str:
    """Text from outside: no formulas."""
    return text.replace("$", r"\$")
