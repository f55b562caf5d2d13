"""Usage errors: one sentence each, which names the option, the rule and what was given."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from dpfrugal.cli import app
from dpfrugal.cli.overview import OVERVIEW
from tests.support.command_line import run_here

BY_HELP = "; see dpfrugal quantile --help.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("quantile", "FILE is missing" + BY_HELP),
        ("quantile x.csv -q 0.5 --epsilon abc", "--epsilon must be a number; 'abc' is not" + BY_HELP),
        ("quantile x.csv -q 0.5 --epsilon=abc", "--epsilon must be a number; 'abc' is not" + BY_HELP),
        ("quantile x.csv -q 0.5 --epsilom 1", "There is no option --epsilom (did you mean --epsilon?)" + BY_HELP),
        (
            "quantile x.csv -q 0.5 --algorithm foo",
            "--algorithm must be one of table, private-quantile, dp-frugal-1u; 'foo' is not" + BY_HELP,
        ),
        ("quantil x", "There is no command quantil (did you mean quantile?); see dpfrugal --help.\n"),
        ("ledger shw", "There is no command shw (did you mean show?); see dpfrugal ledger --help.\n"),
        ("ledger", "A command is needed: show, history, verify, kept or add; see dpfrugal ledger --help.\n"),
        ("ledger add x.db d --epsilon", "--epsilon needs a value; see dpfrugal ledger add --help.\n"),
        ("zzz", "There is no command zzz; see dpfrugal --help.\n"),
        ("demo x y", "There are too many arguments, from 'x' on; see dpfrugal demo --help.\n"),
        (
            "plan --epsilonn 1",
            "There is no option --epsilonn (did you mean --epsilon?); see dpfrugal plan --help.\n",
        ),
        ("watch -q 0.5 --epsilon 1", "--every is missing; see dpfrugal watch --help.\n"),
        ("quantile x.csv -q", "-q needs a value" + BY_HELP),
        ("demo --seed -1", "--seed must be at least 0; '-1' is not; see dpfrugal demo --help.\n"),
        ("audit --runs 1.5", "--runs must be a whole number; '1.5' is not; see dpfrugal audit --help.\n"),
        (
            "watch -q x --epsilon 1 --every 10",
            "--quantile must be a number such as 0.9, or several such as 0.5,0.9; 'x' is not; "
            "see dpfrugal watch --help.\n",
        ),
    ],
)
def test_usage_error__is_one_sentence(arguments: str, said: str) -> None:
    done = run_here(*arguments.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"dpfrugal: {said}")


def test_overview__is_shown_without_arguments_and_names_commands_that_there_are() -> None:
    done = run_here()
    assert (done.returncode, done.stdout, done.stderr) == (0, OVERVIEW, "")
    commands = {words.split()[0].strip('"') for words in OVERVIEW.split("dpfrugal ")[1:] if words[0].islower()}
    assert commands >= {"quantile", "describe", "watch", "serve", "ledger", "paper", "demo"}
    listed = run_here("--help").stdout
    assert all(f" {command} " in listed for command in commands)


def commands_of(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its path, the groups' own too."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands_of(command, (*path, name))


def test_help__shows_every_option_whole_at_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for path, command in commands_of(typer.main.get_command(app)):
        shown = run_here(*path, "--help").stdout
        names = [name for option in command.params if not getattr(option, "hidden", False) for name in option.opts]
        cut = [name for name in names if name.startswith("--") and not re.search(rf"{name}(?= )", shown)]
        assert not cut, f"the help of {path} cuts {cut} short"
        assert "<bool>" not in shown, f"a flag of {path} seems to take a value"
        assert max(map(len, shown.splitlines())) <= 80
