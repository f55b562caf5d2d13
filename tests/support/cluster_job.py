"""A streaming job that somebody will kill: it writes what it releases to a folder, one file per batch and process.

Run as a script: input folder, checkpoint, output folder, "keyed" (windows of a minute) or "global" (micro-batches), and
when it kills itself: after so many calls (0: never) of its "sink", or batches on "record", and so many seconds. Draws
are seeded window by window, so that an undisturbed run can be compared.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark.stream_answers import Answers, ColumnAnswers, KeyedAnswers
from dpfrugal.engines.spark.stream_checkpoint import Records
from tests.support.seeded_draws import seeded_draws

WAY: Final = 0.3  # seconds from the sink's last line to Spark's commit, at least, if a kill is to come


def seed_draws() -> None:
    """Each window is drawn from by the same seed, whatever was drawn before."""
    for kind in (ColumnAnswers, KeyedAnswers):

        def reading(answers: Answers, data: Any, read: Any = kind.read) -> Any:
            draw = read(answers, data)

            def drawn() -> Any:
                with seeded_draws():
                    return draw()

            return drawn

        setattr(kind, "read", reading)  # noqa: B010 - mypy forbids the plain form


def main(source: str, checkpoint: str, output: str, kind: str, event: str, times: int, patience: float) -> None:
    seed_draws()
    spark = dps.local_session(
        "local[2]",
        spark_sql_shuffle_partitions="2",
        spark_sql_streaming_minBatchesToRetain="1000",  # who compares asks what was in the first of them
    )
    events = {"sink": threading.Semaphore(0), "record": threading.Semaphore(0)}
    write = Records.write

    def writing(*arguments: Any) -> None:
        write(*arguments)
        events["record"].release()

    setattr(Records, "write", writing)  # noqa: B010

    def end() -> None:
        for _ in range(times):
            events[event].acquire()
        time.sleep(patience)
        os.kill(os.getpid(), signal.SIGKILL)

    if times:
        threading.Thread(target=end, daemon=True).start()

    def sink(release: Any, batch_id: int) -> None:
        shown = release.to_dict() if kind == "global" else [row.asDict() for row in release.collect()]
        (Path(output) / f"{batch_id}-{os.getpid()}").write_text(repr(shown), encoding="utf-8")
        events["sink"].release()
        if times:
            time.sleep(WAY)

    stream = spark.readStream.schema("x double, key bigint, at timestamp").option("maxFilesPerTrigger", 1)
    common: dict[str, Any] = {"checkpoint": checkpoint, "sink": sink, "trigger": {"availableNow": True}}
    common |= {"ledger": dpf.Ledger(Path(output).parent / "budget.db", total=dpf.PureDP(epsilon=1.0)), "dataset": "in"}
    guarantee = dpf.PureDP(epsilon=1.0)
    if kind == "global":
        query = dps.stream_private_quantiles(stream.parquet(source), "x", [0.5, 0.9], guarantee, **common)
    else:
        common |= {"keys": [0, 1, 2], "time": "at", "window": "1 minute", "watermark": "0 seconds"}
        query = dps.stream_quantiles_by(stream.parquet(source), "x", 0.5, guarantee, by="key", **common)
    query.awaitTermination()


if __name__ == "__main__":
    source, checkpoint, output, kind, event, times, patience = sys.argv[1:]
    main(source, checkpoint, output, kind, event, int(times), float(patience))
