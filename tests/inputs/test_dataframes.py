"""Five-line recipes for the data frames people use, and what is refused."""

import re
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.errors import ItemError, TableError
from dpfrugal.estimators.keyed.walked_quantiles_by import walked_quantiles_by
from dpfrugal.inputs.dataframes import FAILED, run
from tests.support.repository import ROOT

GUIDE = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
ROWS = 60_000
CARRIERS = ["AA", "UA", "DL"]
_order = np.random.default_rng(4).permutation(ROWS)
TABLE = pa.table(
    {
        "carrier": np.array(CARRIERS)[_order % 3].tolist(),
        "delay": (_order % 3) * 10.0 + (_order // 3 % 100) / 100,  # uniform on [0, 1), [10, 11) and [20, 21)
        "note": [None] * ROWS,
        "pilot": _order % 1000,
    }
)


class Interchange:
    """A data frame that knows nothing but the interchange protocol."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __dataframe__(self, **options: Any) -> Any:
        return self._table.__dataframe__(**options)


class Stream:
    """A data frame that knows nothing but Arrow's stream protocol."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES = {
    "arrow": lambda table: table,
    "arrow batches": lambda table: table.to_reader(1000),
    "arrow batch": lambda table: table.combine_chunks().to_batches()[0],
    "pandas": lambda table: table.to_pandas(),
    "pandas category": lambda table: table.to_pandas().astype({"carrier": "category"}),
    "polars": pl.from_arrow,
    "polars lazy": lambda table: pl.from_arrow(table).lazy(),
    "polars category": lambda table: pl.from_arrow(table).with_columns(pl.col("carrier").cast(pl.Categorical)),
    "duckdb": lambda table: duckdb.from_arrow(table),
    "interchange": lambda table: Interchange(table.select(["carrier", "delay", "pilot"])),
    "stream": Stream,
}


@pytest.mark.parametrize("frame", FRAMES)
def test_dataframes__give_the_same_quantiles_whatever_their_library(frame: str) -> None:
    """Noise of scale 2 steps of 0.01 and the jitter of the walk; |error| > 0.5 has a chance below e^-25."""
    table = walked_quantiles_by(
        FRAMES[frame](TABLE), "delay", 0.5, dpf.PureDP(epsilon=1.0), by="carrier", keys=CARRIERS, decimals=2, start=10.5
    )
    assert table["key"].to_pylist() == CARRIERS
    for value, expected in zip(table["value"].to_pylist(), (0.5, 10.5, 20.5), strict=True):
        assert abs(value - expected) < 0.75
    assert table.schema.metadata[b"items"] == str(ROWS).encode()


def test_quantiles_by__takes_persons_and_discovers_keys() -> None:
    table = walked_quantiles_by(
        TABLE,
        "delay",
        [0.5, 0.9],
        dpf.PureDP(epsilon=1.0),
        by="carrier",
        person="pilot",
        discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6),
        max_items_per_person=5,
        start=10,
    )
    # 1000 pilots with 5 rows each: about 1700 rows a carrier, against noise of scale 10 and a threshold under 200
    assert table["key"].to_pylist() == sorted(np.repeat(CARRIERS, 2).tolist())
    assert table.schema.metadata[b"total"].decode() == "ε=2, δ=1e-06"
    assert "≤ 5 items" in table.schema.metadata[b"unit"].decode()


@pytest.mark.parametrize("frame", ["arrow", "pandas", "polars", "duckdb"])
def test_quantiles_by__releases_after_equal_numbers_of_rows(frame: str, monkeypatch: pytest.MonkeyPatch) -> None:
    released = []
    release = dpf.KeyedDPFrugal1U.release

    def counting(self: dpf.KeyedDPFrugal1U) -> Any:
        released.append(self.items)
        return release(self)

    monkeypatch.setattr(dpf.KeyedDPFrugal1U, "release", counting)
    table = walked_quantiles_by(FRAMES[frame](TABLE), "delay", 0.5, dpf.PureDP(epsilon=1.0), **options(rounds=7))
    assert released == [ROWS * done // 7 for done in range(1, 8)]
    assert table.schema.metadata[b"guarantee"].decode() == "ε=1"


@pytest.mark.parametrize("recipe", re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL))
def test_recipes__run_in_five_lines(recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(recipe, "docs/keys.md", "exec"), {})  # noqa: S102 - it is ours
    assert "DL" in capsys.readouterr().out
    assert len(recipe.splitlines()) <= 5


def options(**others: Any) -> dict[str, Any]:
    return {"by": "carrier", "keys": CARRIERS} | others


@pytest.mark.parametrize(
    ("data", "column", "given", "sentence"),
    [
        (TABLE, "lateness", options(), "no column 'lateness'"),
        (TABLE.to_reader(), "lateness", options(), "no column 'lateness'"),
        (TABLE.to_pandas(), "delay", options(by="airline"), "no column 'airline'"),
        (TABLE, "delay", options(person="nobody"), "no column 'nobody'"),
        (pl.DataFrame({"a": [1]}).lazy(), "b", options(by="a"), "no column 'b'"),
        (
            pl.LazyFrame({"a": ["four"]}).select(pl.col("a").cast(pl.Int64), b=1.5),
            *("b", options(by="a", keys=[1]), "its plan fails"),
        ),
        ([1, 2], "delay", options(), "data must be a DataFrame"),
        (TABLE, 3, options(), "column must be the name of a column"),
        (TABLE, "delay", {"by": "carrier"}, "discover_keys"),
        (TABLE, "carrier", options(), "real numbers"),
        (TABLE, "delay", options(by="delay"), "floating-point"),
        (TABLE, "delay", options(keys=[1, 2]), "keys must be integers, as declared"),
        (pd.DataFrame({"carrier": ["AA", 1], "delay": [1, 2]}), "delay", options(), "one type"),
        (pd.DataFrame([["AA", 1, 2]], columns=["carrier", "delay", "delay"]), "delay", options(), "more than one"),
        (TABLE.rename_columns(["carrier", "x", "delay", "y"]), "delay", options(), "NaN or null"),
        (TABLE, "delay", options(rounds=0), "rounds must be at least 1"),
        (TABLE, "delay", options(rounds=2.0), "rounds must be an integer"),
        (TABLE.to_reader(), "delay", options(rounds=2), "rounds is for data that say how many rows"),
    ],
)
def test_quantiles_by__refuses_what_cannot_be_used(
    data: Any, column: Any, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(dpf.DPFrugalError, match=sentence):
        walked_quantiles_by(data, column, 0.5, dpf.PureDP(epsilon=1.0), **given)


def test_run__leaves_the_messages_of_others_behind() -> None:
    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(TableError, match=FAILED) as caught:
        run(lambda: fail(ValueError("row 7 is 4111-1111")))
    assert caught.value.__cause__ is caught.value.__context__ is None
    with pytest.raises(ItemError, match="mine"):
        run(lambda: fail(ItemError("mine")))
    assert run(lambda: 7) == 7
