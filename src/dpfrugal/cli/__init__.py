"""The ``dpfrugal`` command: numbers to standard output, everything else to standard error.

Bad input ends in one sentence and exit status 2. Commands import heavy modules when they run, so that ``--help`` is
quick.
"""

import io
import os
import re
import signal
import sys
from contextlib import suppress
from dataclasses import fields
from typing import Annotated, Final

import typer

from dpfrugal.cli import ledger
from dpfrugal.cli.audit import audit
from dpfrugal.cli.demo import demo
from dpfrugal.cli.describe import describe
from dpfrugal.cli.options import EstimatorOptions, KeyOptions
from dpfrugal.cli.overview import OVERVIEW
from dpfrugal.cli.paper import paper
from dpfrugal.cli.plan import plan
from dpfrugal.cli.quantile import quantile
from dpfrugal.cli.serve import serve
from dpfrugal.cli.streams.watch_options import LineOptions, WindowOptions
from dpfrugal.cli.table.table_options import TableOptions
from dpfrugal.cli.terminal.command import Command, Commands, UsageError
from dpfrugal.cli.terminal.output_files import usable_output
from dpfrugal.cli.terminal.usage_errors import sentence
from dpfrugal.cli.watch import watch
from dpfrugal.errors import DPFrugalError, ParameterError
from dpfrugal.outside_text import in_line
from dpfrugal.version import __version__

BAD_INPUT = 2
# The library's parameters that are options here, and the option's name if it is another.
KINDS = (EstimatorOptions, KeyOptions, TableOptions, LineOptions, WindowOptions)
SHARED = {field.name for kind in KINDS for field in fields(kind)}
PARAMETERS = SHARED | {"quantile", "column", "columns", "by", "runs", "beta", "sure"}
OPTIONS = {"sure": "confidence", "columns": "column"}


app: typer.Typer = typer.Typer(
    cls=Commands,
    help="Differentially private quantiles: of tables and files, of streams, in all and per key.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=Command)(quantile)
app.command(cls=Command)(describe)
app.command(cls=Command)(watch)
app.command(cls=Command)(serve)
app.command(cls=Command)(plan)
app.command(cls=Command)(audit)
app.command(cls=Command)(demo)
app.command(cls=Command)(paper)
app.add_typer(ledger.app, name="ledger")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpfrugal {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_show_version, help="Show the version.")] = False,
) -> None:
    """Differentially private quantiles: of tables and files, of streams, in all and per key."""
    if context.invoked_subcommand is None:
        typer.echo(OVERVIEW, nl=False)


# A path has lost a slash of what is none.
ADDRESS: Final = re.compile(r"\b(abfss?|file|ftp|gs|hdfs|https?|s3a?|wasbs?):/(?!/)")


def in_options(said_by_library: str) -> str:
    """A sentence of the library with the names of its parameters replaced by those of the options."""
    said = re.sub(r'\b([a-z_]+)="(\w+)"', lambda found: f"--{found[1].replace('_', '-')} {found[2]}", said_by_library)
    said = ADDRESS.sub(r"\1://", said.replace("header=True", "--header"))
    found = re.match(r"(\w+)(?: and (\w+))? (?=must |is |does )", said)
    names = [name for name in found.groups() if name] if found else []
    if found is None or not PARAMETERS.issuperset(names):
        return said
    options = " and ".join(f"--{OPTIONS.get(name, name.replace('_', '-'))}" for name in names)
    return f"{options} {said[found.end() :]}"


def with_by_alone(arguments: list[str]) -> list[str]:
    """``watch --by`` may stand alone, which typer cannot say of an option: it then has an empty value.

    >>> with_by_alone(["watch", "--by", "--keys", "k.txt"]), with_by_alone(["watch", "--by", "route"])
    (['watch', '--by=', '--keys', 'k.txt'], ['watch', '--by', 'route'])
    """
    if arguments[:1] != ["watch"]:
        return arguments
    following = [*arguments[1:], "-"]
    return [
        "--by=" if each == "--by" and after.startswith("-") else each
        for each, after in zip(arguments, following, strict=True)
    ]


def main() -> None:
    """Run the command line, and report every expected error in one sentence."""
    status = BAD_INPUT
    try:
        _open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # an output without ε shows \u03b5, and keys stay apart
        usable_output()
        status = _run(with_by_alone(sys.argv[1:]))
        sys.stdout.flush()  # here, where an error can still be reported
    except UsageError as error:
        _say(sentence(error, sys.argv[1:]))
    except DPFrugalError as error:
        _say(" ".join([in_options(str(error)), *getattr(error, "__notes__", ())]))
    except (KeyboardInterrupt, typer.Abort):
        status = 128 + signal.SIGINT
    except BrokenPipeError:
        status = 128 + signal.SIGPIPE
        _abandon_output()
    except OSError as error:
        _abandon_output()
        what = f"{error.filename} cannot be used" if error.filename else "the output could not be written"
        _say(f"{what} ({error.strerror}).")
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    """The exit status of a command. Not by typer's own ``main``, which ends a broken pipe with 1, an audit's FAIL."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("dpfrugal", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _say(sentence: str) -> None:
    with suppress(OSError):  # whoever closed standard error wants no sentence
        sys.stderr.write(f"dpfrugal: {in_line(' '.join(sentence.splitlines()))}\n")
        sys.stderr.flush()


def _open_closed_streams() -> None:
    """A process may be started without standard streams: reading from them fails, and nothing is written there."""
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY))  # noqa: SIM115 - for as long as the process runs
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        raise ParameterError("Standard output is closed, so there is nowhere to write: open it, even to /dev/null.")


def _abandon_output() -> None:
    """Nobody reads the output any more; without this, the interpreter would complain when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
