"""The ``dpfrugal`` command: numbers to standard output, everything else to standard error.

Bad input ends in one sentence and exit status 2. Commands import heavy modules when they run, so that ``--help`` is
quick.
"""

import io
import os
import re
import signal
import sys
from dataclasses import fields
from typing import Annotated, Any

import typer

from dpfrugal.cli import ledger
from dpfrugal.cli.audit import audit
from dpfrugal.cli.demo import demo
from dpfrugal.cli.describe import describe
from dpfrugal.cli.options import EstimatorOptions, KeyOptions
from dpfrugal.cli.paper import paper
from dpfrugal.cli.plan import plan
from dpfrugal.cli.quantile import quantile
from dpfrugal.cli.serve import serve
from dpfrugal.cli.table.table_options import TableOptions
from dpfrugal.cli.watch import watch
from dpfrugal.cli.watch_options import LineOptions, WindowOptions
from dpfrugal.errors import DPFrugalError
from dpfrugal.version import __version__

BAD_INPUT = 2
UsageError: Any = typer.BadParameter.__base__  # of click, of which typer may carry its own copy
# The library's parameters that are options here, and the option's name if it is another.
KINDS = (EstimatorOptions, KeyOptions, TableOptions, LineOptions, WindowOptions)
SHARED = {field.name for kind in KINDS for field in fields(kind)}
PARAMETERS = SHARED | {"quantile", "column", "columns", "by", "runs", "beta", "sure"}
OPTIONS = {"sure": "confidence", "columns": "column"}

app: typer.Typer = typer.Typer(
    help="Differentially private quantiles: of tables and files, of streams, in all and per key.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(quantile)
app.command()(describe)
app.command()(watch)
app.command()(serve)
app.command()(plan)
app.command()(audit)
app.command()(demo)
app.command()(paper)
app.add_typer(ledger.app, name="ledger")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpfrugal {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, help="Show the version.")] = False,
) -> None:
    """Differentially private quantiles: of tables and files, of streams, in all and per key."""


def in_options(sentence: str) -> str:
    """A sentence of the library with the names of its parameters replaced by those of the options."""
    said = re.sub(r'\b([a-z_]+)="(\w+)"', lambda found: f"--{found[1].replace('_', '-')} {found[2]}", sentence)
    said = said.replace("header=True", "--header")
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ε shows a question mark
    try:
        sys.exit(app(with_by_alone(sys.argv[1:]), prog_name="dpfrugal", standalone_mode=False))
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            sys.exit(BAD_INPUT)
        command = "" if error.ctx is None else f" (see {error.ctx.command_path} --help)"
        said = " ".join(error.format_message().rstrip(".").split()).replace("Value error, ", "")  # pydantic's words
        sys.stderr.write(f"dpfrugal: {said}{command}.\n")
        sys.exit(BAD_INPUT)
    except DPFrugalError as error:
        said = in_options(str(error))
        sys.stderr.write(f"dpfrugal: {' '.join([said, *getattr(error, '__notes__', ())])}\n")
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        # Nobody reads the output any more; without this, the interpreter would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = f"{error.filename} cannot be used" if error.filename else "the output could not be written"
        sys.stderr.write(f"dpfrugal: {what} ({error.strerror}).\n")
        sys.exit(BAD_INPUT)
