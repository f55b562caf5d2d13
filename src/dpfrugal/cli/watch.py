"""``dpfrugal watch``: a private quantile of a stream that does not end, period after period, under one guarantee."""

import json
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.cli import options as o
from dpfrugal.errors import CheckpointError, ParameterError, ReplayError, TableError

if TYPE_CHECKING:
    from dpfrugal.dp_frugal import DPFrugal1U
    from dpfrugal.ledger import Ledger
    from dpfrugal.quantile import PrivateQuantile
    from dpfrugal.release import Release

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BLOCK_BYTES = 1 << 16
# How long Ctrl-C may go unnoticed: the interpreter sees it only between two waits.
LONGEST_WAIT = 0.2


@dataclass(frozen=True)
class Period:
    """Public times of release: after so many items, or after so many seconds."""

    items: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Period":
        """``100000`` items, or ``10s``, ``500ms``, ``5m``, ``1h``, ``1d``."""
        match = re.fullmatch(r"(\d[\d_,]*)|(\d+(?:\.\d+)?)(ms|s|m|h|d)", text.strip())
        if match and match[1] and (items := int(re.sub("[_,]", "", match[1]))):
            return cls(items=items)
        if match and match[2] and (seconds := float(match[2]) * SECONDS[match[3]]):
            return cls(seconds=seconds)
        raise ParameterError(
            f"--every must be a number of items, as 100000, or a time, as 10s, 5m or 1h; {text!r} is neither."
        )


def watch(
    quantiles: o.Quantiles,
    every: Annotated[
        str, typer.Option(help="A release per so many items (100000) or so much time (500ms, 10s, 5m, 1h, 1d).")
    ],
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    calibration: o.CalibrationOption = o.Calibration.ANALYTIC,
    max_items_per_person: o.MaxItems = 1,
    algorithm: o.AlgorithmOption = o.Algorithm.PRIVATE_QUANTILE,
    half_life: Annotated[
        float | None,
        typer.Option(help="Follow a moving quantile: forget half after so many items.", rich_help_panel=o.ESTIMATOR),
    ] = None,
    decimals: o.Decimals = None,
    start: o.Start = 0.0,
    nan_policy: o.NanPolicyOption = o.NanPolicyChoice.RAISE,
    ledger_file: o.LedgerOption = None,
    dataset: o.DatasetOption = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Raw private state: go on from it, and keep it up to date.", rich_help_panel=o.BUDGET),
    ] = None,
    accept_replay_risk: Annotated[
        bool,
        typer.Option(
            "--accept-replay-risk",
            help="Use --checkpoint without --ledger: nothing then notices a copy.",
            rich_help_panel=o.BUDGET,
        ),
    ] = False,
    as_json: o.Json = False,
) -> None:
    """Watch numbers on standard input, one per line, and print a private release per period.

    Prints the number of items so far, a tab, and the private value of each quantile.

    All releases together are covered by the one guarantee: each item influences one only.

    With --algorithm dp-frugal-1u each release leaves its noise in the walk: choose long periods.

    Ctrl-C ends it after the last full period. When the input ends, the rest is released too.

    With --checkpoint it survives being killed: started again, it goes on with the items that come then.

    Example: tail -f latencies.log | dpfrugal watch -q 0.99 --epsilon 1 --every 10s --decimals 1
    """
    from dpfrugal.cli.estimator import estimator_from, last_release, shown_values
    from dpfrugal.cli.restart import Restart
    from dpfrugal.cli.terminal import notes

    period = Period.parse(every)
    ledger = o.ledger_from(ledger_file, dataset)
    restart = Restart.of_options(checkpoint, ledger, accept_replay_risk=accept_replay_risk)

    def make(ledger: "Ledger | None", dataset: str | None) -> "PrivateQuantile | DPFrugal1U":
        return estimator_from(
            algorithm,
            quantiles,
            o.guarantee_from(epsilon, delta, rho, calibration),
            max_items_per_person=max_items_per_person,
            decimals=decimals,
            start=start,
            nan_policy=nan_policy,
            half_life=half_life,
            ledger=ledger,
            dataset=dataset,
        )

    def show(release: "Release") -> None:
        values = "\t".join(shown_values(release, algorithm, decimals))
        record = release.to_dict() | {"items": estimator.items}
        line = json.dumps(record, ensure_ascii=False) if as_json else f"{estimator.items}\t{values}"
        restart.save(estimator, released=True, printed=False)
        typer.echo(line)
        sys.stdout.flush()
        restart.save(estimator, released=True, printed=True)

    estimator = restart.estimator(make, dataset)
    if restart.unprinted:
        show(estimator.release())
    arrivals = Arrivals(sys.stdin.fileno(), omit_bad=nan_policy is o.NanPolicyChoice.OMIT)
    try:
        for numbers in arrivals.until_periods(period, estimator.items - restart.shown_items):
            if numbers:
                estimator.update_many(numbers)
                restart.keep(estimator)
            elif estimator.items:
                show(estimator.release())
        if estimator.items > restart.shown_items:
            show(last_release(estimator))
        if not estimator.items:
            raise TableError("standard input: there are no items to estimate a quantile of.")
    except ReplayError:
        raise CheckpointError(f"{checkpoint}: another process goes on from this checkpoint; this one stops.") from None
    except KeyboardInterrupt:
        restart.save(estimator)
        if unreleased := estimator.items - restart.shown_items:
            kept = "are kept in the checkpoint" if checkpoint else "were not released"
            notes.print(f"Stopped; {unreleased:,} items after the last full period {kept}.")


class Arrivals:
    """The numbers of a stream, cut at public times: by their count, or by the clock at their arrival.

    A thread reads and notes the time, so that a period can end while the stream is silent, and so that where it
    ends does not depend on how long earlier items took to process.
    """

    def __init__(self, descriptor: int, *, omit_bad: bool) -> None:
        from dpfrugal.lines import LineParser

        self._parser = LineParser(omit_bad=omit_bad)
        self._blocks: queue.Queue[tuple[float, bytes]] = queue.Queue(maxsize=1024)
        # Not through sys.stdin: its lock, held by a thread that waits, would abort the interpreter's exit.
        threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()

    def _read(self, descriptor: int) -> None:
        block = b"-"
        while block:
            try:
                block = os.read(descriptor, BLOCK_BYTES)
            except OSError:  # the stream was closed under us: it has ended
                block = b""
            self._blocks.put((time.monotonic(), block))

    def _next(self, deadline: float | None) -> tuple[float, bytes] | None:
        """The next block and its time of arrival, or None where the deadline passes before one arrives."""
        while True:
            try:
                return self._blocks.get(timeout=LONGEST_WAIT)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    return None

    def until_periods(self, period: Period, waiting: int = 0) -> Iterator[list[float]]:
        """Lists of numbers in order; an empty list ends a period. Of the first, some are ``waiting`` already."""
        left = max(0, (period.items or 0) - waiting)
        deadline = None if period.seconds is None else time.monotonic() + period.seconds
        ended = False
        while not ended:
            arrival = self._next(deadline)
            if deadline is not None and period.seconds is not None:
                while (time.monotonic() if arrival is None else arrival[0]) >= deadline:
                    yield []
                    deadline += period.seconds
            if arrival is None:
                continue
            block = arrival[1]
            ended = not block
            numbers = self._parser.finish() if ended else self._parser.feed(block)
            if period.items:
                while len(numbers) >= left:
                    yield from ([part] if (part := numbers[:left]) else [])
                    yield []
                    numbers, left = numbers[left:], period.items
                left -= len(numbers)
            if numbers:
                yield numbers
            if self._parser.refusal:
                raise self._parser.refusal
