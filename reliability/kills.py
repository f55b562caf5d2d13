"""SIGKILL at random points: a process that updates, releases, publishes and saves is killed, and started again.

    python -m reliability.kills --kills 500

The worker is a forked process. What must survive it is noted in memory that it shares with its parent: the step it is
in, which items each noise is taken for, and what it has been told is on disk. After every kill the parent checks
- no overspend: the ledger opens, and its total covers what is spent;
- no double release: noise is taken for an item at most once, over all processes;
- no lost committed release: what was published, and every generation that the ledger has confirmed, is still there;
- no torn file: the checkpoint loads, as of before or after the write that was killed.
"""

import argparse
import collections
import json
import mmap
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import dpfrugal as dpf
from dpfrugal.estimators.segments import planner
from dpfrugal.estimators.walk import dp_frugal as walk_module
from dpfrugal.privacy import noise

STEPS = ("start", "load", "update", "release", "ledger", "noise", "publish", "checkpoint")
TOTAL, EACH = dpf.PureDP(epsilon=3.0), dpf.PureDP(epsilon=1.0)
KILLS_PER_FOLDER = 12
LONGEST_WAIT = 0.5
ITEMS = 2_000  # in a batch


class Notes:
    """Memory that outlives the worker: one page of numbers, and a log of lines."""

    def __init__(self) -> None:
        self._page, self._log = mmap.mmap(-1, 4096), mmap.mmap(-1, 1 << 22)

    def number(self, at: int) -> int:
        """One of the numbers."""
        return int.from_bytes(self._page[8 * at : 8 * at + 8], "little")

    def set(self, at: int, value: int) -> None:
        """Note a number; eight aligned bytes are written at once."""
        self._page[8 * at : 8 * at + 8] = value.to_bytes(8, "little")

    def add(self, record: Any) -> None:
        """Note a line: first the text, then that it is there."""
        line, end = json.dumps(record).encode() + b"\n", self.number(END)
        self._log[end : end + len(line)] = line
        self.set(END, end + len(line))

    def lines(self) -> list[Any]:
        """All lines."""
        return [json.loads(line) for line in self._log[: self.number(END)].splitlines()]


STEP, END, BATCH = 0, 1, 2


class Worker:
    """Takes batches from a source that gives each once, as a pipe does; releases, publishes and saves."""

    def __init__(self, folder: Path, kind: Any, notes: Notes, careless: bool) -> None:
        self.folder, self.kind, self.notes, self.careless = folder, kind, notes, careless
        self.held: list[int] = []  # batches that no noise was taken for

    def run(self) -> None:
        """Until it is killed, or the budget is spent."""
        self._listen()
        self._step("load")
        ledger = None if self.careless else dpf.Ledger(self.folder / "budget.db", total=TOTAL)
        path = self.folder / "state"
        if path.exists():
            estimator, told = self.kind.load_with_notes(
                path, ledger, accept_replay_risk=self.careless, forget_if_stale=True
            )
            self.held = [] if estimator.account.stale else told["held"]
        else:
            estimator = self.kind(0.5, EACH, ledger=ledger, dataset=None if self.careless else "clicks")
        options = {"close": True} if self.kind is dpf.PrivateQuantile else {}
        with (self.folder / "published").open("a", encoding="utf-8") as published:
            while True:
                for _ in range(2):
                    self._step("update")
                    batch = self.notes.number(BATCH)
                    self.notes.set(BATCH, batch + 1)
                    self.held.append(batch)
                    estimator.update_many([float(batch % 7)] * ITEMS)
                    self._step("checkpoint")
                    estimator.save_with_notes(path, {"held": self.held})
                self._step("release")
                release = estimator.release(**options)
                self._step("publish")
                published.write(json.dumps({"value": release.value, "items": release.items}) + "\n")
                published.flush()
                os.fsync(published.fileno())
                self.notes.add({"published": [release.value, release.items]})
                self._step("checkpoint")
                estimator.save_with_notes(path, {"held": self.held})

    def _step(self, name: str) -> None:
        self.notes.set(STEP, STEPS.index(name))

    def _listen(self) -> None:
        """Note when the ledger is written, what it has confirmed, and which batches noise is taken for."""
        advance, add_noise = dpf.Ledger.advance, noise.add_noise

        def noted_advance(ledger: Any, spend: Any, lineage: str, holder: str) -> int:
            self._step("ledger")
            generation = advance(ledger, spend, lineage, holder)
            self.notes.add({"lineage": lineage, "generation": generation})
            return generation

        def noted_noise(*arguments: Any) -> list[int]:
            self._step("noise")
            self.notes.add({"noise": self.held})
            self.held = []
            return add_noise(*arguments)

        setattr(dpf.Ledger, "advance", noted_advance)  # noqa: B010 - the types know that it is a method
        for module in (noise, planner):
            setattr(module, "add_noise", noted_noise)  # noqa: B010


