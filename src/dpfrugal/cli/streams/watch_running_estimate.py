"""``dpfrugal watch --algorithm``: one running estimate of a steady stream, released once per period."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from dpfrugal.errors import CheckpointError, ReplayError, TableError
from dpfrugal.outside_text import in_json

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.cli.options import EstimatorOptions
    from dpfrugal.cli.streams.stdin_periods import Parser, Period
    from dpfrugal.cli.streams.watch_checkpoint import WatchCheckpoint
    from dpfrugal.estimators.releases import Release
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U


def watch_running(period: "Period", checkpoint: "WatchCheckpoint", options: "EstimatorOptions", as_json: bool) -> None:
    """Follow standard input until it ends, or until Ctrl-C."""
    from dpfrugal.cli.estimator_from_options import estimator_from, last_release, record, shown_values
    from dpfrugal.cli.terminal.stderr_notes import doubts, header, note, row
    from dpfrugal.inputs.line_formats import plain_lines
    from dpfrugal.inputs.log_lines import LogLines

    def make(ledger: "Ledger | None", dataset: str | None) -> "PrivateQuantile | DPFrugal1U":
        return estimator_from(options, ledger, dataset)

    titled = as_json or not sys.stdout.isatty()
    doubtful = False

    def lines(release: "Release") -> list[str]:
        nonlocal titled, doubtful
        said, doubted = doubts(release, options.first), doubtful
        for doubt in said if not doubted else ():
            note(doubt)
        doubtful = bool(said)
        if as_json:
            told = record(release) | {"items": estimator.items, "went_on_at": checkpoint.went_on_at}
            return [in_json(told)]
        values = shown_values(release, options)
        if not sys.stdout.isatty():
            return ["\t".join([str(estimator.items), *values])]
        above, titled = [] if titled else [header(release)], True
        return [*above, row(release, estimator.items, values)]

    estimator = checkpoint.estimator(make, options.dataset)
    parser = LogLines(plain_lines(keyed=False), omit_bad=options.nan_policy == "omit")
    take: Callable[[Any], None] = lambda rows: estimator.update_many(rows.values)  # noqa: E731
    follow(period, checkpoint, parser, estimator, take, lines, lambda: last_release(estimator))


def follow(
    period: "Period",
    checkpoint: "WatchCheckpoint",
    parser: "Parser",
    estimator: "Any",
    take: Callable[[Any], None],
    lines: Callable[[Any], list[str]],
    last: Callable[[], Any],
) -> None:
    """Read standard input, and print a release at the end of each period and the ``last`` one at the end of input."""
    from dpfrugal.cli.streams.stdin_periods import End, StdinPeriods
    from dpfrugal.cli.terminal.stderr_notes import charged, counted, explain_ledger, notes

    def show(release: Any) -> None:
        printed = lines(release)
        checkpoint.save(estimator, released=True, printed=False)
        with checkpoint.kept_if_unwritten(printed, estimator.account.dataset):
            typer.echo("\n".join(printed))
        checkpoint.save(estimator, released=True, printed=True)

    with charged(estimator.account):
        try:
            if checkpoint.unprinted:
                show(estimator.release())
            stdin = StdinPeriods(sys.stdin.fileno(), parser)
            for event in stdin.events(period, estimator.items - checkpoint.shown_items):
                if isinstance(event, End):
                    if estimator.items:
                        show(estimator.release())
                    continue
                if event is not None:
                    take(event)
                checkpoint.keep(estimator)
            if estimator.items > checkpoint.shown_items:
                show(last())
            if not estimator.items:
                raise TableError("standard input: there are no items to estimate a quantile of.")
        except ReplayError:
            raise CheckpointError(
                f"{checkpoint.file}: another process continues from this checkpoint, so this one stops."
            ) from None
        except KeyboardInterrupt:
            checkpoint.save(estimator)
            if unreleased := estimator.items - checkpoint.shown_items:
                kept = "are kept in the checkpoint" if checkpoint.file else "were not released"
                notes.print(f"Stopped; {counted(unreleased, 'item')} after the last full period {kept}.")
        explain_ledger(checkpoint.ledger, estimator.account.dataset)
