"""``dpfrugal watch``: private quantiles of an endless stream, one release per period."""

from pathlib import Path
from typing import Annotated

import typer

from dpfrugal.cli import options as o
from dpfrugal.cli.streams.watch_options import LineOptions, WindowOptions
from dpfrugal.errors import ParameterError


@o.with_shared_options
def watch(
    options: o.EstimatorOptions,
    every: Annotated[
        str,
        typer.Option(
            metavar="PERIOD",
            help="Release after this much time (500ms, 10s, 5m, 1h or 1d, on the clock), or after this many items "
            "(100000).",
        ),
    ],
    half_life: Annotated[str | None, typer.Option(hidden=True)] = None,
    checkpoint_file: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            help="Save the state here, every second or after 20 times as long as saving takes, and continue from it "
            "after a restart. It is raw private data.",
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
    *,
    line_options: LineOptions,
    key_options: o.KeyOptions,
    window_options: WindowOptions,
) -> None:
    """Read numbers from standard input and print private quantiles of each period.

    Each period is a window: its items are answered as a table is, and then forgotten. An item is in one window, so its
    guarantee stays the one asked for, however many windows are released.

    A line is a number; with --by it is a key and a number; or it is JSON, logfmt, or what a regular expression finds.

    Periods of time end on the clock: those of a minute at 12:00:00, 12:01:00 and so on. At the end of the input the
    last, shorter period is released too. Ctrl-C, SIGTERM and SIGHUP drop it, or keep it in the checkpoint.

    A pipe gets a line per period, with tabs between: its end, the number of items and, for each quantile, the value
    and the ends of its interval. With keys it gets a line per key: the end, the key, its noisy number of items, and
    the values. A value is blank where a window has too few items for it. A terminal shows a table of the last window,
    with the values of earlier windows as bars.

    Example: tail -f latencies.log | dpfrugal watch -q 0.5,0.99 --epsilon 1 --every 1m

    Example: tail -f requests.jsonl | dpfrugal watch --json-lines --value duration_ms --by route --keys routes.txt
    -q 0.99 --epsilon 1 --every 1m

    Example: tail -f access.log | dpfrugal watch --pattern '"GET (?P<key>[^ ?]+).* (?P<value>[0-9.]+)$' --discover-keys
    -q 0.99 --epsilon 1 --delta 1e-8 --every 1h
    """
    from dpfrugal.cli.streams.stdin_periods import Period
    from dpfrugal.cli.streams.watch_checkpoint import CheckpointFile, WatchCheckpoint, WindowCheckpoint

    if half_life is not None:
        raise ParameterError("--half-life was retired: windows, the default, show each period by itself.")
    if options.algorithm == "table":
        raise ParameterError("--algorithm table is for rows that can be held or read again: see dpfrugal quantile.")
    period = Period.parse(every)
    ledger = options.ledger()
    CheckpointFile.check(checkpoint_file, ledger, accept_replay_risk=accept_replay_risk)
    if options.algorithm is None:
        from dpfrugal.cli.streams.watch_windows import Windows

        of_windows = WindowCheckpoint(checkpoint_file, ledger)
        with of_windows.locked():
            Windows(
                period, of_windows, options, key_options, line_options, window_options, as_json=as_json, every=every
            ).follow()
        return
    window_options.refuse(options.algorithm)
    if not line_options.plain:
        raise ParameterError(
            f"--algorithm {options.algorithm} takes lines of numbers, or with --by of a key and a number."
        )
    checkpoint = WatchCheckpoint(checkpoint_file, ledger)
    with checkpoint.locked():
        if line_options.by is None:
            from dpfrugal.cli.streams.watch_running_estimate import watch_running

            if key_options != o.KeyOptions():
                raise ParameterError("--keys, --discover-keys and --max-keys-per-person are for --by.")
            watch_running(period, checkpoint, options, as_json)
            return
        from dpfrugal.cli.streams.watch_walk_by_key import watch_walk_by

        guarantee, discovery = key_options.guarantees(options)
        watch_walk_by(
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
