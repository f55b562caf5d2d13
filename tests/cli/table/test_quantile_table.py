"""``dpfrugal quantile`` on a table: what says nothing is shown in no form, and a spend is said whatever ends."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import dpfrugal as dpf
from dpfrugal.cli.options import EstimatorOptions
from dpfrugal.cli.table.quantile_table import explain, known, record, rows_of, shown, spent, table_parameters, texts
from dpfrugal.cli.table.table_options import TableOptions
from dpfrugal.errors import ParameterError

ONE = dpf.PureDP(epsilon=1.0)


def asked(**options: Any) -> EstimatorOptions:
    return EstimatorOptions([[0.5]], epsilon=1.0, **options)  # type: ignore[list-item]


def release(**options: Any) -> Any:
    """The median is known, the last quantile is not."""
    return dpf.private_quantiles(np.arange(2_000), [0.5, 0.999], ONE, **options)


@pytest.mark.parametrize("options", [{}, {"intervals": False}], ids=str)
def test_unknown_value__is_shown_in_no_form(options: dict[str, Any]) -> None:
    found = release(**options)
    assert found.reasons[0] is None
    assert found.reasons[1] is not None
    raw = found.values[1]
    assert known(found)[1] == (0.999, None, None, None)
    assert list(rows_of(found))[1] == ["0.999", *[""] * (1 if options else 3)]
    assert record(found)["values"] == [found.values[0], None]
    if not options:
        assert record(found)["intervals"][1] == [None, None]
    assert "value" not in record(found)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(shown(found))
    text = console.export_text()
    assert "too few rows" in text
    assert str(raw) not in text


def test_known_value__is_the_same_in_every_form() -> None:
    found = release()
    (q, value, low, high), _ = known(found)
    assert (q, value) == (0.5, found.values[0])
    assert next(iter(rows_of(found))) == ["0.5", *texts(value, low, high)]
    assert record(found)["intervals"][0] == [low, high]
    assert low <= value <= high


def test_record__of_one_quantile_has_its_value_too() -> None:
    found = dpf.private_quantiles(np.arange(2_000), 0.5, ONE)
    assert record(found)["value"] == found.value
    few = dpf.private_quantiles(np.arange(5), 0.5, ONE)
    assert (record(few)["value"], record(few)["values"]) == (None, [None])


CHANGES: dict[str, Any] = {
    "neighbours": "add-remove",
    "person": "who",
    "intervals": False,
    "confidence": 0.9,
    "interval_of": "table",
    "low": "1",
    "high": "9",
    "memory": "2GB",
}


@pytest.mark.parametrize("name", CHANGES)
def test_parameters__are_the_options_that_were_given(name: str) -> None:
    plain, changed = (
        table_parameters(asked(), table) for table in (TableOptions(), TableOptions(**{name: CHANGES[name]}))
    )
    assert {key for key in plain if plain[key] != changed[key]} == {name}
    assert changed[name] == {"memory": 2 * 10**9}.get(name, CHANGES[name])


@pytest.mark.parametrize("name", ["max_items_per_person", "decimals", "nan_policy"])
def test_parameters__have_those_of_all_estimators(name: str) -> None:
    value: Any = {"max_items_per_person": 3, "decimals": 2, "nan_policy": "omit"}[name]
    assert table_parameters(asked(**{name: value}), TableOptions())[name] == value


@pytest.mark.parametrize("name", ["low", "high"])
@pytest.mark.parametrize("text", ["nan", " NaN ", "NaT"])
def test_hint__that_is_no_value_is_refused(name: str, text: str) -> None:
    hint: Any = {name: text}
    with pytest.raises(ParameterError, match=f"--{name} must be a value of the column"):
        table_parameters(asked(), TableOptions(**hint))


def test_spent__says_so_whatever_ends_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = dpf.Ledger(tmp_path / "b.db", total=dpf.PureDP(epsilon=3.0))
    ledger.spend("clicks", ONE)
    with spent(ledger, "clicks", ONE):
        pass
    assert capsys.readouterr().err == ""
    for ending in (KeyboardInterrupt, OSError, SystemExit):
        with pytest.raises(ending), spent(ledger, "clicks", ONE):
            raise ending
        assert "ε=1 was spent on 'clicks'" in (said := capsys.readouterr().err)
        assert "ε=2 is left of ε=3" in said
    with pytest.raises(OSError), spent(None, None, ONE):  # noqa: PT011 - any
        raise OSError
    assert capsys.readouterr().err == ""


def test_explain__says_what_was_paid_for_what_and_shows_no_private_number(capsys: pytest.CaptureFixture[str]) -> None:
    explain(release())
    said = capsys.readouterr().err
    assert "ε=1 per row replaced; 2,000 rows" in said
    assert "values have 48% of the guarantee, intervals 48%, a pilot 4%" in said
    assert "no number is shown" in said
    texts_of = set()
    for rows in (500, 5_000):
        explain(dpf.private_quantiles(np.arange(rows), 0.5, ONE, neighbours="add-remove"))
        texts_of.add(capsys.readouterr().err)
    assert len(texts_of) == 1
    assert "the number of rows is private" in texts_of.pop()


def test_texts__are_blank_where_there_is_nothing() -> None:
    assert texts(None, None, None) == ["", "", ""]
    assert texts(3, 2, 4) == ["3", "2", "4"]
