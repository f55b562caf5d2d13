"""After a crash at any point no window is released twice, and none with another one's items."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table import private_quantiles
from dpfrugal.estimators.table.base.kinds import FLOATS
from dpfrugal.estimators.windows import window_quantile

ONE = dpf.PureDP(epsilon=1.0)


class Crash(BaseException):
    """The process ends here."""


class Released:
    """What every release was drawn from: a test, and only a test, may look."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.windows: list[list[float]] = []
        real, self.crashes = private_quantiles.draw_release, False

        def draw(rows: Any, *rest: Any) -> Any:
            codes = rows._ranked(0, rows.rows - 1)
            self.windows.append(FLOATS.array(codes, np.zeros(codes.size, bool)).to_pylist())
            if self.crashes:
                raise Crash
            return real(rows, *rest)

        patch.setattr(window_quantile, "draw_release", draw)


@pytest.mark.parametrize("seed", range(12))
def test_windows__after_crashes_hold_items_that_were_never_released(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items, saves, releases and crashes at random; each item is a number that says in which window it came."""
    rng, released = np.random.default_rng(seed), Released(monkeypatch)
    ledger, path = dpf.Ledger(tmp_path / "b.db", total=ONE), tmp_path / "state"
    windows = dpf.WindowQuantile(0.5, ONE, intervals=False, ledger=ledger, dataset="clicks")
    windows.save(path)
    came, opened = 0, 0
    history: dict[float, int] = {}  # in which window an item came, by the number of releases before it
    for _ in range(60):
        action = rng.choice(["items", "items", "save", "release", "crash", "crash in release"])
        if action == "items":
            items = np.arange(came, came + 5, dtype=np.float64)
            history |= dict.fromkeys(items.tolist(), opened)
            came += 5
            windows.update_many(items)
        elif action == "save":
            windows.save(path)
        elif action == "release":
            windows.release()
            opened += 1
        if action.startswith("crash"):
            if action == "crash in release":
                released.crashes = True
                with pytest.raises(Crash):
                    windows.release()
                released.crashes, opened = False, opened + 1
            windows = dpf.WindowQuantile.load(path, ledger=ledger, forget_if_stale=True)
    windows.release()
    times = Counter(item for window in released.windows for item in window)
    assert max(times.values(), default=1) == 1, "an item was released twice"
    assert len(times) > 20
    for window in released.windows:
        assert len({history[item] for item in window}) <= 1, "a window was released with another one's items"


def test_windows__with_checkpoints_that_nobody_checks_are_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, where a restored checkpoint is believed to be fresh: an item is released twice."""
    released = Released(monkeypatch)
    windows = dpf.WindowQuantile(0.5, ONE)
    windows.update_many([1.0])
    windows.save(tmp_path / "state")
    windows.release()
    dpf.WindowQuantile.load(tmp_path / "state", accept_replay_risk=True).release()
    assert released.windows == [[1.0], [1.0]]
