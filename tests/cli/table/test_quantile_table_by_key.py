"""``dpfrugal quantile --by`` on a table: keys in their own types, and nothing of what says nothing."""

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.cli.table.quantile_table_by_key import _cells, _label, declared_keys, explain, in_plain_types
from dpfrugal.errors import ParameterError

ONE = dpf.PureDP(epsilon=1.0)


@pytest.mark.parametrize(
    ("text", "types", "key"),
    [
        ("rest", [pa.string()], "rest"),
        ("-1", [pa.int32()], -1),
        ("0", [pa.int64(), pa.string()], (0, "0")),
        ("2026-01-02", [pa.date32()], datetime.date(2026, 1, 2)),
    ],
)
def test_other__is_a_key_of_the_keys_types(text: str, types: list[Any], key: Any) -> None:
    assert _label(text, types) == key


@pytest.mark.parametrize(("text", "types"), [("rest", [pa.int64()]), ("300", [pa.int8()]), ("x", [pa.date32()])])
def test_other__of_another_type_is_refused(text: str, types: list[Any]) -> None:
    with pytest.raises(ParameterError, match=f"--other must be a key of the type of those of --by; '{text}' is not"):
        _label(text, types)


def test_declared_keys__of_one_column_and_of_several(tmp_path: Path) -> None:
    one, several = tmp_path / "one.txt", tmp_path / "several.csv"
    one.write_text("1\n2\n")
    several.write_text("a,b\n1,x\n2,y\n")
    assert list(declared_keys(one, ["a"], [pa.int64()]).to_pylist()) == [1, 2]
    found = declared_keys(several, ["a", "b"], [pa.int64(), pa.string()])
    assert pa.table(found).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_plain_types__have_times_as_text_and_all_else_as_it_is() -> None:
    table = pa.table(
        {
            "time": pa.array([np.datetime64("2026-01-02T03:04:05.000000006", "ns"), None]),
            "span": pa.array([np.timedelta64(90, "s"), None]),
            "money": pa.array([Decimal("1.50"), None]),
            "key": ["a", None],
        }
    )
    plain = in_plain_types(table).to_pylist()
    assert plain[0]["time"] == "2026-01-02T03:04:05.000000006", "Python's own times have no nanoseconds"
    assert plain[0]["money"] == Decimal("1.50")
    assert set(plain[1].values()) == {None}


def test_cells__are_blank_where_there_is_no_value() -> None:
    known = {"carrier": 7, "quantile": 0.5, "value": 3, "lower": 2, "upper": 4, "rows": 10, "reason": None}
    unknown = known | {"value": None, "lower": None, "upper": None, "reason": "too few rows"}
    assert _cells(known, ["carrier"]) == ["7", "0.5", "3", "2", "4", "10", ""]
    assert _cells(unknown, ["carrier"]) == ["7", "0.5", "", "", "", "10", "too few rows"]


def test_explain__says_the_claim_its_shares_and_how_many_values_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"ms": list(range(3_000)), "key": ["a"] * 2_990 + ["b"] * 10})
    explain(dpf.quantiles_by(table, "ms", [0.5, 0.9], ONE, by="key", keys=["a", "b"]), 2)
    said = capsys.readouterr().err
    assert "ε=1 per row (replace-one" in said
    assert "3,000 rows, 2 keys" in said
    assert said.count("1 of 4 values is not shown: too few rows") == 2, "each quantile needs other numbers of rows"
    shares = re.findall(r"(\w+) (\d+)%", said.partition("Shares of the guarantee: ")[2].partition(";")[0])
    assert [name for name, _ in shares] == ["values", "intervals", "rows", "pilot"]
    assert sum(int(share) for _, share in shares) == 100
