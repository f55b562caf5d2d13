"""``dpfrugal watch --by --algorithm dp-frugal-1u``: a walk for every key, and a release of all of them per period."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfrugal.outside_text import in_json, in_line

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.cli.streams.stdin_periods import Period
    from dpfrugal.cli.streams.watch_checkpoint import WatchCheckpoint
    from dpfrugal.privacy.guarantees import Guarantee


def watch_walk_by(
    period: "Period",
    checkpoint: "WatchCheckpoint",
    quantiles: list[float],
    guarantee: "Guarantee",
    *,
    dataset: str | None,
    keys: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Follow standard input until it ends, or until Ctrl-C."""
    import pyarrow as pa

    from dpfrugal.cli.streams.watch_running_estimate import follow
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.inputs.key_files import read_keys
    from dpfrugal.inputs.line_formats import plain_lines
    from dpfrugal.inputs.log_lines import LogLines, LogRows

    declared = None if keys is None else read_keys(keys, "key", pa.string())

    def make(ledger: "Ledger | None", dataset: str | None) -> KeyedDPFrugal1U:
        # A line that is no key and number has neither; it is refused by the parser where it is not omitted.
        return KeyedDPFrugal1U(
            quantiles, guarantee, keys=declared, null_keys="drop", ledger=ledger, dataset=dataset, **options
        )

    def take(rows: LogRows) -> None:
        estimator.update_many(pa.array(rows.keys, pa.string()), rows.values)

    def lines(release: Any) -> list[str]:
        return _lines(release, estimator.items, len(quantiles), options["decimals"], as_json=as_json)

    estimator = checkpoint.estimator(make, dataset)
    parser = LogLines(plain_lines(keyed=True), omit_bad=options["nan_policy"] == "omit")
    follow(period, checkpoint, parser, estimator, take, lines, estimator.release)


def _lines(release: Any, items: int, quantiles: int, decimals: int, *, as_json: bool) -> list[str]:
    rows = release.to_pylist()
    if as_json:
        return [in_json({"items": items} | row) for row in rows]
    values = [f"{row['value']:.{decimals}f}" for row in rows]
    return [
        "\t".join([str(items), in_line(rows[first]["key"]), *values[first : first + quantiles]])
        for first in range(0, len(rows), quantiles)
    ]
