"""The server: takes items, cuts windows on the public clock, releases each once, and shows what was released.

Of each metric one window is open. At its end it is cut, the next one opens, and a thread releases the old one: the
store records it as spent, then noise is drawn, then the release is stored, then it is shown. Whatever fails on the way,
the window is dropped: nothing is tried twice with the same items.
"""

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import numpy as np

from dpfrugal.errors import DPFrugalError, ReplayError
from dpfrugal.estimators.windows.keyed_window_quantile import KeyedWindowQuantile
from dpfrugal.serve.budget import Budget, Standing, terms_of
from dpfrugal.serve.clock import WindowClock, day_of, end_of, utc
from dpfrugal.serve.exposition import Exposition, about, sizes
from dpfrugal.serve.figures import Figures
from dpfrugal.serve.ingest.items import Item, Reader, Rows
from dpfrugal.serve.open_window import OpenWindow, estimator_for
from dpfrugal.serve.repeated_items import SeenItems
from dpfrugal.serve.settings import Metric, Settings, Signal
from dpfrugal.serve.store import Store, Stored
from dpfrugal.serve.web.public_routes import Streams, event_of

LONGEST_WAIT: Final = 0.25  # seconds until a clock that was set is noticed
Clock = Callable[[], float]
Log = Callable[[str], None]
LEDGER, STORE, RELOAD, CLOCK = "ledger", "store", "settings", "clock"
RESERVE_EVERY: Final = 0.5
AHEAD: Final = 15.0  # seconds for which windows are paid for before they end
MADE_UP: Final = 64
# What stops releases; the others are remarks.
STOPPING: Final = (LEDGER, STORE)


class MetricServer:
    """One metric: its reader, its open window and its clock."""

    def __init__(self, metric: Metric, now: float) -> None:
        self.metric, self.reader = metric, Reader(metric)
        self.clock = WindowClock.starting(now, metric.window)
        self.seen = SeenItems() if metric.source.signal == "spans" else None
        self.open = OpenWindow(metric, self.seen)
        self.spare: list[KeyedWindowQuantile] = []  # estimators of windows that are over

    def cut(self, figures: Figures) -> OpenWindow:
        """Take the open window away, and open the next one."""
        ended, before = self.open, self.seen
        ended.close(figures)
        self.seen = None if before is None else SeenItems(before)
        self.open = OpenWindow(self.metric, self.seen, self.spare.pop() if self.spare else None)
        return ended


