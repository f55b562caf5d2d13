"""Updates per second, beside a sum over the same items."""

from pathlib import Path
from typing import Any

import pytest

from dpfrugal.paper import resources, throughput
from dpfrugal.paper.settings import Scale
from tests.paper.small_runs import rows_of, run


def test_throughput__is_a_ratio(everything: Path) -> None:
    for row in rows_of(everything / "results", "1d"):
        assert float(row["ratio"]) == pytest.approx(float(row["updates_per_second"]) / float(row["sums_per_second"]))
        assert row["machine"] == resources.machine()


@pytest.mark.parametrize("batch", [1 << 18, 300_000, 700_000, 1 << 20])
def test_throughput__is_timed_over_every_item(batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not batches, chunks and stream lengths fit into each other."""
    summed: list[int] = []

    def counted(act: Any, items: Any) -> float:
        summed.append(items.size)
        act(items)
        return 1.0

    monkeypatch.setattr(throughput, "BATCH", batch)
    monkeypatch.setattr(throughput, "seconds_of", counted)
    run(tmp_path, "1d", scale=Scale(items=90_001, repetitions=1))
    assert sum(summed) == 3 * 900_010  # summed, walked, summed again
    assert len(rows_of(tmp_path, "1d")) == 4
