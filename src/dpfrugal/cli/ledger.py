"""``dpfrugal ledger``: the total of each dataset, and what was spent of it, when and by what."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfrugal.budget.exhaustion import outlook
from dpfrugal.budget.spend_facts import compact, printable
from dpfrugal.cli import options as o
from dpfrugal.cli.terminal.command import Command, Commands
from dpfrugal.errors import ParameterError
from dpfrugal.outside_text import in_json, in_line
from dpfrugal.parameters import Neighbours

if TYPE_CHECKING:
    from dpfrugal.budget.promises import Dataset, Spend

app: typer.Typer = typer.Typer(
    cls=Commands,
    help="Privacy budgets in a file: the total of each dataset, and what was spent of it.",
)
File = Annotated[Path, typer.Argument(help="The ledger: a SQLite file.")]
Name = Annotated[str | None, typer.Argument(help="Show only this dataset.")]
BAR, SHARE = 10, "share spent"


@app.command(cls=Command)
def show(
    file: File,
    dataset: Name = None,
    delta: Annotated[float, typer.Option(help="Convert what was spent to (ε, δ)-DP at this δ.")] = 1e-6,
    as_json: o.Json = False,
) -> None:
    """Show what was spent and what is left of each total; also what was spent as (ε, δ)-DP at --delta.

    Example: dpfrugal ledger show budget.db
    """
    from rich.table import Table
    from rich.text import Text

    from dpfrugal.cli.terminal.stderr_notes import plain_console

    found = _datasets(file, dataset)
    if as_json:
        typer.echo(in_json({"datasets": [_standing(one, delta) for one in found]}))
        return
    table = Table(title=Text(f"{printable(file.name)}: spent and left, each in the unit of its total"))
    for title in ("dataset", "total", SHARE, "spent", "left", f"ε at δ={delta:g}"):
        table.add_column(title, overflow="fold", no_wrap=title == SHARE)
    for one in found:
        stated, unit = _stated(one, delta), one.total.symbol
        as_epsilon = "more δ" if stated is None else f"{stated.epsilon:.4g}"
        spent = f"{unit}={one.used:.4g}"
        cells = one.name, one.promise, _bar(one.share), spent, str(one.left or "nothing"), as_epsilon
        table.add_row(*map(_cell, cells))
    console = plain_console()
    console.print(table)
    for one in found:
        if coming := outlook(one):
            until = coming.until.strftime("%Y-%m-%d %H:%M UTC")
            said = f"{coming.more:,} more like {coming.spend} fit, at this pace until {until}."
            console.print(Text(f"{printable(one.name)}: {said if coming.more else 'exhausted for the next one.'}"))


@app.command(cls=Command)
def history(file: File, dataset: Name = None, as_json: o.Json = False) -> None:
    """List every spend: when, on which dataset, by what, what was asked, and how often noise was drawn under it.

    Example: dpfrugal ledger history budget.db clicks-2026-11
    """
    from rich.table import Table
    from rich.text import Text

    from dpfrugal.cli.terminal.stderr_notes import plain_console

    spends = sorted((spend for one in _datasets(file, dataset) for spend in one.spends), key=lambda spend: spend.when)
    if as_json:
        typer.echo(in_json({"spends": [_entry(spend) for spend in spends]}))
        return
    table = Table(title=Text(f"{printable(file.name)}: spends"))
    for title in ("when (UTC)", "dataset", "guarantee", "by, and what was asked", "rule"):
        table.add_column(title, overflow="fold")
    table.add_column("noise\ndraws", justify="right")
    for spend in spends:
        when = spend.when.strftime("%Y-%m-%d\n%H:%M:%S")
        draws = str(spend.generation) if spend.generation else "–"
        asked = "\n".join(part for part in (spend.by, compact(spend.asked)) if part)
        cells = when, spend.dataset, f"{spend.guarantee} per {spend.unit}", asked, spend.rule, draws
        table.add_row(*map(_cell, cells))
    plain_console().print(table)


@app.command(cls=Command)
def verify(file: File, as_json: o.Json = False) -> None:
    """Check every row of the history against its seal, its neighbours and the totals by which spends are decided.

    Others may spend meanwhile. A ledger that is damaged ends with exit status 2.

    Example: dpfrugal ledger verify budget.db
    """
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.cli.terminal.stderr_notes import counted

    found = Ledger(file).verify()
    if as_json:
        typer.echo(in_json(asdict(found)))
    else:
        typer.echo(
            f"{printable(file.name)}: {counted(found.spends, 'spend')} on {counted(found.datasets, 'dataset')}, every "
            "row as it was written"
        )


@app.command(cls=Command)
def kept(file: File, dataset: Name = None) -> None:
    """Print releases that were paid for and could not be written, as on a full disk: JSON, the oldest first.

    Example: dpfrugal ledger kept budget.db clicks-2026-11
    """
    from dpfrugal.budget.ledger import Ledger

    for release in Ledger(file).kept(dataset):
        typer.echo(release)


@app.command(cls=Command)
def add(
    file: File,
    dataset: Annotated[str, typer.Argument(help="The dataset's name.")],
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    max_items_per_person: o.MaxItems = 1,
    neighbours: Annotated[
        Neighbours | None,
        typer.Option(help="Protect an item that is replaced (the default), or one that is added or removed."),
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Allow guarantees to be chosen after looking at earlier releases.")
    ] = False,
    change: Annotated[bool, typer.Option("--change", help="Change the total of an existing dataset.")] = False,
    spent_by: Annotated[
        str | None, typer.Option("--spent-by", help="Record a spend that was made outside dpfrugal, by this name.")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Add a dataset with its total or, with --spent-by, a spend that was made outside dpfrugal.

    Example: dpfrugal ledger add budget.db clicks-2026-11 --epsilon 3
    """
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.cli.terminal.stderr_notes import notes

    guarantee = o.guarantee_from(epsilon, delta, rho)
    if spent_by is not None:
        if change or adaptive:
            raise ParameterError("--spent-by records a spend; --change and --adaptive are for totals.")
        ledger = Ledger(file)
        ledger.spend(
            dataset,
            guarantee,
            by=spent_by,
            max_items_per_person=max_items_per_person,
            neighbours=neighbours or "replace",
        )
    elif change:
        if adaptive or max_items_per_person != 1 or neighbours is not None:
            raise ParameterError(
                "--change changes a total only; leave out --adaptive, --max-items-per-person and --neighbours."
            )
        ledger = Ledger(file)
        ledger.change_total(dataset, guarantee)
    else:
        ledger = Ledger(file, total=guarantee)
        ledger.open(
            dataset,
            guarantee,
            max_items_per_person=max_items_per_person,
            adaptive=adaptive,
            neighbours=neighbours or "replace",
        )
    standing = ledger.dataset(dataset)
    if as_json:
        typer.echo(in_json(_standing(standing, 1e-6)))
    else:
        notes.print(f"{in_line(dataset)}: {standing.promise}; left: {standing.left or 'nothing'}")


