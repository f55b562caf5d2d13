"""Real executors, one of them killed in the middle of a job; and a driver killed ten times between sink and commit."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal import locate_refine, noise
from dpfrugal.engines import spark as dps
from dpfrugal.engines import spark_batch

pytestmark = pytest.mark.cluster
GUARANTEE = dpf.PureDP(epsilon=1.0)
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    session = dps.local_session("local-cluster[2,1,1024]", spark_sql_shuffle_partitions="4", spark_executor_memory="1g")
    yield session
    session.stop()


def executors(driver: int) -> list[int]:
    """The processes of this session's executors: children of the driver's Java, by what they were started as."""
    found = subprocess.run(["ps", "-ewwo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [
        (int(pid), int(parent), args) for pid, parent, args in (line.split(None, 2) for line in found.splitlines()[1:])
    ]
    below, added = {driver}, True
    while added:
        more = {pid for pid, parent, _ in rows if parent in below} - below
        below, added = below | more, bool(more)
    return [pid for pid, _, args in rows if pid in below and "CoarseGrainedExecutorBackend" in args]


def test_an_executor_killed_in_the_middle_of_a_job_changes_nothing(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            __import__("time").sleep(0.5)
            yield batch

    def none(values: Any, *_: Any) -> Any:
        asked.append(len(values))
        return values

    monkeypatch.setattr(noise, "add_noise_to_many", none)
    monkeypatch.setattr(locate_refine, "add_noise", lambda values, *_: [int(value) for value in values])
    path = str(tmp_path / "table")
    rows = cluster.range(200_000, numPartitions=8)
    rows.selectExpr("cast(id * 7919 % 1000 as double) AS x", "id % 50 AS key", "id AS at").write.parquet(path)
    df = cluster.read.parquet(path)
    slow = df.mapInArrow(slowly, df.schema)
    options: dict[str, Any] = {"keys": list(range(40)), "start": 400.0, "coin_seed": 1, "order_by": "at"}

    def tables(df: Any) -> tuple[Any, Any]:
        by = dps.quantiles_by(df, "x", by="key", quantiles=0.5, guarantee=GUARANTEE, **options)
        return sorted(by.collect()), spark_batch.counts(df, "x", np.array([100.0, 900.0])).bins.tolist()

    calm = tables(df)
    driver = os.getpid()
    victims = executors(driver)
    assert len(victims) == 2
    asked.clear()

    def kill() -> None:
        time.sleep(2.0)
        os.kill(victims[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    shaken = tables(slow)
    killer.join()
    assert victims[0] not in executors(driver)
    assert shaken == calm
    assert asked == [40]
    release = dps.private_quantiles(df, "x", 0.5, GUARANTEE)
    assert release.items == 200_000


@pytest.mark.parametrize("kind", ["global", "keyed"])
def test_a_driver_killed_ten_times_releases_what_an_undisturbed_one_does(kind: str, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for part in range(12):
        x = np.random.default_rng(part).permutation(3000) / 3.0 + part / 100
        tables.append(pa.table({"x": x, "key": np.arange(3000) % 4}))

    def write(name: str, contents: list[Any]) -> None:
        (tmp_path / f"{name}-in").mkdir()
        for number, table in enumerate(contents):
            path = tmp_path / f"{name}-in" / f"{number:02}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def cut() -> list[Any]:
        """The tables as Spark's batches held them: one each, or two where a kill came before Spark noted the first."""
        offsets = sorted((tmp_path / "shaken-check" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        ends = [json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["logOffset"] + 1 for path in offsets]
        assert ends[-1] == len(tables)
        return [pa.concat_tables(tables[first:last]) for first, last in itertools.pairwise([0, *ends])]

    def run(name: str, patience: float) -> bool:
        (tmp_path / f"{name}-out").mkdir(exist_ok=True)
        places = [str(tmp_path / f"{name}-{part}") for part in ("in", "check", "out")]
        command = [sys.executable, "-m", "tests.cluster_job", *places, kind, str(patience)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == (-signal.SIGKILL if ended.returncode < 0 else 0), ended.stderr[-2000:]
        return ended.returncode == 0

    def shown(name: str) -> dict[int, set[tuple[float, ...]]]:
        found: dict[int, set[tuple[float, ...]]] = {}
        for path in (tmp_path / f"{name}-out").glob("*.json"):
            if text := path.read_text(encoding="utf-8"):  # empty: killed while it was being written
                batch, values = json.loads(text)
                found.setdefault(batch, set()).add(tuple(values))
        return found

    write("shaken", tables)
    seed = random.SystemRandom().randrange(10**9)
    patience = random.Random(seed)  # noqa: S311
    killed = sum(not run("shaken", patience.uniform(1, 2500)) for _ in range(10))
    assert killed > 3, f"the kills came too late, seed {seed}"
    assert run("shaken", 0)
    write("calm", cut())
    assert run("calm", 0)
    calm, shaken = shown("calm"), shown("shaken")
    assert shaken.keys() == calm.keys(), seed
    assert all(len(values) == 1 for values in shaken.values()), f"two releases of one batch, seed {seed}"
    assert shaken == calm, seed
