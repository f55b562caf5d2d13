"""What all commands share: help that is easy to read, and options that are given once."""

import re
from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

UsageError: Any = typer.BadParameter.__base__  # of click, of which typer may carry its own copy


class ReadableHelp:
    """Paragraphs of help are as wide as the terminal, and a flag is not said to take a value."""

    help: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Join the lines of each paragraph, then as always."""
        self.help = in_paragraphs(self.help or "")
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; those that take no value show none."""
        parameters = list(super().get_params(ctx))  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(ReadableHelp, TyperCommand):
    """A command that refuses an option given twice, instead of taking the last one silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options, then parse as always."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(given).items():
            takes_one = option.param_type_name == "option" and not (
                option.multiple or getattr(option, "is_flag", False)
            )
            if takes_one and times > 1:
                raise UsageError(f"{option.opts[-1]} was given {times} times, and takes one value", ctx=ctx)
        return super().parse_args(ctx, args)


class Commands(ReadableHelp, TyperGroup):
    """A command with commands of its own."""


def in_paragraphs(text: str) -> str:
    r"""A text with a line per paragraph, whatever the width at which it was written.

    >>> in_paragraphs("Two lines\nof one.\n\nAnother.")
    'Two lines of one.\n\nAnother.'
    """
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)