def _datasets(file: Path, dataset: str | None) -> "tuple[Dataset, ...]":
    from dpfrugal.budget.ledger import Ledger

    ledger = Ledger(file)
    return ledger.datasets() if dataset is None else (ledger.dataset(dataset),)


def _cell(text: str) -> Any:
    """Text from outside without markup, in the lines that it has."""
    from rich.text import Text

    return Text("\n".join(map(in_line, text.split("\n"))))


def _bar(share: float) -> str:
    filled = min(BAR, round(share * BAR)) if share else 0
    filled = max(filled, 1) if share else 0
    return f"{'█' * filled}{'░' * (BAR - filled)} {share:4.0%}"


def _stated(dataset: "Dataset", delta: float) -> Any:
    try:
        return dataset.spent(delta)
    except ParameterError:
        if not 0 < delta < 1:
            raise
        return None


def _standing(dataset: "Dataset", delta: float) -> dict[str, Any]:
    stated, coming = _stated(dataset, delta), outlook(dataset)
    return {
        "dataset": dataset.name,
        "total": dataset.total.to_record(),
        "max_items_per_person": dataset.max_items_per_person,
        "neighbours": dataset.neighbours,
        "adaptive": dataset.adaptive,
        "opened": dataset.opened.isoformat(),
        "spends": dataset.tally.size,
        "share": dataset.share,
        "used": dataset.used,
        "spent": None if stated is None else {"epsilon": stated.epsilon, "delta": delta, "rule": stated.rule},
        "left": None if dataset.left is None else dataset.left.to_record(),
        "outlook": None if coming is None else {"more": coming.more, "until": coming.until.isoformat()},
    }


def _entry(spend: "Spend") -> dict[str, Any]:
    return {
        "when": spend.when.isoformat(),
        "dataset": spend.dataset,
        "guarantee": spend.guarantee.to_record(),
        "rho": spend.rho,
        "exposure": None if spend.exposure is None else asdict(spend.exposure),
        "by": spend.by,
        "rule": spend.rule,
        "max_items_per_person": spend.max_items_per_person,
        "neighbours": spend.neighbours,
        "asked": spend.asked | {"neighbours": spend.neighbours, "unit": spend.unit},
        "generation": spend.generation,
    }
