"""The long run: every fault that can be made on purpose, and what came of it, as the table of docs/reliability.md.

python -m reliability.soak                       # ten million inputs, 600 kills: a quarter of an hour on two cores
python -m reliability.soak --inputs 100000 --kills 50
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass

# How the inputs are shared out: most go where they are quick.
SHARES = {
    "lines": 0.84,
    "log_lines": 0.01,
    "update": 0.06,
    "update_many": 0.06,
    "csv": 0.008,
    "ndjson": 0.007,
    "checkpoint": 0.005,
    "arrow": 0.005,
    "parquet": 0.005,
}
GUIDED = 0.02  # as many again, guided by coverage
# Second paths, failing disks and the like: how many rounds of each.
MACHINES = {"paths": 20, "faults": 40, "stops": 10, "watchers": 5, "memory": 8, "names": 1}
AUDITED = ("dp-frugal-1u", "keyed", "private-quantile")
MUST_FAIL = ("first-item", "no-re-anchoring", "quiet-walk", "skipped-coins", "per-key-coins")


@dataclass(frozen=True)
class Job:
    """A command, what it shows, and the exit status that it must end with."""

    name: str
    command: tuple[str, ...]
    status: int = 0
    figure: str = r"(?s)(.*)"


def jobs(inputs: int, kills: int) -> list[Job]:
    """All of them, the long ones first."""
    found = [Job("killed processes", ("reliability.kills", "--kills", str(kills)))]
    # In parts of half a million, so that the cores share the work.
    for name, share in SHARES.items():
        left, seed = round(inputs * share), 1
        while left > 0:
            part = min(left, 500_000)
            found.append(Job(f"inputs: {name}", ("reliability.fuzz", name, "--inputs", str(part), "--seed", str(seed))))
            left, seed = left - part, seed + 1
    found.append(Job("disks", ("reliability.disks",)))
    for name, rounds in MACHINES.items():
        found.append(Job(f"machines: {name}", ("reliability.machines", name, "--rounds", str(rounds))))
    for name, share in SHARES.items():
        runs = max(1_000, round(inputs * GUIDED * share))
        command = ("reliability.fuzz", name, "--inputs", str(runs), "--guided")
        found.append(Job(f"guided by coverage: {name}", command, figure=r"Done (\d+ runs in \d+ second)"))
    audit = ("dpfrugal", "audit", "--epsilon", "1")
    found += [Job(f"audit: {name}", (*audit, "--algorithm", name), figure=r"(PASS.*)") for name in AUDITED]
    found += [Job(f"audit: {name}", (*audit, "--broken", name), 1, r"(FAIL.*)") for name in MUST_FAIL]
    return found


def run(job: Job) -> tuple[Job, bool, str, float]:
    """Whether a job ended as it must, its figures, and the seconds it took."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", *job.command], capture_output=True, text=True)
    said = re.search(job.figure, done.stdout + done.stderr if "--guided" in job.command else done.stdout)
    good = done.returncode == job.status and said is not None
    shown = "; ".join((said[1] if good and said else done.stderr[-2_000:]).strip().replace("\t", ", ").splitlines())
    return job, good, shown, time.perf_counter() - began


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000_000)
    parser.add_argument("--kills", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    began, bad, inputs = time.perf_counter(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for done in concurrent.futures.as_completed(pool.submit(run, job) for job in jobs(asked.inputs, asked.kills)):
            job, good, shown, seconds = done.result()
            bad += not good
            if good and "--inputs" in job.command:
                inputs += int(job.command[job.command.index("--inputs") + 1])
            print(f"| {job.name} | {'good' if good else 'BAD'} | {shown} | {seconds:.0f} s |", flush=True)
    print(f"{inputs:,} generated inputs in all; {time.perf_counter() - began:.0f} s; {bad} jobs found a fault")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
