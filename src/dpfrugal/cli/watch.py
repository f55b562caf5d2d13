"""``dpfrugal watch``: a private quantile of a stream that does not end, period after period, under one guarantee."""

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
    from dpfrugal.cli.watch_checkpoint import Restart
    from dpfrugal.estimators.releases import Release
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
    from dpfrugal.inputs.lines import LineParser


def watch(
    quantiles: o.Quantiles,
    every: Annotated[
        str, typer.Option(help="A release per so many items (100000) or so much time (500ms, 10s, 5m, 1h, 1d).")
    ],
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    calibration: o.CalibrationOption = None,
    max_items_per_person: o.MaxItems = 1,
    algorithm: o.AlgorithmOption = None,
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
    by: Annotated[
        bool,
        typer.Option("--by", help="Lines are a key and a number: a quantile for each key.", rich_help_panel=o.KEYS),
    ] = False,
    keys: o.Keys = None,
    discover_keys: o.DiscoverKeys = False,
    max_keys_per_person: o.MaxKeys = None,
) -> None:
    """Watch numbers on standard input, one per line, and print a private release per period.

    Prints the number of items so far, a tab, and the private value of each quantile; on a terminal also intervals.

    All releases together are covered by the one guarantee: each item influences one only.

    With --algorithm dp-frugal-1u each release leaves its noise in the walk: choose long periods.

    With --by, lines are a key, a blank and a number; prints items, key and values, tabs between, for each key.

    Ctrl-C ends it after the last full period. When the input ends, the rest is released too.

    With --checkpoint it survives being killed: started again, it goes on with the items that come then.

    Example: tail -f latencies.log | dpfrugal watch -q 0.99 --epsilon 1 --every 10s --decimals 1

    Example: tail -f access.log | dpfrugal watch --by --keys routes.txt -q 0.99 --epsilon 1 --every 1m
    """
    from dpfrugal.cli.algorithm import estimator_from, last_release, shown_values
    from dpfrugal.cli.notes import doubts, header, notes, row
    from dpfrugal.cli.stdin_periods import Period
    from dpfrugal.cli.watch_checkpoint import Restart
    from dpfrugal.inputs.lines import LineParser

    period = Period.parse(every)
    ledger = o.ledger_from(ledger_file, dataset)
    restart = Restart.of_options(checkpoint, ledger, accept_replay_risk=accept_replay_risk)
    if by:
        from dpfrugal.cli.watch_by_key import watch_by

        if half_life is not None:
            raise ParameterError("--half-life is for one quantile of all items; a walk forgets by itself.")
        guarantee, discovery = o.guarantees_by_key(epsilon, delta, rho, calibration, keys, discover_keys, algorithm)
        watch_by(
            period,
            restart,
            quantiles,
            guarantee,
            dataset=dataset,
            keys=keys,
            as_json=as_json,
            discover_keys=discovery,
            max_items_per_person=max_items_per_person,
            max_keys_per_person=max_keys_per_person,
            decimals=decimals or 0,
            start=start,
            nan_policy=nan_policy.value,
        )
        return
    if keys or discover_keys or max_keys_per_person:
        raise ParameterError("--keys, --discover-keys and --max-keys-per-person are for --by.")

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

    titled = as_json or not sys.stdout.isatty()
    doubtful = False

    def lines(release: "Release") -> list[str]:
        nonlocal titled, doubtful
        said, doubted = doubts(release, start), doubtful
        for doubt in said if not doubted else ():
            notes.print(f"[yellow]note:[/] {doubt}")
        doubtful = bool(said)
        if as_json:
            record = release.to_dict() | {"items": estimator.items, "went_on_at": restart.went_on_at}
            return [json.dumps(record, ensure_ascii=False)]
        values = shown_values(release, algorithm, decimals)
        if not sys.stdout.isatty():
            return ["\t".join([str(estimator.items), *values])]
        above, titled = [] if titled else [header(release)], True
        return [*above, row(release, estimator.items, values)]

    estimator = restart.estimator(make, dataset)
    parser = LineParser(omit_bad=nan_policy is o.NanPolicyChoice.OMIT)
    follow(period, restart, parser, estimator, estimator.update_many, lines, lambda: last_release(estimator))


def follow(
    period: "Period",
    restart: "Restart",
    parser: "LineParser",
    estimator: "Any",
    take: Callable[[list[Any]], None],
    lines: Callable[[Any], list[str]],
    last: Callable[[], Any],
) -> None:
    """Take what arrives on standard input, and print a release at the end of each period, and the ``last`` one."""
    from dpfrugal.cli.notes import charged, counted, explain_ledger, notes
    from dpfrugal.cli.stdin_periods import Arrivals

    def show(release: Any) -> None:
        printed = lines(release)
        restart.save(estimator, released=True, printed=False)
        typer.echo("\n".join(printed))
        sys.stdout.flush()
        restart.save(estimator, released=True, printed=True)

    with charged(estimator._account):
        try:
            if restart.unprinted:
                show(estimator.release())
            arrivals = Arrivals(sys.stdin.fileno(), parser)
            for rows in arrivals.until_periods(period, estimator.items - restart.shown_items):
                if rows:
                    take(rows)
                    restart.keep(estimator)
                elif estimator.items:
                    show(estimator.release())
            if estimator.items > restart.shown_items:
                show(last())
            if not estimator.items:
                raise TableError("standard input: there are no items to estimate a quantile of.")
        except ReplayError:
            raise CheckpointError(
                f"{restart.file}: another process goes on from this checkpoint; this one stops."
            ) from None
        except KeyboardInterrupt:
            restart.save(estimator)
            if unreleased := estimator.items - restart.shown_items:
                kept = "are kept in the checkpoint" if restart.file else "were not released"
                notes.print(f"Stopped; {counted(unreleased, 'item')} after the last full period {kept}.")
        explain_ledger(restart.ledger, estimator._account.dataset)
