"""A private quantile per group of a data frame: which rows go to the estimator together."""

from typing import Any

import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed import quantiles_by as module

TABLE = pa.table({"who": list(range(100)) * 3, "key": ["a", "b", "c"] * 100, "x": list(range(300))})


@pytest.mark.parametrize("cuts", [[300], [1, 0, 99, 200], [7] * 43])
def test_quantiles_by__with_persons_batches_do_not_depend_on_how_the_reader_cuts(
    cuts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader cuts by bytes, so by what other people's rows hold; which rows of a person are taken must not."""
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 128)
    sizes, update_many = [], dpf.KeyedDPFrugal1U.update_many

    def recorded(estimator: dpf.KeyedDPFrugal1U, keys: Any, values: Any, person: Any = None) -> None:
        sizes.append(len(keys))
        update_many(estimator, keys, values, person)

    monkeypatch.setattr(dpf.KeyedDPFrugal1U, "update_many", recorded)
    firsts = [sum(cuts[:k]) for k in range(len(cuts))]
    batches = [TABLE.slice(first, size).to_batches() for first, size in zip(firsts, cuts, strict=True)]
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, [batch for several in batches for batch in several])
    dpf.quantiles_by(reader, "x", 0.5, dpf.PureDP(epsilon=1.0), by="key", person="who", keys=["a", "b", "c"])
    assert sizes == [128, 128, 44]
