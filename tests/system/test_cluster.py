"""Real executors, one killed, one overtaken by a copy of its task; and a driver killed fifteen times."""

import datetime
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark.stream_checkpoint import FOLDER
from tests.support.cluster_job import WAY
from tests.support.repository import ROOT
from tests.support.seeded_draws import seeded_draws

pytestmark = pytest.mark.cluster
GUARANTEE = dpf.PureDP(epsilon=1.0)
ROWS: Final = 200_000
HERE: Final = "127.0.0.1"


@pytest.fixture
def one_host() -> Iterator[Any]:
    """Two executors that Spark starts by itself."""
    session = dps.local_session("local-cluster[2,1,1024]", spark_sql_shuffle_partitions="4")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A master and two workers, with an executor each, that know this machine by two names.

    Spark runs no speculative copy on the host of the first attempt, and ``local-cluster`` has one host only.
    """
    import pyspark

    dps.provide_java()
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
    folder = tmp_path_factory.mktemp("cluster")
    rest = "-Dspark.master.rest.enabled=false"  # it would take a port that others may have
    environment = os.environ | {"SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": rest}
    with ExitStack() as stack:

        def start(role: str, host: str, *options: str) -> subprocess.Popen[bytes]:
            command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
            log = stack.enter_context((folder / f"{role}-{host}.log").open("wb"))
            process = stack.enter_context(
                subprocess.Popen([*command, "--host", host, *options], env=environment, stdout=log, stderr=log)
            )
            stack.callback(process.terminate)
            return process

        master = start("master.Master", HERE, "--port", str(port), "--webui-port", "0")
        reached = False
        while not reached:
            assert master.poll() is None, folder
            time.sleep(0.1)
            with suppress(ConnectionRefusedError), socket.create_connection((HERE, port)):
                reached = True
        for host in (HERE, "localhost"):
            size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / host)]
            start("worker.Worker", host, *size, f"spark://{HERE}:{port}")
        session = dps.local_session(
            f"spark://{HERE}:{port}",
            spark_sql_shuffle_partitions="4",
            spark_executor_memory="1g",
            spark_cores_max="2",
            spark_scheduler_minRegisteredResourcesRatio="1.0",
            spark_locality_wait="0s",
            spark_speculation="true",
            spark_speculation_interval="100ms",
            spark_speculation_multiplier="1.5",
            spark_speculation_quantile="0.5",
        )
        stack.callback(session.stop)
        yield session


def table_in(session: Any, folder: Path) -> Any:
    path = str(folder / "table")
    rows = session.range(ROWS, numPartitions=8)
    rows.selectExpr("cast(id * 7919 % 1000 as double) AS x", "id % 50 AS key").write.parquet(path)
    return session.read.parquet(path)


def by_key(df: Any) -> Any:
    with seeded_draws():
        return dpf.quantiles_by(df, "x", [0.5, 0.9], GUARANTEE, by="key", keys=list(range(40))).to_pylist()


def whole(df: Any) -> Any:
    with seeded_draws():
        return dpf.private_quantiles(df, [0.5, 0.9], GUARANTEE, column="x")


def executors(driver: int) -> list[int]:
    """The processes of this session's executors: below the driver, by what they were started as."""
    found = subprocess.run(["ps", "-ewwo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [
        (int(pid), int(parent), args) for pid, parent, args in (line.split(None, 2) for line in found.splitlines()[1:])
    ]
    below, added = {driver}, True
    while added:
        more = {pid for pid, parent, _ in rows if parent in below} - below
        below, added = below | more, bool(more)
    return [pid for pid, _, args in rows if pid in below and "CoarseGrainedExecutorBackend" in args]


def test_cluster__changes_nothing_when_an_executor_is_killed_in_the_middle_of_a_job(
    one_host: Any, tmp_path: Path
) -> None:
    table = table_in(one_host, tmp_path)

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    calm = by_key(table), whole(table)
    driver = os.getpid()
    victims = executors(driver)
    assert len(victims) == 2

    def kill() -> None:
        time.sleep(2.0)
        os.kill(victims[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    slow = table.mapInArrow(slowly, table.schema)
    shaken = by_key(slow), whole(slow)
    killer.join()
    assert victims[0] not in executors(driver)
    assert shaken == calm
    assert calm[1].items == ROWS


def overtaken(marks: Path, winner: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Passes batches on; but in one task the first attempt stops after one, until a copy has passed the same.

    Then the winner goes on to the end, and the other waits to be killed.
    """

    def passing(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        stage, attempt = task.stageId(), task.attemptNumber()
        if task.partitionId() != 1:
            yield from batches
            return

        def mark(word: str) -> None:
            (marks / f"{stage}-{attempt}-{word}").touch()

        def wait_for(name: str) -> None:
            for _ in range(1200):
                if (marks / name).exists():
                    return
                time.sleep(0.05)
            raise TimeoutError(name)

        for batch in batches:
            yield batch
            mark("passed")
            if attempt == 0:
                wait_for(f"{stage}-1-passed")
                mark("overtaken")
            else:  # an attempt that has lost is killed, and could not say what it saw
                wait_for(f"{stage}-0-overtaken")
            if attempt != winner:
                wait_for("the kill")
        mark("ended")

    return passing


@pytest.mark.parametrize("winner", [0, 1], ids=["the-first-wins", "the-copy-wins"])
def test_cluster__changes_nothing_when_a_task_has_a_speculative_copy(
    winner: int, two_hosts: Any, tmp_path: Path
) -> None:
    table = table_in(two_hosts, tmp_path)

    def raced(job: Callable[[Any], Any], folder: str) -> tuple[Any, int]:
        """What the job gives, and in how many of its stages a task had a copy."""
        marks = tmp_path / folder
        marks.mkdir()
        found = job(table.mapInArrow(overtaken(marks, winner), table.schema))
        stages: dict[str, set[str]] = {}
        for path in marks.iterdir():
            stage, _, event = path.name.partition("-")
            stages.setdefault(stage, set()).add(event)
        for events in stages.values():
            assert events == {"0-passed", "1-passed", "0-overtaken", f"{winner}-ended"}
        return found, len(stages)

    for name, job in {"keys": by_key, "all": whole}.items():
        calm = job(table)
        shaken, stages = raced(job, name)
        assert shaken == calm
        assert stages >= 2  # the rows are counted, then those around the ranks are found


@dataclass(frozen=True)
class Job:
    """A stream with a folder of its own: what goes in, its checkpoint, and what came out."""

    folder: Path
    kind: str

    def write(self, tables: list[Any]) -> None:
        """More input, each table a file younger than all before."""
        import pyarrow.parquet as pq

        source = self.folder / "in"
        source.mkdir(parents=True, exist_ok=True)
        for number, table in enumerate(tables, start=len(list(source.iterdir()))):
            path = source / f"{number:03}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def run(self, event: str = "sink", times: int = 0, patience: float = 0.0) -> bool:
        """Whether it came to an end; if not, it was killed so long after so many events."""
        (self.folder / "out").mkdir(exist_ok=True)
        places = [str(self.folder / part) for part in ("in", "check", "out")]
        command = [
            sys.executable,
            "-m",
            "tests.support.cluster_job",
            *places,
            self.kind,
            event,
            str(times),
            str(patience),
        ]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr[-2000:]
        return ended.returncode == 0

    def ends(self) -> list[int]:
        """The file that each of Spark's batches ends before: one more, or two where a kill came before its offset."""
        offsets = sorted((self.folder / "check" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        return [json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["logOffset"] + 1 for path in offsets]

    def shown(self) -> dict[int, list[str]]:
        """What each process showed of each batch."""
        found: dict[int, list[str]] = {}
        for path in (self.folder / "out").iterdir():
            if text := path.read_text(encoding="utf-8"):  # empty: killed while it was being written
                found.setdefault(int(path.name.partition("-")[0]), []).append(text)
        return found

    def record(self) -> dict[str, Any]:
        """The newest record, without what is random."""
        path = max((self.folder / "check" / FOLDER).glob("[0-9]*"), key=lambda path: int(path.name))
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
        state: dict[str, Any] = record["state"]
        for random_one in ("lineage", "generation", "ledger"):
            del state["account"][random_one]
        return state


def part(number: int) -> Any:
    """Twenty seconds of rows: three parts are a window of a minute."""
    import pyarrow as pa

    x = np.random.default_rng(number).permutation(3000) / 3.0 + number / 100
    at = (number * 20_000_000 + np.arange(3000) * 6_000).astype("datetime64[us]")
    return pa.table({"x": x, "key": np.arange(3000) % 4, "at": pa.array(at, pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize("kind", ["global", "keyed"])
def test_cluster__leaves_what_an_undisturbed_driver_does_when_drivers_are_killed(kind: str, tmp_path: Path) -> None:
    import pyarrow as pa

    shaken, calm = Job(tmp_path / "shaken", kind), Job(tmp_path / "calm", kind)
    seed = random.SystemRandom().randrange(10**9)
    chance = random.Random(seed)  # noqa: S311
    written = killed = 0

    def more(ahead: int) -> int:
        """Input until so many files are ahead of Spark, which no run is fast enough to read before it is killed."""
        end = max(shaken.ends(), default=0) + ahead
        shaken.write([part(number) for number in range(written, end)])
        return max(written, end)

    for event in chance.sample(["sink", "record"], 15, counts=[10, 5]):
        written = more(16)
        times, longest = (2, WAY) if event == "sink" else (4, 1.0)
        killed += not shaken.run(event, chance.randint(1, times), chance.uniform(0, longest))
    assert killed == 15, seed
    assert shaken.run()
    assert shaken.ends()[-1] == written
    if kind == "global":  # a batch is a window: the same ones
        ends = sorted({0, *shaken.ends()})
        calm.write([pa.concat_tables(map(part, range(first, last))) for first, last in itertools.pairwise(ends)])
    else:
        calm.write([part(number) for number in range(written)])
    assert calm.run()

    # Spark replays a batch that it has not committed: so many kills came after the sink's call and before the commit.
    replays = sum(len(texts) - 1 for texts in shaken.shown().values())
    assert 10 <= replays <= 15, seed
    assert all(len(set(texts)) == 1 for texts in shaken.shown().values()), f"two releases of one batch, seed {seed}"
    if kind == "global":
        assert {batch: texts[:1] for batch, texts in shaken.shown().items()} == calm.shown(), seed
        assert shaken.record() == calm.record(), seed
    else:
        assert released(shaken) == released(calm), seed
        assert len(released(calm)) == len(set(released(calm))) >= 5
    for job in (shaken, calm):
        assert dpf.Ledger(job.folder / "budget.db").left("in") is None  # spent, once


def released(job: Job) -> list[str]:
    """The text of every window's table, in the order of time; of a batch that was shown again one."""
    rows = [row for texts in job.shown().values() for row in eval(texts[0], {"datetime": datetime})]  # noqa: S307
    return [repr(row) for row in sorted(rows, key=lambda row: (row["window_start"], row["key"]))]
