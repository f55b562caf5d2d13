"""The library beside numpy and its peers: items per second, memory, privacy and error, in one run.

Every repetition runs each contender once, in turn, one at a time, on the same array, so that a slow minute of the
machine falls on all of them. A ratio is taken inside a repetition; the table shows the median over repetitions.

    python -m benchmarks.compare                    # the whole table, three to five minutes on two cores
    python -m benchmarks.compare --items 1000000    # a quick look
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean, median, quantiles

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import chart, machine, peers, targets
from benchmarks.contenders import BATCH, NUMPY, OURS, Absent, Contender
from benchmarks.datasets import FAR, LAWS, Dataset, dataset

RESULTS = Path(__file__).parent / "results"
WARM_UP_ITEMS = 2_000_000  # enough for the compiler to be loaded


@dataclass
class Row:
    """What one contender did on one dataset."""

    dataset: str
    order: str
    contender: str
    items: int
    private: bool
    needs: str
    seconds: list[float] = field(default_factory=list)
    rank_errors: list[float] = field(default_factory=list)
    state_bytes: int = 0
    failure: str = ""

    @property
    def rates(self) -> list[float]:
        """Items per second, one for each repetition."""
        return [self.items / seconds for seconds in self.seconds]

    def ratio(self, other: "Row") -> float:
        """How many times as fast as ``other``, in the median over the repetitions that both ran in."""
        return median(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=False))

    @property
    def spread(self) -> float:
        """The interquartile range of the rate, as a share of its median."""
        if len(self.seconds) < 2:
            return 0.0
        low, middle, high = quantiles(self.rates, n=4, method="inclusive")
        return (high - low) / middle


def runnable(contenders: list[Contender]) -> tuple[list[Contender], list[Absent]]:
    """Run each once on a few items: compiles what needs it, and finds those that cannot run."""
    sample = dataset(LAWS[0], WARM_UP_ITEMS)
    fit, absent = [], []
    for contender in contenders:
        try:
            contender.prepare(sample)()
        except Exception as error:  # a peer's failure is a row of the table; our own must stop the run
            if contender in OURS + NUMPY:
                raise
            absent.append(Absent(contender.name, reason(error)))
        else:
            fit.append(contender)
    return fit, absent


def reason(error: Exception) -> str:
    """One line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:160]


def measure(data: Dataset, contenders: list[Contender], repetitions: int) -> list[Row]:
    """One row for each contender."""
    rows = []
    runs = []
    for contender in contenders:
        items = min(data.items.size, data.thinned(contender.most_items).size)
        rows.append(
            Row(data.law.name, data.order, contender.name, items, contender.private, contender.needs),
        )
        runs.append(contender.prepare(data))
    _ = data.ascending  # sorted now, not between two repetitions
    for repetition in range(repetitions):
        # Nobody always runs after the same neighbour: each repetition starts one contender later.
        for i in np.roll(np.arange(len(runs)), -repetition):
            if rows[i].failure or repetition >= contenders[i].most_repetitions:
                continue
            started = time.perf_counter()
            try:
                answer = runs[i]()
            except Exception as error:  # the same: some peers cannot cope with some data
                if contenders[i] in OURS + NUMPY:
                    raise
                rows[i].failure = reason(error)
                continue
            rows[i].seconds.append(time.perf_counter() - started)
            rows[i].state_bytes = answer.state()
            if answer.estimate is not None:
                rows[i].rank_errors.append(data.rank_error(answer.estimate))
    return rows


def amount(number: float) -> str:
    """Three digits and a unit: 1.83 G, 27.1 M, 412 k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


HEADER = ("contender", "items", "items/s", "spread", "× dpfrugal", "state", "private", "needs", "rank error")


def cells(row: Row, reference: Row) -> tuple[str, ...]:
    """A row as text, in the order of ``HEADER``."""
    return (
        row.contender,
        amount(row.items),
        amount(median(row.rates)),
        f"{row.spread:.0%}",
        f"{row.ratio(reference):.3g}",
        f"{amount(row.state_bytes)}B",
        "yes" if row.private else "no",
        row.needs,
        f"{mean(row.rank_errors):.5f}" if row.rank_errors else "",
    )


def show(console: Console, rows: list[Row], absent: list[Absent]) -> None:
    """One dataset's table."""
    reference = next(row for row in rows if row.contender == BATCH)
    failed = [Absent(row.contender, f"failed: {row.failure}") for row in rows if row.failure]
    table = Table(*HEADER, title=f"{rows[0].dataset}, {rows[0].order}", title_justify="left")
    for column in (1, 2, 3, 4, 5, 8):
        table.columns[column].justify = "right"
    for row in rows:
        if not row.failure:
            table.add_row(*cells(row, reference))
    console.print(table)
    for peer in [*failed, *absent]:  # below the table, where there is room for the reason
        console.print(f"  {peer.name}: {peer.reason}", style="yellow", markup=False)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000_000, help="items in each array")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for compare.json and compare.png")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and keep the figures."""
    chosen, console, started = options(), Console(width=150), time.perf_counter()
    console.print(f"{machine.sentence()}; {chosen.items:,} items, {chosen.repetitions} repetitions, q = 0.99, ε = 1")
    present, absent = peers.contenders()
    contenders, unfit = runnable([*OURS, *NUMPY, *present])
    absent += unfit
    rows: list[Row] = []
    for law in LAWS:
        drawn = dataset(law, chosen.items)
        for data in (drawn, drawn.sorted):
            found = measure(data, contenders, chosen.repetitions)
            show(console, found, absent)
            rows += found
    far = measure(dataset(FAR, chosen.items), [OURS[0], NUMPY[0]], chosen.repetitions)
    show(console, far, [])
    rows += far
    reached = targets.reached(rows)
    targets.show(console, reached)
    chosen.output.mkdir(parents=True, exist_ok=True)
    record = {
        "machine": machine.described(),
        "settings": {"items": chosen.items, "repetitions": chosen.repetitions, "quantile": 0.99, "epsilon": 1.0},
        "absent": [asdict(peer) for peer in absent],
        "rows": [asdict(row) for row in rows],
        "targets": [asdict(target) | {"passes": target.passes} for target in reached],
        "seconds": round(time.perf_counter() - started),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (chosen.output / "compare.json").write_text(text + "\n", encoding="utf-8")
    chart.draw(rows, machine.sentence(), chosen.output / "compare.png")
    console.print(f"{record['seconds']} s; compare.json and compare.png are in {chosen.output.name}/")


if __name__ == "__main__":
    main()
