"""``dpfrugal serve``: private percentiles of metrics as a service."""

from pathlib import Path
from typing import Annotated

import typer

from dpfrugal.errors import ParameterError


def serve(
    settings: Annotated[Path | None, typer.Argument(help="The settings file (YAML).", show_default=False)] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the settings, and serve nothing.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Serve made-up traffic of ten endpoints instead.")] = False,
    port: Annotated[
        int | None, typer.Option(help="With --demo: the port; the operator's figures are on the next one.", max=65534)
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print a settings file to begin with.")] = False,
    grafana: Annotated[bool, typer.Option("--grafana", help="Print a Grafana dashboard for the settings.")] = False,
) -> None:
    """Take metrics over OTLP, StatsD and JSON lines, and show private percentiles of every window.

    Prometheus reads them at /metrics, people at / (a page), programs at /api/v1/releases.

    Example: dpfrugal serve --demo --port 4318
    """
    _need_packages()
    from dpfrugal.serve.settings_reading import EXAMPLE, read_settings

    if example:
        typer.echo(EXAMPLE, nl=False)
        return
    if demo:
        if settings is not None:
            raise ParameterError("--demo takes no settings file: it has settings of its own.")
        _demo(4318 if port is None else port)
        return
    if port is not None:
        raise ParameterError("--port is for --demo; a settings file has listen: 127.0.0.1:4318.")
    if settings is None:
        raise ParameterError("A settings file is needed, or --demo; --example prints one to begin with.")
    found = read_settings(settings)
    if grafana:
        from dpfrugal.serve.grafana import dashboard

        typer.echo(dashboard(found))
        return
    if check:
        for metric in found.metrics:
            windows = f"{metric.windows_per_day:,} windows a day"
            typer.echo(
                f"{metric.base_name}: {metric.cost} per window of {metric.window:g} s, {windows} within {metric.total}"
            )
        typer.echo(f"{settings}: all is well.")
        return
    from dpfrugal.serve.program import run

    run(found, settings)


def _demo(port: int) -> None:
    import tempfile

    from dpfrugal.serve.demo import demo_settings, send_traffic
    from dpfrugal.serve.program import run

    with tempfile.TemporaryDirectory(prefix="dpfrugal-demo-") as folder:
        run(demo_settings(port, Path(folder)), background=send_traffic)


def _need_packages() -> None:
    import importlib.util

    needed = ("starlette", "uvicorn", "opentelemetry.proto", "prometheus_client", "msgspec", "yaml")
    for name in needed:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            raise ParameterError(f"serve needs the package {name}: pip install 'dpfrugal[serve]'.")
