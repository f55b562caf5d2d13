"""A statistical check of the coin generator on 2^30 coins, with a leg that must fail. docs/coins.md explains it.

    python -m benchmarks.coin_check                 # about 2 minutes
    python -m benchmarks.coin_check --log2-coins 24 # a quick look

All tests are two-sided: too even is as suspicious as too uneven. The false-alarm rate of the whole check is
``FALSE_ALARM``, divided by the number of tests. Coins are seeded, so the check passes or fails for good. The same
tests then run over broken generators, and each of those must be caught.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.coin_tests import Fill, Test, neighbours, stream
from dpfrugal.kernels import coins, compiled_coins

RESULTS = Path(__file__).parent / "results"
FALSE_ALARM = 1e-3
SEED = 0
NEIGHBOURS = 8
POWER_LOG2 = 24


@njit(nogil=True)
def fill_blocks(key: np.uint64, position: int, out: NDArray[np.uint32]) -> None:
    """The coins from ``position`` on, by the kernel that the library runs."""
    upper = np.empty(coins.BLOCK, np.uint16)
    for first in range(0, out.size, coins.BLOCK):
        compiled_coins.block_coins(key, position + first, out[first : first + coins.BLOCK], upper)


def library(seed: int) -> Fill:
    """The library's coins for a seed."""
    key = np.uint64(coins.key_from_seed(seed))
    return lambda position, out: fill_blocks(key, position, out)


def unmixed(seed: int) -> Fill:
    """Broken: the counter's upper half without SplitMix64's mixing."""

    def fill(position: int, out: NDArray[np.uint32]) -> None:
        with np.errstate(over="ignore"):
            words = (np.arange(position, position + out.size, dtype=np.uint64) + np.uint64(seed)) * np.uint64(
                coins.GAMMA
            )
        out[:] = words >> np.uint64(32)

    return fill


def halves_alike(seed: int) -> Fill:
    """Broken: both coins of a word are its lower half."""

    def fill(position: int, out: NDArray[np.uint32]) -> None:
        library(seed)(position, out)
        blocks = out.reshape(-1, coins.BLOCK)
        blocks[:, coins.HALF :] = blocks[:, : coins.HALF]

    return fill


def biased(seed: int) -> Fill:
    """Broken: bit 17 of every 512th coin is always set, half of which would be by chance."""

    def fill(position: int, out: NDArray[np.uint32]) -> None:
        library(seed)(position, out)
        out[::512] |= np.uint32(1 << 17)

    return fill


def keys_in_step(seed: int) -> Fill:
    """Broken: keys of neighbouring seeds are one word apart, so one stream is the other, shifted."""
    key = np.uint64(seed * coins.GAMMA & coins.WORD_MASK)
    return lambda position, out: fill_blocks(key, position, out)


BROKEN = {
    "the counter, not mixed": unmixed,
    "both halves of a word alike": halves_alike,
    "one bit biased by 1/1024": biased,
    "keys of neighbouring seeds in step": keys_in_step,
}


def is_specified(fill: Fill, seed: int) -> bool:
    """Whether these really are the coins of ``coins.coin``, at the start and far into the stream."""
    out, key = np.empty(256, np.uint32), coins.key_from_seed(seed)
    for position in (0, 1 << 20, 1 << 40):
        fill(position, out)
        if out.tolist() != [coins.coin(key, position + i) for i in range(out.size)]:
            return False
    return True


def show(console: Console, title: str, tests: list[Test], threshold: float) -> None:
    """The tests by family: how many, the smallest p-value, and whether all pass."""
    table = Table("family", "tests", "smallest p", "threshold", "", title=title, title_justify="left")
    for family in dict.fromkeys(test.family for test in tests):
        least = min((test for test in tests if test.family == family), key=lambda test: test.p_value)
        count = sum(test.family == family for test in tests)
        verdict = "pass" if least.p_value >= threshold else f"FAIL: {least.name}"
        table.add_row(family, str(count), f"{least.p_value:.3g}", f"{threshold:.2g}", verdict)
    console.print(table)


def main() -> None:
    """Run both legs; the exit status is 1 if either surprises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log2-coins", type=int, default=30)
    chosen, console, started = parser.parse_args(), Console(width=130), time.perf_counter()
    console.print(f"{machine.sentence()}; 2^{chosen.log2_coins} coins of seed {SEED}")
    if not is_specified(library(SEED), SEED):
        sys.exit("The kernel's coins are not those of dpfrugal.kernels.coins.coin: nothing else is worth checking.")
    cross_log2 = min(26, chosen.log2_coins - 4)
    tests = stream(library(SEED), 1 << chosen.log2_coins)
    tests += neighbours([library(seed) for seed in range(NEIGHBOURS)], 1 << cross_log2)
    threshold = FALSE_ALARM / len(tests)
    show(console, "The library's coins", tests, threshold)
    failed = [test for test in tests if test.p_value < threshold]
    power: dict[str, list[Test]] = {}
    for name, broken in BROKEN.items():
        found = stream(broken(SEED), 1 << POWER_LOG2)
        found += neighbours([broken(seed) for seed in range(NEIGHBOURS)], 1 << (POWER_LOG2 - 4))
        power[name] = [test for test in found if test.p_value < threshold]
    table = Table("broken generator", "tests failed", "families", title=f"Power, on 2^{POWER_LOG2} coins")
    for name, caught in power.items():
        families = ", ".join(dict.fromkeys(test.family for test in caught))
        table.add_row(name, str(len(caught)), families or "NOT CAUGHT")
    console.print(table)
    seconds = round(time.perf_counter() - started)
    good = not failed and all(power.values())
    console.print(f"{len(tests)} tests, {len(failed)} failed; {'as it should be' if good else 'NOT GOOD'}; {seconds} s")
    RESULTS.mkdir(exist_ok=True)
    record = {
        "machine": machine.described(),
        "settings": {"log2_coins": chosen.log2_coins, "seed": SEED, "false_alarm": FALSE_ALARM, "threshold": threshold},
        "tests": [asdict(test) for test in tests],
        "power": {name: [asdict(test) for test in caught] for name, caught in power.items()},
        "seconds": seconds,
    }
    (RESULTS / "coins.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