class Server:
    """All metrics of a settings file; ``run`` until it is stopped."""

    def __init__(self, settings: Settings, *, clock: Clock = time.time, log: Log = lambda line: None) -> None:
        self.settings = settings
        self.figures = Figures()
        self.exposition = Exposition()
        self.streams = Streams(settings.limits.event_streams)
        self.is_stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock, self._log = clock, log
        self.store = Store(settings.store)
        self._budget = Budget(self.store, settings.ledger, settings.reserve)
        self._states: dict[tuple[str, str], str] = {}  # by what, and whose
        self._releases = ThreadPoolExecutor(1, "release")
        self._ledger = ThreadPoolExecutor(1, "ledger")
        self._next_reserve: dict[str, float] = {}  # by metric, on the monotonic clock; infinite while one is made
        self._standings: dict[str, Standing] = {}
        self._metrics = [MetricServer(metric, clock()) for metric in settings.metrics]
        for metric in settings.metrics:
            self._show_last(metric)
            self._releases.submit(self._prepare, metric)
        for served in self._metrics:
            served.spare.append(estimator_for(served.metric))

    def _prepare(self, metric: Metric) -> None:
        """In the thread of releases: the first one must not be late."""
        self.exposition.prepare(metric)
        _warm_up(metric)

    def _show_last(self, metric: Metric) -> None:
        """What was released before the server started is still the last release."""
        for release in self.store.releases(metric=metric.name, limit=1, last=True).releases:
            if release.about.get("base_name") == metric.base_name:
                self.exposition.show(release)
        self._show_budget(metric, end_of(self._clock(), metric.window))

    def _show_budget(self, metric: Metric, ends: float) -> None:
        self._standings[metric.name] = standing = self._budget.standing(metric, ends)
        self.exposition.show_budget(metric, standing)

    def wanted(self, signal: Signal) -> set[str]:
        """The attributes that some metric of a signal looks at."""
        names = [served.reader.names for served in self._metrics if served.reader.signal == signal]
        return set().union(*names)

    def timers(self) -> set[str]:
        """The names of StatsD timers that are some metric's."""
        return {served.metric.source.what or "" for served in self._metrics if served.reader.signal == "statsd"}

    def take(self, signal: Signal, items: list[Item], refused: dict[str, int], name: str | None = None) -> None:
        """Take the items of a request or a datagram; ``name`` is that of a StatsD timer."""
        self.figures.refuse(signal, refused)
        self.cut_windows()  # what comes after the end of a window is none of it, however busy the loop was
        now, far = self._clock(), self.settings.limits.far
        for served in self._metrics:
            if served.reader.signal != signal or (name is not None and served.metric.source.what != name):
                continue
            rows = served.reader.rows(items, now, far)
            if rows is None:
                continue
            whose = served.metric.base_name
            self.figures.items[whose] += len(rows.keys)
            self.figures.refuse(whose, served.open.take(rows, self.figures))
            self.figures.waiting[whose] = served.open.waiting

    async def run(self) -> None:
        """Cut windows on the clock until the server is stopped."""
        self._loop = asyncio.get_running_loop()
        while not self.is_stopping:
            self.cut_windows()
            ends = min(served.clock.end for served in self._metrics)
            await asyncio.sleep(max(0.0, min(LONGEST_WAIT, ends - self._clock())))

    def cut_windows(self) -> None:
        """Cut every window that has ended, and hand it to the thread of releases."""
        now = self._clock()
        for served in list(self._metrics):
            self._look_at_clock(served, now)

    def wait_for_releases(self) -> None:
        """Return when all windows that were cut are released, or will not be."""
        self._releases.submit(int).result()

    def wait_for_ledger(self) -> None:
        """Return when the ledger was charged for the windows that are open, or refused it."""
        for served in list(self._metrics):
            self._ledger.submit(self._reserve, served.metric, served.clock.end).result()

    def _look_at_clock(self, served: MetricServer, now: float) -> None:
        metric, clock = served.metric, served.clock
        if clock.was_set_back(now):
            self._state(CLOCK, metric, f"the clock was set back; a window of {metric.base_name} was dropped")
            self.figures.windows[metric.base_name, "dropped"] += 1
            served.cut(self.figures)
            clock.set_back(now)
        elif clock.is_over(now):
            began, ends = clock.began, clock.end
            window = served.cut(self.figures)
            clock.next(now)
            self.figures.releasing += 1
            self._releases.submit(self._release, served, window, began, ends, now)
        if self.settings.ledger is not None and time.monotonic() >= self._next_reserve.get(metric.name, 0.0):
            self._next_reserve[metric.name] = math.inf
            self._ledger.submit(self._reserve, metric, clock.end)

    def _reserve(self, metric: Metric, ends: float) -> None:
        """In a thread of its own: the ledger may be locked by another process for long."""
        later = max(ends, end_of(self._clock() + AHEAD, metric.window))
        try:
            if day_of(later) == day_of(ends):
                self._budget.reserve(metric, ends, round((later - ends) / metric.window) + 1)
            else:
                self._budget.reserve(metric, ends)
                self._budget.reserve(metric, later)
            self._state(LEDGER, metric, None)
        except DPFrugalError as error:
            self._state(LEDGER, metric, f"the ledger cannot be charged for {metric.base_name}: {error}")
        except sqlite3.Error as error:
            self._state(STORE, metric, _store_problem(error))
        finally:
            self._next_reserve[metric.name] = time.monotonic() + RESERVE_EVERY

    def _release(self, served: MetricServer, window: OpenWindow, began: float, ends: float, cut: float) -> None:
        """In the thread of releases, one window after the other.

        The time of release that is stored and shown is that of the cut: how long a release takes may depend on items.
        """
        metric = window.metric
        outcome = "dropped"
        try:
            if not self._budget.may_release(metric, ends):
                outcome = self._uncovered(metric, ends)
                return
            self.store.spend(metric.name, began, ends, day_of(ends), terms_of(metric))
            outcome = "lost"  # spent from here on
            found = window.release()
            numbers = found.numbers()
            release = self.store.publish(metric.name, ends, cut, about(metric), found.keys, numbers)
            outcome = "released"
            for what in (STORE, CLOCK):
                self._state(what, metric, None)
            self._show(metric, release, found.items)
            self.figures.release_seconds[metric.base_name] = max(0.0, self._clock() - ends)
        except ReplayError:
            self._state(CLOCK, metric, f"a window of {metric.base_name} was released before; its items were dropped")
        except (sqlite3.Error, OSError) as error:
            self._state(STORE, metric, _store_problem(error))
        except DPFrugalError as error:
            self._state(STORE, metric, f"a window of {metric.base_name} could not be released: {error}")
        except Exception as error:  # its text may have items in it
            self._state(STORE, metric, f"a window of {metric.base_name} could not be released ({type(error).__name__})")
        finally:
            self.figures.windows[metric.base_name, outcome] += 1
            self.figures.releasing -= 1
            with suppress(Exception):  # without one the next cut makes it
                served.spare.append(window.emptied())
            with suppress(sqlite3.Error):
                self._show_budget(metric, ends)

    def _uncovered(self, metric: Metric, ends: float) -> str:
        standing = self._budget.standing(metric, ends)
        if standing.spent >= standing.most:
            self._state(CLOCK, metric, f"the total of {metric.base_name} for {standing.day} is spent")
        elif (LEDGER, metric.name) not in self._states:
            self._state(LEDGER, metric, f"the ledger has not been charged for {metric.base_name} yet")
        return "not covered"

    def _show(self, metric: Metric, release: Stored, items: int | None) -> None:
        self.exposition.show(release, items)
        if self._loop is not None and self.streams.has_clients:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.streams.send, event_of(release))

    def _state(self, what: str, metric: Metric | None, said: str | None) -> None:
        """Note or clear a state; a new one is logged. All of it is public."""
        key = (what, "" if metric is None else metric.name)
        if said is None:
            if self._states.pop(key, None) is not None:
                self._log(f"{what}: all is well again")
        elif self._states.get(key) != said:
            self._states[key] = said
            self._log(said)

    def readiness(self) -> tuple[bool, list[str]]:
        """Whether items are taken and windows released, and what there is to say about it."""
        states = dict(self._states)
        said = sorted(set(states.values())) + (["the server is stopping"] if self.is_stopping else [])
        return not self.is_stopping and not any(what in STOPPING for what, _ in states), said

    def overview(self) -> dict[str, Any]:
        """The metrics and their budgets: all public."""
        return {"now": utc(self._clock()), "metrics": [self._about(served) for served in self._metrics]}

    def _about(self, served: MetricServer) -> dict[str, Any]:
        metric = served.metric
        standing, day = self._standings.get(metric.name), day_of(served.clock.end)
        if standing is None or standing.day != day:
            standing = Standing(day, 0, metric.windows_per_day)
        public = about(metric)
        return {
            "metric": metric.base_name,
            "name": metric.name,
            "about": metric.about,
            "unit": metric.base_unit,
            "label": public["label"] or None,
            "keys": None if metric.keys is None or metric.keys.declared is None else len(metric.keys.declared),
            "quantiles": public["quantiles"],
            "window_seconds": metric.window,
            "guarantee": public["promise"],
            "neighbours": metric.neighbours,
            "next_release": utc(served.clock.end),
            "budget": {
                "day": standing.day,
                "windows_spent": standing.spent,
                "windows": standing.most,
                "measures": [
                    {"measure": name, "per_window": each, "per_day": total} for name, each, total in sizes(metric)
                ],
            },
        }

    def reload(self, settings: Settings) -> None:
        """Go on with other settings; metrics that are the same keep their open windows."""
        kept = {served.metric: served for served in self._metrics}
        now = self._clock()
        self._metrics = [kept.get(metric) or MetricServer(metric, now) for metric in settings.metrics]
        self.settings = settings
        self._budget = Budget(self.store, settings.ledger, settings.reserve)
        self.exposition.forget({metric.name for metric in settings.metrics})
        for metric in settings.metrics:
            if metric not in kept:
                with suppress(sqlite3.Error):  # the next release says what is wrong with the store
                    self._show_last(metric)
                self._releases.submit(self._prepare, metric)
        self._state(RELOAD, None, None)

    def refuse_reload(self, problem: str) -> None:
        """The settings stay; the state says that a file was refused."""
        self._log(problem)
        self._state(RELOAD, None, "the settings file was refused at the last reload; those before are in force")

    def stop(self) -> None:
        """Take nothing more, and release nothing early; what is being released is."""
        self.is_stopping = True
        self.streams.send(None)

    def close(self) -> None:
        """After the last release."""
        self._releases.shutdown(wait=True)
        self._ledger.shutdown(wait=False, cancel_futures=True)
        self.store.close()


def _warm_up(metric: Metric) -> None:
    """Load what a release needs, on a window that nobody sees."""
    window, figures = OpenWindow(metric, None), Figures()
    declared = () if metric.keys is None else metric.keys.declared
    key = None if metric.keys is None else declared[0] if declared else "key"
    persons = None if metric.person is None else ["somebody"] * MADE_UP
    window.take(Rows([key] * MADE_UP, np.arange(float(MADE_UP)), persons, None), figures)
    window.close(figures)
    window.release()


def _store_problem(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = {
        sqlite3.SQLITE_FULL: "the disk is full",
        sqlite3.SQLITE_IOERR: "the disk fails, or is full",
        sqlite3.SQLITE_READONLY: "it cannot be written",
        sqlite3.SQLITE_BUSY: "another process keeps it locked",
        sqlite3.SQLITE_CORRUPT: "it is damaged",
    }.get(code, "it cannot be written")
    return f"the store of releases cannot be used: {said}; windows are not released"
