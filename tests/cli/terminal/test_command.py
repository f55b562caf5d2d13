"""What all commands share: an option is given once, and help is written for the width of the terminal."""

from typing import Annotated, Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.cli.terminal.command import Command, UsageError, in_paragraphs

taken: list[Any] = []
app = typer.Typer()


@app.command(cls=Command)
def made(
    number: Annotated[int, typer.Option("-n", "--number", help="A number.")] = 0,
    several: Annotated[list[str] | None, typer.Option("--several", help="Some words.")] = None,
    flag: Annotated[bool, typer.Option("--flag/--no-flag", help="A flag.")] = False,
) -> None:
    """The first paragraph is written
    in two lines.

    The second is not.
    """
    taken.append((number, several, flag))


def run(*arguments: str) -> Any:
    taken.clear()
    typer.main.get_command(app).main(list(arguments), standalone_mode=False)
    return taken[-1] if taken else None


def test_command__takes_an_option_once_a_list_and_a_flag_as_often_as_one_likes() -> None:
    assert run("--number", "3", "--several", "a", "--several", "b", "--flag", "--no-flag") == (3, ["a", "b"], False)


@pytest.mark.parametrize("twice", [("-n", "1", "-n", "1"), ("--number", "1", "-n", "2"), ("--number=1", "--number=2")])
def test_command__refuses_an_option_that_is_given_twice(twice: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="--number was given 2 times, and takes one value"):
        run(*twice)
    assert taken == []


def test_help__joins_the_lines_of_a_paragraph_and_shows_no_value_for_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "The first paragraph is written in two lines. The second is not." in shown
    assert "<int>" in shown.lower().replace("integer", "<int>")
    assert "bool" not in shown.lower()


@given(st.lists(st.lists(st.text("abc .", min_size=1).filter(str.strip), min_size=1, max_size=4), max_size=4))
def test_paragraphs__stay_apart_and_have_a_line_each(paragraphs: list[list[str]]) -> None:
    text = "\n\n".join("\n".join(lines) for lines in paragraphs)
    assert in_paragraphs(text).split("\n\n") == ([" ".join(lines) for lines in paragraphs] or [""])
    assert in_paragraphs(in_paragraphs(text)) == in_paragraphs(text)
