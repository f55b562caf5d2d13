"""``dpfrugal watch``: each period is a window, whose quantiles are those of a table of its items."""

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import typer

from dpfrugal.cli.streams import window_output
from dpfrugal.errors import CheckpointError, ParameterError, ReplayError, TableError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.cli.options import EstimatorOptions, KeyOptions
    from dpfrugal.cli.streams.stdin_periods import Period
    from dpfrugal.cli.streams.watch_checkpoint import WindowCheckpoint
    from dpfrugal.cli.streams.watch_options import LineOptions, WindowOptions
    from dpfrugal.inputs.log_lines import LogRows

PRACTISED: Final = 256  # keys: so many are answered by compiled code


class Windows:
    """A run: what it takes in, what it releases, and how that is shown."""

    def __init__(
        self,
        period: "Period",
        checkpoint: "WindowCheckpoint",
        options: "EstimatorOptions",
        key_options: "KeyOptions",
        line_options: "LineOptions",
        window_options: "WindowOptions",
        *,
        as_json: bool,
        every: str,
    ) -> None:
        from dpfrugal.inputs.log_lines import LogLines

        if options.start is not None:
            raise ParameterError("--start is for --algorithm private-quantile and dp-frugal-1u: windows need none.")
        if period.items and window_options.neighbours == "add-remove":
            raise ParameterError(
                "--every must be a time with --neighbours add-remove: a period of so many items shows their number."
            )
        self._period, self._checkpoint, self._options = period, checkpoint, options
        form = line_options.format()
        self._keyed, self._with_persons, self._as_json = form.keyed, form.with_person, as_json
        self._parser = LogLines(form, omit_bad=options.nan_policy == "omit")
        self._live = window_output.LiveTable(every) if window_output.is_live(as_json=as_json) else None
        self._doubted: set[str] = set()
        if not form.keyed and (key_options.keys or key_options.discover_keys or key_options.max_keys_per_person):
            raise ParameterError("--keys, --discover-keys and --max-keys-per-person are for --by.")
        if not form.keyed and (window_options.other is not None or not window_options.counts):
            raise ParameterError("--other and --no-counts are for --by.")
        self._make = self._maker(key_options, window_options)
        self._estimator = checkpoint.estimator(self._make, options.dataset)
        self._shares_windows = window_options.windows is not None
        self._number_is_private = window_options.neighbours == "add-remove"

    def _maker(self, key_options: "KeyOptions", window_options: "WindowOptions") -> Any:
        options, shared = self._options, window_options.parameters(self._options)
        if not self._keyed:
            from dpfrugal.estimators.windows.window_quantile import WindowQuantile

            if window_options.hold is not None:
                shared["hold"] = window_options.hold
            guarantee = options.guarantee()

            def make(ledger: "Ledger | None", dataset: str | None, most_keys: int | None = None) -> Any:
                return WindowQuantile(options.quantiles, guarantee, ledger=ledger, dataset=dataset, **shared)

            return make
        from dpfrugal.estimators.windows.keyed_window_quantile import KeyedWindowQuantile

        guarantee, discovery = key_options.guarantees(options)
        declared = None
        if key_options.keys is not None:
            import pyarrow as pa

            from dpfrugal.inputs.key_files import read_keys

            declared = read_keys(key_options.keys, "key", pa.string())
        if window_options.hold is not None:
            shared["hold_in_all"] = window_options.hold
        shared |= {
            "max_keys_per_person": key_options.max_keys_per_person,
            "other": window_options.other,
            "counts": window_options.counts,
            "null_keys": "drop",  # a line that does not fit has no key; it is refused before where it is not omitted
        }

        def make_keyed(ledger: "Ledger | None", dataset: str | None, most_keys: int | None = None) -> Any:
            keys = None if declared is None else declared[:most_keys]
            return KeyedWindowQuantile(
                options.quantiles, guarantee, keys=keys, discover_keys=discovery, ledger=ledger, dataset=dataset,
                **shared,
            )  # fmt: skip

        return make_keyed

    def _practise(self) -> None:
        """Release a window of made-up lines, so that nothing is compiled while a period runs and lines wait."""
        import numpy as np

        from dpfrugal.inputs.log_lines import LogRows

        estimator = self._make(None, None, PRACTISED)
        names = list(estimator.keys.to_pylist() if self._keyed else ()) or ["a"]
        rows = LogRows(np.arange(len(names), dtype=np.float64), names, names if self._with_persons else None)
        self._give(estimator, rows)
        estimator.release()

    def _take(self, rows: "LogRows") -> None:
        self._give(self._estimator, rows)
        self._checkpoint.items += len(rows)

    def _give(self, estimator: Any, rows: "LogRows") -> None:
        if self._keyed:
            import pyarrow as pa

            keys = pa.array(rows.keys, pa.string()) if isinstance(rows.keys, list) else rows.keys
            estimator.update_many(keys, rows.values, rows.persons)
        else:
            estimator.update_many(rows.values, rows.persons)

    def _release(self, end: float) -> None:
        """Release the window, save that it was, and show it."""
        release = self._estimator.release()
        shown = self._period.shown(end)
        lines = self._lines(release, shown)
        self._checkpoint.items, self._checkpoint.end = 0, self._end_after(end)
        self._checkpoint.save(self._estimator, lines)
        self._explain(release)
        if self._live is not None:
            self._live.show(release, shown)
        else:
            with self._checkpoint.kept_if_unwritten(lines, self._estimator.account.dataset):
                typer.echo("\n".join(lines))
        self._checkpoint.save(self._estimator)

    def _lines(self, release: Any, end: str) -> list[str]:
        if self._keyed:
            if self._as_json:
                return window_output.json_of_keys(release, end)
            return window_output.lines_of_keys(release, end, len(self._options.quantiles))
        return (window_output.json_of_window if self._as_json else window_output.lines_of_window)(release, end)

    def _explain(self, release: Any) -> None:
        """Say once what covers persons, and why values are missing."""
        from dpfrugal.cli.terminal.stderr_notes import note, notes

        if self._with_persons and not self._doubted and self._live is None:
            claim = window_output.claim_of(release)
            self._doubted.add(claim)
            notes.print(claim + "; a person in several windows has it in each." * (not self._shares_windows))
        reasons = window_output.reasons_of_keys(release) if self._keyed else filter(None, release.reasons)
        new = dict.fromkeys(said for each in reasons if (said := each.partition(", there are")[0]) not in self._doubted)
        self._doubted.update(new)
        with nullcontext() if self._live is None or not new else self._live.aside():
            for said in new:
                note(f"{said}; where there are fewer in a window, no number is shown.")

    def _end_after(self, moment: float) -> float | None:
        return None if self._period.seconds is None else self._period.end_after(moment)

    def follow(self) -> None:
        """Read standard input until it ends or a signal comes; release at the end of each period, and the rest."""
        from dpfrugal.cli.streams.stdin_periods import End, StdinPeriods
        from dpfrugal.cli.terminal.stderr_notes import charged, explain_ledger, notes

        checkpoint = self._checkpoint
        with charged(self._estimator.account):
            try:
                if self._period.seconds is not None:
                    self._practise()
                if checkpoint.unprinted:
                    typer.echo("\n".join(checkpoint.unprinted))
                if checkpoint.end is not None and checkpoint.end <= time.time():
                    self._release(checkpoint.end)  # the period ended while nobody was there
                checkpoint.end = self._end_after(time.time())
                came = checkpoint.restored or self._number_is_private
                for event in StdinPeriods(sys.stdin.fileno(), self._parser).events(self._period, checkpoint.items):
                    if isinstance(event, End):
                        self._release(event.at)
                        continue
                    if event is not None:
                        self._take(event)
                        came = True
                    checkpoint.keep(self._estimator, arrived=event is not None)
                if not came:
                    raise TableError("standard input: there are no items to estimate a quantile of.")
                if checkpoint.items or self._number_is_private:
                    self._release(time.time())
            except ReplayError:
                raise CheckpointError(
                    f"{checkpoint.file}: another process continues from this checkpoint, so this one stops."
                ) from None
            except KeyboardInterrupt:
                if self._live is not None:
                    self._live.stop()
                checkpoint.save(self._estimator)
                if checkpoint.items or self._number_is_private:
                    kept = "are kept in the checkpoint" if checkpoint.file else "were not released"
                    number = checkpoint.counted(self._estimator, checkpoint.items)
                    notes.print(f"Stopped; {number} after the last full period {kept}.")
            finally:
                if self._live is not None:
                    self._live.stop()
            explain_ledger(checkpoint.ledger, self._estimator.account.dataset)