def worker(folder: Path, kind: Any, notes: Notes, careless: bool) -> int:
    """A forked process that works until it is killed; its exit status says whether it ended by itself, and how."""
    if pid := os.fork():
        return pid
    status = 3
    try:
        Worker(folder, kind, notes, careless).run()
    except dpf.BudgetExceeded:
        status = 0
    except BaseException as error:
        notes.add({"error": repr(error)})
    finally:
        os._exit(status)


def killed(pid: int, notes: Notes, rng: random.Random, wanted: str | None) -> str:
    """Kill the worker at a random point of a step, which is chosen at random if none is wanted; the step it was in."""
    step = STEPS.index(wanted or rng.choice(STEPS[1:]))
    deadline = time.monotonic() + LONGEST_WAIT
    if wanted is None and STEPS[step] != "load":
        time.sleep(rng.random() * 0.05)
    while notes.number(STEP) != step and time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return "ended"
        time.sleep(0.00002)
    pause = rng.random() ** 4 * 0.005
    if pause > 0.0005:
        time.sleep(pause)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return STEPS[notes.number(STEP)]


def check(folder: Path, kind: Any, notes: Notes) -> None:
    """Everything that must hold after a kill."""
    lines = notes.lines()
    errors = [line["error"] for line in lines if "error" in line]
    assert not errors, errors
    taken = collections.Counter(batch for line in lines for batch in line.get("noise", ()))
    assert not [batch for batch, times in taken.items() if times > 1], "noise was taken twice for the same items"
    if (folder / "budget.db").exists():
        ledger = dpf.Ledger(folder / "budget.db", total=TOTAL)
        for dataset in ledger.datasets():
            assert len(dataset.spends) * EACH.epsilon <= TOTAL.epsilon
            assert ledger.total_spent(dataset.name, 1e-6).epsilon <= TOTAL.epsilon
        for line in lines:
            if "lineage" in line:
                assert ledger.generation(line["lineage"]) >= line["generation"], "a confirmed generation is lost"
        if (folder / "state").exists():
            kind.load_with_notes(folder / "state", ledger, accept_replay_risk=False, forget_if_stale=True)
    confirmed = [line["published"] for line in lines if "published" in line]
    text = (folder / "published").read_text(encoding="utf-8") if (folder / "published").exists() else ""
    whole = iter([list(json.loads(line).values()) for line in text.split("\n")[:-1]])
    assert all(release in whole for release in confirmed), "a release is lost"  # in order; some were never confirmed


def kills(
    count: int, seed: int, *, careless: bool = False, wanted: str | None = None, where: str | None = None
) -> collections.Counter[str]:
    """So many kills over fresh folders; how many in which step. A careless worker has no ledger, and must be caught."""
    noise.add_noise([0], EACH, walk_module.sensitivity_of(1, 1))  # loads what is loaded late, once for all workers
    rng, steps = random.Random(seed), collections.Counter[str]()  # noqa: S311 - points in time, not secrets
    while steps.total() - steps["ended"] < count:
        kind = (dpf.DPFrugal1U, dpf.PrivateQuantile)[steps.total() // KILLS_PER_FOLDER % 2]
        folder, notes = Path(tempfile.mkdtemp(prefix="dpfrugal-kills-", dir=where)), Notes()
        try:
            for _ in range(KILLS_PER_FOLDER):
                notes.set(STEP, 0)
                steps[killed(worker(folder, kind, notes, careless), notes, rng, wanted)] += 1
                check(folder, kind, notes)
        finally:
            shutil.rmtree(folder)
    return steps


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.perf_counter()
    steps = kills(asked.kills, asked.seed)
    shown = ", ".join(f"{name} {steps[name]}" for name in STEPS)
    seconds = time.perf_counter() - began
    print(f"{steps.total() - steps['ended']} kills in {seconds:.0f} s ({shown})")
    print("no overspend, no double release, no lost release, no torn file")


if __name__ == "__main__":
    main()
