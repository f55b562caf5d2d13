"""The demo's file: the same for a seed, in order of time, with the shares and medians that it states."""

import numpy as np
import pytest

from dpfrugal.cli.table.demo_requests import DAY, ENDPOINTS, load, requests

ROWS = 40_000


def test_requests__are_of_one_day_in_order_of_time() -> None:
    table = requests(ROWS, 1)
    times = table["time"].to_numpy()
    assert np.all(np.diff(times) >= np.timedelta64(0))
    assert times[0].astype("datetime64[D]") == times[-1].astype("datetime64[D]")
    assert requests(ROWS, 1).equals(table)
    assert not requests(ROWS, 2).equals(table)


def test_requests__have_the_shares_and_medians_that_are_stated() -> None:
    """A share is off by seven standard deviations once in 10^11 seeds; this one is fixed."""
    table = requests(ROWS, 1).to_pandas()
    assert sum(share for share, _, _ in ENDPOINTS.values()) == pytest.approx(1.0)
    busy = load((table["time"] - table["time"].dt.floor("D")).dt.total_seconds().to_numpy())
    for name, (share, median, tail) in ENDPOINTS.items():
        mine = (table["endpoint"] == name).to_numpy()
        assert abs(mine.mean() - share) < 7 * np.sqrt(share / ROWS) + 1 / ROWS
        if mine.sum() > 1_000:
            at_rest = np.median((table["ms"].to_numpy() - 0.5)[mine] / busy[mine])
            assert abs(np.log(at_rest / median)) < 7 * 1.26 * tail / np.sqrt(mine.sum()) + 1 / median


def test_load__is_three_times_as_high_in_the_afternoon() -> None:
    assert load(np.array([3.0, 15.0]) * 3600) == pytest.approx([1.0, 3.0])
    assert load(np.array([0.0])) == pytest.approx(load(np.array([float(DAY)])))
