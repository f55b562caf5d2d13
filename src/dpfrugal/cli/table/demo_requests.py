"""The file of ``dpfrugal demo``: a day of generated requests in order of time, with a rhythm, at several endpoints."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Endpoint: its share of the requests, its median latency in ms at rest, and how long its tail is.
ENDPOINTS: Final = {
    "/home": (0.40, 18.0, 0.4),
    "/search": (0.25, 90.0, 0.6),
    "/login": (0.15, 35.0, 0.5),
    "/checkout": (0.12, 140.0, 0.5),
    "/report": (0.0799, 900.0, 0.8),
    "/admin": (0.0001, 60.0, 0.5),
}
DAY: Final = 86_400


def requests(rows: int, seed: int) -> Any:
    """An Arrow table of time, endpoint and ms (whole milliseconds), in order of time.

    There are most requests in the afternoon, and by then everything takes up to three times as long as at night.
    """
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    grid = np.linspace(0, DAY, 1441)
    arrived = np.cumsum(load(grid))
    seconds = np.sort(np.interp(rng.random(rows) * arrived[-1], arrived, grid))
    which = rng.choice(len(ENDPOINTS), rows, p=[share for share, _, _ in ENDPOINTS.values()])
    medians, tails = (np.array([each[at] for each in ENDPOINTS.values()])[which] for at in (1, 2))
    latencies = medians * load(seconds) * rng.lognormal(0.0, tails)
    times = np.datetime64("2026-03-02T00:00:00", "ms") + (1000 * seconds).astype("timedelta64[ms]")
    return pa.table(
        {
            "time": pa.array(times),
            "endpoint": pa.array(list(ENDPOINTS)).take(pa.array(which)),
            "ms": pa.array(np.ceil(latencies).astype(np.int64)),
        }
    )


def load(seconds: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """How busy the day is at a time: 1 at three at night, 3 at three in the afternoon."""
    import numpy as np

    return 2.0 - np.cos(2 * np.pi * (seconds - 3 * 3600) / DAY)
