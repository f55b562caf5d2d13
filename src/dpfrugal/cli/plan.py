"""``dpfrugal plan``: how much noise each guarantee takes, before anyone touches data."""

import json
from typing import Annotated

import typer

from dpfrugal import parameters
from dpfrugal.cli import options as o


def plan(
    epsilon: Annotated[float, typer.Option(help="The ε to plan for.")],
    delta: Annotated[float, typer.Option(help="The δ of the guarantees that have one.")] = 1e-6,
    rho: Annotated[float | None, typer.Option(help="The ρ of zCDP; default: the one that implies (ε, δ)-DP.")] = None,
    beta: Annotated[float, typer.Option(help="α is the size that noise exceeds with at most this probability.")] = 0.05,
    quantiles: Annotated[int, typer.Option(help="How many quantiles share the guarantee.", min=1)] = 1,
    max_items_per_person: o.MaxItems = 1,
    decimals: Annotated[int, typer.Option(help="The grid: one step is 10^−decimals.")] = 0,
    as_json: o.Json = False,
) -> None:
    """Show how much noise DP-Frugal-1U adds under each kind of guarantee. Reads no data.

    Example: dpfrugal plan --epsilon 1 --beta 0.05 --decimals 3
    """
    from rich.table import Table

    from dpfrugal.cli.terminal.stderr_notes import counted, plain_console
    from dpfrugal.errors import ParameterError
    from dpfrugal.estimators.grid import Grid
    from dpfrugal.estimators.walk.dp_frugal import sensitivity_of
    from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
    from dpfrugal.privacy.zcdp_conversions import rho_for

    items_per_person = parameters.max_items_per_person(max_items_per_person)
    grid, sensitivity = Grid(decimals), sensitivity_of(quantiles, items_per_person)
    approx = ApproxDP(epsilon=epsilon, delta=delta)
    zcdp = ZCDP(rho=rho_for(approx.epsilon, approx.delta) if rho is None else rho)
    rows: list[dict[str, str | float | None]] = []

    def add(name: str, guarantee: Guarantee) -> None:
        rows.append(
            {
                "guarantee": name,
                "parameters": str(guarantee),
                "epsilon_at_delta": guarantee.to_approx(delta).epsilon,
                "noise": guarantee.noise.name,
                "scale_in_steps": guarantee.noise_scale(sensitivity),
                "alpha_in_steps": guarantee.alpha(beta, sensitivity),
                "exact_alpha_in_steps": guarantee.alpha(beta, sensitivity, exact=True),
                "alpha": guarantee.alpha(beta, sensitivity) / grid.scale,
            }
        )

    add("pure, Laplace", PureDP(epsilon=epsilon))
    add("approx., Gaussian", approx)
    try:
        add("approx., classic", ApproxDP(epsilon=epsilon, delta=delta, calibration="classic"))
    except ParameterError:  # the exact check refuses it for this ε and δ, or for this many numbers at once
        rows.append({"guarantee": "approx., classic", "parameters": str(approx)})
    add("zCDP, Gaussian", zcdp)
    if as_json:
        typer.echo(
            json.dumps({"beta": beta, "delta": delta, "decimals": grid.decimals, "rows": rows}, ensure_ascii=False)
        )
        return
    protected = f"{counted(quantiles, 'quantile')}, {counted(items_per_person, 'item')} per person"
    table = Table(
        title=f"DP-Frugal-1U: {protected}, steps of {grid.step:g}, β = {beta:g}",
        caption="α: |noise| reaches it with probability β, by the formula for continuous noise. Exact α: the whole "
        "steps that discrete noise reaches with probability at most β. The walk's own error comes on top.",
    )
    for title in ("guarantee", "parameters"):
        table.add_column(title, no_wrap=True)
    for title in ("scale (steps)", "α (steps)", "exact α (steps)", "α (data)"):
        table.add_column(title, justify="right")
    for row in rows:
        if "noise" not in row:
            table.add_row(str(row["guarantee"]), str(row["parameters"]), "refused", "–", "–", "–")
            continue
        figures = [f"{row[key]:.4g}" for key in ("scale_in_steps", "alpha_in_steps", "exact_alpha_in_steps", "alpha")]
        table.add_row(str(row["guarantee"]), str(row["parameters"]), *figures)
    plain_console().print(table)
