"""Usage errors: one sentence each, which names the option, the rule and what was given."""

import pytest

from dpfrugal.cli.overview import OVERVIEW
from tests.support.command_line import run_here

BY_HELP = "; see dpfrugal quantile --help.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("quantile", "FILE is missing" + BY_HELP),
        ("quantile x.csv -q 0.5 --epsilon abc", "--epsilon must be a number; 'abc' is not" + BY_HELP),
        ("quantile x.csv -q 0.5 --epsilon=abc", "--epsilon must be a number; 'abc' is not" + BY_HELP),
        ("quantile x.csv -q 0.5 --epsilom 1", "There is no option --epsilom; did you mean --epsilon" + BY_HELP),
        (
            "quantile x.csv -q 0.5 --algorithm foo",
            "--algorithm must be one of table, private-quantile, dp-frugal-1u; 'foo' is not" + BY_HELP,
        ),
        ("quantil x", "There is no command quantil; did you mean quantile; see dpfrugal --help.\n"),
        ("ledger shw", "There is no command shw; did you mean show; see dpfrugal ledger --help.\n"),
        ("zzz", "There is no command zzz; see dpfrugal --help.\n"),
        ("demo x y", "There are too many arguments, from 'x' on; see dpfrugal demo --help.\n"),
        (
            "plan --epsilonn 1",
            "There is no option --epsilonn; did you mean --epsilon; see dpfrugal plan --help.\n",
        ),
        ("watch -q 0.5 --epsilon 1", "--every is missing; see dpfrugal watch --help.\n"),
        ("quantile x.csv -q", "-q needs a value; see dpfrugal --help.\n"),
        ("demo --seed -1", "--seed must be greater than or equal to 0; '-1' is not; see dpfrugal demo --help.\n"),
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
