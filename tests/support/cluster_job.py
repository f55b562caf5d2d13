"""A streaming job that somebody will kill: it writes what it releases to a folder, one file per batch and process.

Run as a script: input folder, checkpoint, output folder, "keyed" or "global", and when it kills itself: after so many
calls (0: never) of its "sink", or batches on "record", and so many seconds. Noise is replaced by none, so that an
undisturbed run can be compared.
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
from dpfrugal.engines import two_scans
from dpfrugal.engines.spark.stream_checkpoint import Records
from dpfrugal.estimators.segments import planner
from dpfrugal.privacy import noise

WAY: Final = 0.3  # seconds from the sink's last line to Spark's commit, at least, if a kill is to come
RELEASE_EVERY: Final = 3  # batches, of the keyed one


def main(source: str, checkpoint: str, output: str, kind: str, event: str, times: int, patience: float) -> None:
    setattr(noise, "add_noise_to_many", lambda values, *_: values)  # noqa: B010 - mypy forbids the plain form
    setattr(planner, "add_noise", lambda values, *_: [int(value) for value in values])  # noqa: B010
    setattr(two_scans, "SAMPLE", 0)  # noqa: B010 - where rows lie decides their order there, and files are cut otherwise
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
        shown = (release, release.intervals()) if kind == "global" else release.collect()
        (Path(output) / f"{batch_id}-{os.getpid()}").write_text(repr(shown), encoding="utf-8")
        events["sink"].release()
        if times:
            time.sleep(WAY)

    stream = spark.readStream.schema("x double, key bigint").option("maxFilesPerTrigger", 1).parquet(source)
    common: dict[str, Any] = {"checkpoint": checkpoint, "sink": sink, "trigger": {"availableNow": True}}
    guarantee = dpf.PureDP(epsilon=1.0)
    if kind == "global":
        query = dps.stream_private_quantiles(stream, "x", [0.5, 0.9], guarantee, **common)
    else:
        common |= {"keys": [0, 1, 2], "coin_seed": 3, "start": 400.0, "release_every": RELEASE_EVERY, "order_by": "x"}
        query = dps.stream_quantiles_by(stream, "x", by="key", quantiles=0.5, guarantee=guarantee, **common)
    query.awaitTermination()


if __name__ == "__main__":
    source, checkpoint, output, kind, event, times, patience = sys.argv[1:]
    main(source, checkpoint, output, kind, event, int(times), float(patience))
