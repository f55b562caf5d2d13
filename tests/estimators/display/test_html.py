"""Releases in notebooks: what is shown, that a key cannot inject HTML, and that other tables are left alone."""

import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.display.html import MOST_ROWS, show_tables_in_notebooks, table_html

ONE = dpf.PureDP(epsilon=1.0)


def cells(found: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", found)][1:]


def by_key(keys: list[str], rows: int = 2_000) -> Any:
    table = pa.table({"key": keys[:2] * rows, "value": [10, 20] * rows})
    return dpf.quantiles_by(table, "value", [0.5, 0.9], ONE, by="key", keys=keys)


def test_release__shows_its_values_intervals_and_claim() -> None:
    release = dpf.private_quantiles(np.full(5_000, 7), [0.5, 0.9999], ONE)
    found = release._repr_html_()
    assert cells(found) == [["0.5", "7", "7", "7"], ["0.9999", "too few rows", "", ""]]
    assert "ε=1 per row replaced, 5,000 rows" in found
    without = dpf.private_quantiles(np.full(5_000, 7), 0.5, ONE, intervals=False)
    assert cells(without._repr_html_()) == [["0.5", "7"]]


def test_release__of_a_stream_shows_its_intervals() -> None:
    for estimator in (dpf.PrivateQuantile(0.5, ONE), dpf.DPFrugal1U(0.5, ONE, start=50)):
        estimator.update_many(range(10_000))
        (row,) = cells(estimator.release()._repr_html_())
        value, low, high = map(float, row[1:])
        assert low < value < high


def test_description__has_a_row_for_each_column() -> None:
    table = pa.table({"age": [20, 30, 40] * 5_000, "<i>": [1, 1, 1] * 5_000})
    found = dpf.describe(table, ONE)._repr_html_()
    assert cells(found) == [["age", "20", "20", "30", "40", "40"], ["&lt;i&gt;", "1", "1", "1", "1", "1"]]


def test_table__shows_keys_as_text_and_never_as_html() -> None:
    found = table_html(by_key(["<script>alert(1)</script>", "b&c", "none"]))
    assert found is not None
    assert "<script>" not in found
    rows = cells(found)
    assert [row[0] for row in rows[::2]] == ["&lt;script&gt;alert(1)&lt;/script&gt;", "b&amp;c", "none"]
    assert rows[0][1:5] == ["0.5", "10", "10", "10"]
    assert rows[4][2] == "too few rows"
    assert "ε=1 for the whole table" in found


def test_table__of_a_walk_shows_its_noise() -> None:
    keyed = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["a", "b"])
    keyed.update_many(["a", "b"] * 100, [1.0, 2.0] * 100)
    found = table_html(keyed.release())
    assert found is not None
    for row in cells(found):
        assert float(row[3]) < float(row[2]) < float(row[4])


def test_table__shows_its_first_rows_where_it_is_long() -> None:
    found = table_html(by_key([f"k{number}" for number in range(40)]))
    assert found is not None
    assert len(cells(found)) == MOST_ROWS
    assert "20 more rows" in found


def test_table__is_left_alone_where_it_is_no_release() -> None:
    assert table_html(pa.table({"quantile": [0.5], "value": [1.0]})) is None


def test_notebook__shows_tables_unless_somebody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    display = formatters.DisplayFormatter()
    shell = SimpleNamespace(display_formatter=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    show_tables_in_notebooks()
    table = by_key(["a", "b"])
    assert display.format(table)[0]["text/html"] == table_html(table)
    assert "text/html" not in display.format(pa.table({"a": [1]}))[0]
    shell.display_formatter = other = formatters.DisplayFormatter()
    other.formatters["text/html"].for_type_by_name("pyarrow.lib", "Table", lambda table: "theirs")
    show_tables_in_notebooks()
    assert other.format(table)[0]["text/html"] == "theirs"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    show_tables_in_notebooks()
