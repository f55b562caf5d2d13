"""What a spend, ``left`` and a release cost after a hundred spends and after a million: the curve of docs/ledger.md.

python -m benchmarks.ledger                      # up to a million spends, some minutes, most of them to make the files
python -m benchmarks.ledger --spends 100 10000
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dpfrugal as dpf
from tests.support.older_ledger import spend_many

SMALL = dpf.PureDP(epsilon=0.0001)
TOTALS = {"ε": dpf.PureDP(epsilon=1e6), "(ε, δ)": dpf.ApproxDP(epsilon=1e4, delta=1e-6)}


def milliseconds(work: Callable[[], object], times: int) -> float:
    """The median."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def measured(folder: Path, total: dpf.Guarantee, spends: int, times: int) -> list[float]:
    """Opening, a spend, ``left``, a release, and verifying, in milliseconds."""
    path = folder / f"{spends}.db"
    spend_many(dpf.Ledger(path, total=total), "clicks", SMALL, spends)
    opening = milliseconds(lambda: dpf.Ledger(path), 5)
    ledger = dpf.Ledger(path)
    walk = dpf.DPFrugal1U(0.5, SMALL, ledger=ledger, dataset="clicks")

    def release() -> None:
        walk.update(1.0)
        walk.release()

    release()
    ledger.left("clicks")  # composes what was spent once for this process
    figures = [
        milliseconds(lambda: ledger.spend("clicks", SMALL), times),
        milliseconds(lambda: ledger.left("clicks"), times),
        milliseconds(release, times),
    ]
    began = time.perf_counter()
    ledger.verify()
    verifying = (time.perf_counter() - began) * 1e3
    path.unlink()
    return [opening, *figures, verifying]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spends", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--times", type=int, default=31)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; default: a temporary one")
    asked = parser.parse_args()
    print(
        "| total | spends | opening | a spend | `left` | a release | `ledger verify` |\n|---|---|---|---|---|---|---|"
    )
    for name, total in TOTALS.items():
        for spends in asked.spends:
            with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
                found = measured(Path(folder), total, spends, asked.times)
            shown = [f"{each:.1f} ms" if each < 1000 else f"{each / 1000:.1f} s" for each in found]
            print(f"| {name} | {spends:,} | {' | '.join(shown)} |", flush=True)
    print(f"python {sys.version.split()[0]}, medians of {asked.times}", file=sys.stderr)


if __name__ == "__main__":
    main()
