"""Releases and tables of releases in HTML, as notebooks show them: ``_repr_html_`` and IPython's formatter.

A key may be anything that somebody once typed into a form, so every cell is escaped, what is not printable too. A
``pyarrow.Table`` cannot be given a method; ``show_tables_in_notebooks`` tells IPython how to show those that this
library released, and leaves all others as they were.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpfrugal.estimators.display.answers import (
    Answer,
    answers_of_table,
    is_table_of_releases,
    key_names,
    texts_of_column,
    values_of_column,
)
from dpfrugal.estimators.display.shown_values import shown_value
from dpfrugal.outside_text import in_html

MOST_ROWS = 60  # as many as pandas shows
ENDS = ("lower", "upper")


def answers_html(answers: Sequence[Answer], claim: str) -> str:
    """A release: a row per quantile, and under them what is promised."""
    with_ends = any(each.lower is not None or each.upper is not None or each.reason for each in answers)
    titles = ["quantile", "value", *(ENDS if with_ends else ())]
    return table_of_cells(titles, ([f"{each.quantile:g}", *cells(each, with_ends)] for each in answers), claim)


def columns_html(columns: Mapping[str, Sequence[Answer]], claim: str) -> str:
    """The releases of several columns: a row for each, with its quantiles side by side."""
    quantiles = [f"{each.quantile:g}" for each in next(iter(columns.values()))]
    rows = ([name, *(cells(each, with_ends=False)[0] for each in answers)] for name, answers in columns.items())
    return table_of_cells(["column", *quantiles], rows, claim)


def table_html(table: Any) -> str | None:
    """A table of releases, the first rows of it if it is long; None for any other table."""
    if not is_table_of_releases(table):
        return None
    first = table.slice(0, MOST_ROWS)
    names = key_names(first)
    keys = list(zip(*(texts_of_column(first[name]) for name in names), strict=True))
    answers = answers_of_table(first)
    ends = ENDS if {"lower", "alpha"} & set(first.column_names) else ()
    more = [name for name in ("rows",) if name in first.column_names]
    numbers = list(zip(*(values_of_column(first[name]) for name in more), strict=True)) or [()] * first.num_rows
    body = [
        [*key, f"{each.quantile:g}", *cells(each, bool(ends)), *(shown_value(number) for number in counted)]
        for key, each, counted in zip(keys, answers, numbers, strict=True)
    ]
    left_out = table.num_rows - first.num_rows
    claim = table_claim(table) + (f"; {left_out:,} more rows" if left_out else "")
    return table_of_cells([*names, "quantile", "value", *ends, *more], body, claim)


def table_claim(table: Any) -> str:
    """What covers a table of releases, from its metadata."""
    said = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    changed = said["neighbours"].replace("replace-one", "replaced").replace("add-or-remove-one", "added or removed")
    parts = [f"{said.get('total', said['guarantee'])} for the whole table, per {said['unit']} {changed}"]
    if "confidence" in said:
        parts.append(f"{100 * float(said['confidence']):g}% intervals")
    elif "beta" in said:
        parts.append(f"ends: the noise of this release, {1 - float(said['beta']):.0%}")
    return "; ".join(parts)


def cells(answer: Answer, with_ends: bool) -> list[str]:
    """Value and ends as text; where there is a reason, it stands for them."""
    if answer.reason is not None or answer.value is None:
        return ["too few rows", *([""] * (2 if with_ends else 0))]
    low, high = answer.lower, answer.upper
    width = high - low if isinstance(low, float) and isinstance(high, float) else None
    ends = ["…" if end is None else shown_value(end, width) for end in (low, high)] if with_ends else []
    return [shown_value(answer.value, width), *ends]


def table_of_cells(titles: Iterable[str], rows: Iterable[Sequence[str]], claim: str) -> str:
    """HTML without colours of its own: it is read on light and on dark."""
    head = "".join(f'<th style="text-align: right">{in_html(each)}</th>' for each in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align: right">{in_html(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f'<table class="dpfrugal"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f'<p class="dpfrugal"><small>{in_html(claim)}</small></p>'
    )


def show_tables_in_notebooks() -> None:
    """In a notebook, show tables of releases in HTML; a formatter for tables that somebody else has set is kept."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return
    formatter = shell.display_formatter.formatters["text/html"]
    try:
        formatter.lookup_by_type("pyarrow.lib.Table")
    except KeyError:
        formatter.for_type_by_name("pyarrow.lib", "Table", table_html)
