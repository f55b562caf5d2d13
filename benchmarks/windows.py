"""Windows: what taking in and releasing costs, lines a second of ``dpfrugal watch``, and its memory over many windows.

``python -m benchmarks.windows``; rates are per second of processor time on one core, as other processes may run. With
``--curve FILE`` it draws the memory alone.
"""

import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpfrugal as dpf

ROWS, KEYS, BATCH = 10_000_000, 100_000, 1_000_000
ONE = dpf.PureDP(epsilon=1.0)
LINES = 1_000_000
MEMORY_WINDOWS, MEMORY_LINES = 60, 1_000_000


def taking_in() -> Iterator[str]:
    """Rows a second into windows of ten million rows and 100,000 keys, beside ``quantiles_by`` of the same rows."""
    rng = np.random.default_rng(1)
    codes, values = rng.integers(0, KEYS, ROWS), rng.lognormal(3, 1, ROWS)
    names = pa.array([f"/path/{k}" for k in range(KEYS)])
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)
    yield "| keys | taken in, M rows/s | bytes held per item | release, s | quantiles_by, s |\n|---|---|---|---|---|"
    several: list[tuple[str, Any, Any]] = [("integers", codes, np.arange(KEYS)), ("dictionary", encoded, names)]
    for name, keys, declared in several:
        windows = dpf.KeyedWindowQuantile(0.5, ONE, keys=declared)
        rates, took = [], []
        for _ in range(3):
            begun = time.process_time()
            for first in range(0, ROWS, BATCH):
                windows.update_many(keys[first : first + BATCH], values[first : first + BATCH])
            rates.append(ROWS / (time.process_time() - begun) / 1e6)
            held = sum(column.nbytes for column in windows._held.arrays().values()) / windows._held.size
            begun = time.process_time()
            windows.release()
            took.append(time.process_time() - begun)
        begun = time.process_time()
        dpf.quantiles_by(pa.table({"k": keys, "v": values}), "v", 0.5, ONE, by="k", keys=declared)
        table = time.process_time() - begun
        yield f"| {name} | {max(rates):.0f} | {held:.0f} | {min(took):.1f} | {table:.1f} |"


def streams(folder: Path) -> Iterator[tuple[str, list[str], str]]:
    """Files of lines, and how ``watch`` reads them."""
    random.seed(1)
    keys = folder / "keys.txt"
    keys.write_text("/home\n/search\n/pay\n")
    by = ["--keys", str(keys)]
    numbers = [f"{random.lognormvariate(3, 1):.3f}" for _ in range(LINES)]
    routes = [random.choice(["/home", "/search", "/pay"]) for _ in range(LINES)]  # noqa: S311
    pairs = list(zip(numbers, routes, strict=True))
    yield "plain", [], "".join(f"{number}\n" for number in numbers) * 8
    yield "--json-lines", ["--json-lines", "--value", "ms", "--by", "route", *by], "".join(
        json.dumps({"at": "2026-11-18T12:00:00Z", "route": route, "status": 200, "ms": float(number), "by": "x"}) + "\n"
        for number, route in pairs
    )  # fmt: skip
    yield (
        "--logfmt",
        ["--logfmt", "--value", "ms", "--by", "route", *by],
        "".join(
            f'at=2026-11-18T12:00:00Z level=info route={route} status=200 ms={number} msg="all well"\n'
            for number, route in pairs
        ),
    )
    pattern = r'"GET (?P<key>\S+) [^"]*" \d+ (?P<value>\S+)$'
    yield (
        "--pattern",
        ["--pattern", pattern, *by],
        "".join(
            f'203.0.113.7 - - [18/Nov/2026:12:00:00 +0000] "GET {route} HTTP/1.1" 200 {number}\n'
            for number, route in pairs
        ),
    )


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "dpfrugal", "watch", "-q", "0.5,0.99", "--epsilon", "1", *options]


def reading() -> Iterator[str]:
    """Lines a second from standard input to releases, without the start, as a hundredth of them takes."""
    yield "\n| lines | million lines/s |\n|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for name, options, text in streams(Path(folder)):
            lines = text.count("\n")
            least = [math.inf, math.inf]
            for place, part in enumerate((text[: text.index("\n", len(text) // 100) + 1], text)):
                path = Path(folder) / "lines"
                path.write_text(part)
                for _ in range(3):
                    least[place] = min(least[place], processor_time(command("--every", "1000000", *options), path))
            yield f"| {name} | {0.99 * lines / (least[1] - least[0]) / 1e6:.2f} |"


def processor_time(arguments: list[str], path: Path) -> float:
    """Of a command that reads a file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with path.open("rb") as file:
        subprocess.run(arguments, stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def remembering(curve: Path | None) -> Iterator[str]:
    """Resident memory at the end of each of 60 windows: an hour of minutes."""
    found = {
        f"{MEMORY_LINES:,} plain lines": at_the_ends(
            MEMORY_LINES,
            "".join(f"{n:.3f}\n" for n in np.random.default_rng(1).lognormal(3, 1, 20_000)),
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        options, text = next((options, text) for name, options, text in streams(Path(folder)) if name == "--json-lines")
        lines = MEMORY_LINES // 5
        block = "".join(text.splitlines(keepends=True)[:20_000])
        found[f"{lines:,} JSON lines with keys"] = at_the_ends(lines, block, *options)
    for name, sizes in found.items():
        shown = ", ".join(str(each) for each in sizes[:: MEMORY_WINDOWS // 12])
        yield (
            f"\nResident memory over {MEMORY_WINDOWS} windows of {name}, every fifth, in MB: {shown} "
            f"(largest {max(sizes)})."
        )
    if curve is not None:
        draw(curve, found)


def at_the_ends(lines: int, block: str, *options: str) -> list[int]:
    """Megabytes of ``watch`` at the end of each window of so many lines."""
    process = subprocess.Popen(
        command("--every", str(lines), *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feed = process.stdin

    def write() -> None:
        for _ in range(MEMORY_WINDOWS * lines // block.count("\n") + 1):
            feed.write(block.encode())
        feed.close()

    writer = threading.Thread(target=write)
    writer.start()
    found = []
    for _ in range(MEMORY_WINDOWS):
        for _ in range(3 if options else 1):  # one line for each key
            process.stdout.readline()
        status = Path(f"/proc/{process.pid}/statm").read_text().split()
        found.append(int(status[1]) * os.sysconf("SC_PAGE_SIZE") // 1_000_000)
    writer.join()
    process.stdout.read()
    process.wait()
    return found


def draw(path: Path, found: dict[str, list[int]]) -> None:
    """Memory over the windows."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
    for name, sizes in found.items():
        axes.plot(range(1, len(sizes) + 1), sizes, label=f"windows of {name}")
    axes.set(xlabel="window", ylabel="resident memory, MB", ylim=(0, None), xlim=(1, MEMORY_WINDOWS))
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curve", type=Path, help="only the memory, drawn into this file")
    curve = parser.parse_args().curve
    for part in (remembering(curve),) if curve is not None else (taking_in(), reading(), remembering(None)):
        for line in part:
            print(line, flush=True)


if __name__ == "__main__":
    main()
