"""A streaming job that somebody will kill: it writes what it releases to a folder, one file per batch and call.

Run as a script: input folder, checkpoint, output folder, "keyed" or "global", and how many milliseconds after its first
call of the sink it kills itself (0: never). Noise is replaced by none, so that an undisturbed run can be compared.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import dpfrugal as dpf
from dpfrugal import locate_refine, noise
from dpfrugal.engines import spark as dps


def main(source: str, checkpoint: str, output: str, kind: str, patience: float) -> None:
    setattr(noise, "add_noise_to_many", lambda values, *_: values)  # noqa: B010 - mypy forbids the plain form
    setattr(locate_refine, "add_noise", lambda values, *_: [int(value) for value in values])  # noqa: B010
    spark = dps.local_session("local[2]", spark_sql_shuffle_partitions="2")
    shown = threading.Event()
    if patience:  # a kill at any point: while counting, recording, in the sink, before Spark's commit

        def end() -> None:
            shown.wait()
            time.sleep(patience / 1000)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=end, daemon=True).start()

    def sink(release: Any, batch_id: int) -> None:
        values = list(release.values) if kind == "global" else [row.value for row in release.collect()]
        name = f"{batch_id}-{os.getpid()}.json"
        (Path(output) / name).write_text(json.dumps([batch_id, values]), encoding="utf-8")
        shown.set()
        time.sleep(random.random() * 0.2)  # noqa: S311 - a longer way from the sink to the commit

    stream = spark.readStream.schema("x double, key bigint").option("maxFilesPerTrigger", 1).parquet(source)
    common: dict[str, Any] = {"checkpoint": checkpoint, "sink": sink, "trigger": {"availableNow": True}}
    guarantee = dpf.PureDP(epsilon=1.0)
    if kind == "global":
        query = dps.stream_private_quantiles(stream, "x", [0.5, 0.9], guarantee, **common)
    else:
        common |= {"keys": [0, 1, 2], "coin_seed": 3, "start": 400.0, "release_every": 2, "order_by": "x"}
        query = dps.stream_quantiles_by(stream, "x", by="key", quantiles=0.5, guarantee=guarantee, **common)
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
