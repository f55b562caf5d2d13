"""``dpfrugal demo``: private quantiles of a file in order of time, in all and per endpoint, beside the exact ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import integer, positive

if TYPE_CHECKING:
    from rich.table import Table

QUANTILES = (0.5, 0.9, 0.99)
FEWEST_ROWS, MOST_ROWS = 10_000, 20_000_000
ALL = "all requests"


def demo(
    rows: Annotated[int, typer.Option(help="How many requests are generated.")] = 1_000_000,
    epsilon: Annotated[float, typer.Option(help="ε of pure DP for all that is shown together.")] = 1.0,
    output: Annotated[Path, typer.Option(help="Folder for the file and the picture.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the generated requests; choices cannot be seeded.", min=0)] = 1,
) -> None:
    """Generate a day of requests, and show their private p50, p90 and p99 beside the exact ones, with a picture.

    The file is in order of time, and latencies follow the hour: no order of rows matters to a table.

    Half of ε goes to the quantiles of all requests, half to those of each endpoint.
    """
    from dpfrugal.cli.table.demo_requests import ENDPOINTS, requests
    from dpfrugal.cli.terminal.stderr_notes import note, notes, plain_console
    from dpfrugal.estimators.table.private_quantiles import private_quantiles
    from dpfrugal.estimators.table.quantiles_by import quantiles_by
    from dpfrugal.privacy.guarantees import PureDP

    integer("--rows", rows, FEWEST_ROWS, MOST_ROWS, shown_high=f"{MOST_ROWS:,}")
    half = PureDP(epsilon=positive("--epsilon", epsilon) / 2)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"--output must be a folder that can be written to; {output}: {error.strerror}.") from None
    import pyarrow.csv

    generated = requests(rows, seed)
    file, keys = output / "requests.csv", output / "endpoints.txt"
    pyarrow.csv.write_csv(generated, file)
    keys.write_text("".join(f"{endpoint}\n" for endpoint in ENDPOINTS))
    asked = f"--column ms -q {','.join(f'{q:g}' for q in QUANTILES)} --epsilon {half.epsilon:g}"
    notes.print(f"{file}: {rows:,} requests of one day in order of time. What follows is what these commands show:")
    notes.print(f"  dpfrugal quantile {file} {asked}")
    notes.print(f"  dpfrugal quantile {file} {asked} --by endpoint --keys {keys}")

    release = private_quantiles(file, QUANTILES, half, column="ms")
    together = zip(QUANTILES, release.values, *zip(*release.intervals(), strict=True), release.reasons, strict=True)
    answers = [(ALL, q, None if reason else value, low, high) for q, value, low, high, reason in together]
    table = quantiles_by(file, "ms", QUANTILES, half, by="endpoint", keys=list(ENDPOINTS))
    columns = [table[name].to_pylist() for name in ("key", "quantile", "value", "lower", "upper")]
    answers += list(zip(*columns, strict=True))
    exact = exact_quantiles(generated)
    plain_console().print(shown(answers, exact, epsilon))
    for key, q, reason in zip(columns[0], columns[1], table["reason"].to_pylist(), strict=True):
        if reason:
            note(f"{key}, p{100 * q:g}: {reason}.")
    picture = output / "requests.png"
    try:
        from dpfrugal.cli.table.demo_picture import draw

        draw(generated, answers, exact, epsilon, picture)
    except ImportError:
        notes.print("For the picture, install matplotlib: pip install 'dpfrugal[plot]'.")
    else:
        notes.print(f"Picture: {picture}")


def exact_quantiles(generated: Any) -> dict[tuple[str, float], int]:
    """The number of rank ⌈q·n⌉, for all requests and for each endpoint."""
    import numpy as np

    latencies, endpoints = generated["ms"].to_numpy(), np.array(generated["endpoint"].to_pylist())
    found: dict[tuple[str, float], int] = {}
    for name in (ALL, *np.unique(endpoints).tolist()):
        ordered = np.sort(latencies if name == ALL else latencies[endpoints == name])
        found |= {(name, q): int(ordered[int(np.ceil(q * ordered.size)) - 1]) for q in QUANTILES}
    return found


def shown(
    answers: list[tuple[str, float, Any, Any, Any]], exact: dict[tuple[str, float], int], total: float
) -> "Table":
    """The private values with their intervals beside the exact ones."""
    from rich.table import Table

    from dpfrugal.cli.table.quantile_table import texts

    table = Table(title=f"Latencies in ms; ε={total:g} for the whole table, per row replaced")
    table.add_column("")
    for title in ("quantile", "exact", "private", "95% interval"):
        table.add_column(title, justify="right")
    for name, q, value, low, high in answers:
        if q == QUANTILES[0]:
            table.add_section()
        true = str(exact[name, q]) if (name, q) in exact else "–"
        private, lower, upper = texts(value, low, high)
        cells = [private, f"{lower} to {upper}"] if private else ["too few rows", ""]
        table.add_row(name if q == QUANTILES[0] else "", f"p{100 * q:g}", true, *cells)
    return table
