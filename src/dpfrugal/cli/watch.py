"""``dpfrugal watch``: private quantiles of an endless stream, one release per period, all under one guarantee."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfrugal.cli import options as o
from dpfrugal.errors import CheckpointError, ParameterError, ReplayError, TableError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.cli.stdin_periods import Period
    from dpfrugal.cli.watch_checkpoint import WatchCheckpoint
    from dpfrugal.estimators.releases import Release
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
    from dpfrugal.inputs.lines import LineParser


@o.with_shared_options
def watch(
    options: o.EstimatorOptions,
    every: Annotated[
        str,
        typer.Option(help="Release after this many items (100000) or this much time (500ms, 10s, 5m, 1h or 1d)."),
    ],
    half_life: Annotated[
        float | None,
        typer.Option(
            help="Follow a quantile that drifts: after this many items, an item's weight has halved.",
            rich_help_panel=o.ESTIMATOR,
        ),
    ] = None,
    checkpoint_file: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Save the state here and continue from it after a restart. It is raw private data.",
            rich_help_panel=o.BUDGET,
        ),
    ] = None,
    accept_replay_risk: Annotated[
        bool,
        typer.Option(
            "--accept-replay-risk",
            help="Allow --checkpoint without --ledger: a copied checkpoint could then release its items twice.",
            rich_help_panel=o.BUDGET,
        ),
    ] = False,
    as_json: o.Json = False,
    by: Annotated[
        bool,
        typer.Option("--by", help="Each line is a key and a number: a quantile for each key.", rich_help_panel=o.KEYS),
    ] = False,
    *,
    key_options: o.KeyOptions,
) -> None:
    """Read numbers from standard input, one per line, and print private quantiles once per period.

    Prints the number of items so far, a tab, and the private value of each quantile; on a terminal also intervals.

    One guarantee covers all releases together: each item influences only one of them.

    With --algorithm dp-frugal-1u the noise of a release stays in the estimate; choose long periods.

    With --by a line is a key, a blank and a number; prints the items, the key and the values, for each key.

    At the end of the input the last, shorter period is released too. Ctrl-C drops it.

    With --checkpoint a run that was killed can be started again; it continues with the items that arrive then.

    Example: tail -f latencies.log | dpfrugal watch -q 0.99 --epsilon 1 --every 10s --decimals 1

    Example: tail -f access.log | dpfrugal watch --by --keys routes.txt -q 0.99 --epsilon 1 --every 1m
    """
    from dpfrugal.cli.estimator_from_options import estimator_from, last_release, record, shown_values
    from dpfrugal.cli.stderr_notes import doubts, header, note, row
    from dpfrugal.cli.stdin_periods import Period
    from dpfrugal.cli.watch_checkpoint import WatchCheckpoint
    from dpfrugal.inputs.lines import LineParser

    if options.algorithm == "table":
        raise ParameterError("--algorithm table is for rows that can be held or read again: see dpfrugal quantile.")
    period = Period.parse(every)
    checkpoint = WatchCheckpoint.of_options(checkpoint_file, options.ledger(), accept_replay_risk=accept_replay_risk)
    if by:
        from dpfrugal.cli.watch_by_key import watch_by

        if half_life is not None:
            raise ParameterError(
                "--half-life is for one quantile of all items; with --by, dp-frugal-1u follows drift without it."
            )
        guarantee, discovery = key_options.guarantees(options)
        watch_by(
            period,
            checkpoint,
            options.quantiles,
            guarantee,
            dataset=options.dataset,
            keys=key_options.keys,
            as_json=as_json,
            discover_keys=discovery,
            **key_options.parameters(options),
        )
        return
    if key_options != o.KeyOptions():
        raise ParameterError("--keys, --discover-keys and --max-keys-per-person are for --by.")

    def make(ledger: "Ledger | None", dataset: str | None) -> "PrivateQuantile | DPFrugal1U":
        return estimator_from(options, ledger, dataset, half_life)

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
            return [json.dumps(told, ensure_ascii=False)]
        values = shown_values(release, options)
        if not sys.stdout.isatty():
            return ["\t".join([str(estimator.items), *values])]
        above, titled = [] if titled else [header(release)], True
        return [*above, row(release, estimator.items, values)]

    estimator = checkpoint.estimator(make, options.dataset)
    parser = LineParser(omit_bad=options.nan_policy == "omit")
    follow(period, checkpoint, parser, estimator, estimator.update_many, lines, lambda: last_release(estimator))


def follow(
    period: "Period",
    checkpoint: "WatchCheckpoint",
    parser: "LineParser",
    estimator: "Any",
    take: Callable[[list[Any]], None],
    lines: Callable[[Any], list[str]],
    last: Callable[[], Any],
) -> None:
    """Read standard input, and print a release at the end of each period and the ``last`` one at the end of input."""
    from dpfrugal.cli.stderr_notes import charged, counted, explain_ledger, notes
    from dpfrugal.cli.stdin_periods import StdinPeriods

    def show(release: Any) -> None:
        printed = lines(release)
        checkpoint.save(estimator, released=True, printed=False)
        typer.echo("\n".join(printed))
        sys.stdout.flush()
        checkpoint.save(estimator, released=True, printed=True)

    with charged(estimator.account):
        try:
            if checkpoint.unprinted:
                show(estimator.release())
            stdin = StdinPeriods(sys.stdin.fileno(), parser)
            for rows in stdin.until_periods(period, estimator.items - checkpoint.shown_items):
                if rows:
                    take(rows)
                    checkpoint.keep(estimator)
                elif estimator.items:
                    show(estimator.release())
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
