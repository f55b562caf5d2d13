"""The kept results as Markdown, for README.md: ``python -m benchmarks.report``, with ``--write`` into it."""

import json
import sys
import textwrap
from pathlib import Path

from rich.console import Console

from benchmarks import keyed, targets
from benchmarks.compare import HEADER, RESULTS, Row, cells
from benchmarks.contenders import BATCH

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- results: python -m benchmarks.report --write -->", "<!-- end of results -->"


def wrapped(text: str) -> str:
    """A paragraph or an entry of a list, in lines as the other documents have them."""
    return textwrap.fill(text, 118, subsequent_indent="  " if text.startswith("- ") else "", break_on_hyphens=False)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def rest(target: targets.Target) -> tuple[str, str]:
    """What follows the deciding ratio: the verdict, and the ratio on the sorted array."""
    return targets.verdict(target), targets.figure(target.ordered)


def compared(record: dict) -> str:
    """One table per shuffled dataset, then the targets."""
    rows = [Row(**row) for row in record["rows"]]
    parts = []
    for name in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == name and row.order == "shuffled"]
        reference = next(row for row in here if row.contender == BATCH)
        measured = [cells(row, reference) for row in here if not row.failure]
        failed = "".join(f"\n{row.contender} failed: {row.failure}\n" for row in here if row.failure)
        parts.append(f"### {name}, shuffled\n{table(HEADER, measured)}{failed}")
    parts.extend(f"{peer['name']} was not run: {peer['reason']}\n" for peer in record["absent"])
    reached = [
        (t.contender, t.against, t.dataset, f"{t.at_least:g}", targets.figure(t.shuffled), *rest(t))
        for t in targets.reached(rows)
    ]
    header = ("ratio of", "to", "dataset", "at least", "shuffled", "", "sorted")
    return "\n".join(parts) + f"\n### Targets\n{table(header, reached)}"


def started(record: dict) -> str:
    """Start-up and single items."""
    rows = [
        (f["name"], f"{f['value']:.3g} {f['unit']}", "" if f["target"] is None else f"< {f['target']:g}", f["verdict"])
        for f in record["figures"]
    ]
    return f"### Start-up and single items\n{table(('what', 'median', 'target', ''), rows)}"


def streamed(record: dict) -> str:
    """The Parquet file."""
    rows, notes = [], []
    for column in record["columns"]:
        for process in column["processes"]:
            seconds = sorted(process["seconds"])[len(process["seconds"]) // 2]
            rows.append((column["column"], process["name"], f"{seconds:.2f}", f"{max(process['megabytes']):.0f}"))
        spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in column["parts"].items())
        ratio, verdict = column["reached"]["ratio"], "PASS" if column["reached"]["passes"] else "miss"
        notes.append(wrapped(f"- {column['column']}: {ratio:.2f} times the same batches summed ({verdict}). {spent}."))
    title = f"### A Parquet file of {record['rows']:,} rows\n"
    return title + table(("column", "process", "seconds", "peak MB"), rows) + "\n" + "\n".join(notes) + "\n"


def by_key(record: dict) -> str:
    """A quantile per key: one table per set of keys."""
    rows, count = [keyed.Row(**row) for row in record["rows"]], record["settings"]["rows"]
    parts = []
    for keys, law in dict.fromkeys((row.keys, row.law) for row in rows):
        here = [row for row in rows if (row.keys, row.law) == (keys, law)]
        lines = [keyed.cells(row, count, here[0]) for row in here]
        parts.append(f"### {keys:,} keys, {law}, {count:,} rows\n{table(keyed.HEADER, lines)}")
    return "\n".join(parts)


def main() -> None:
    """Print the tables, or put them between the marks in README.md."""
    kept = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json")}
    here = kept["compare"]["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in here["versions"].items())
    text = wrapped(f"`make bench` on {here['processor']}, {here['cores']} cores; Python {here['python']}, {versions}.")
    text += "\n\n" + "\n".join(
        [compared(kept["compare"]), started(kept["startup"]), streamed(kept["parquet"]), by_key(kept["keyed"])]
    )
    if "--write" not in sys.argv:
        Console(soft_wrap=True).print(text, markup=False, highlight=False)
        return
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n{text}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
