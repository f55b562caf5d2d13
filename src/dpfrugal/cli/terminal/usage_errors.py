"""Usage errors of Typer as one sentence each: the option, the rule, what was given, and where help is.

Typer carries a copy of click, whose classes have no public name; they are told apart by the names that they have had
since click 7. What is not known here keeps its own words.
"""

import difflib
import itertools
import re
from typing import Any, Final

WANTED: Final = {
    "valid number": "a number",
    "valid integer": "a whole number",
    "valid float": "a number",
    "valid int": "a whole number",
    "valid path": "a path",
}


def sentence(error: Any, arguments: list[str]) -> str:
    """The sentence for an error of a command with these arguments."""
    return f"{_said(error, arguments)}; see {_command(error, arguments)} --help."


def _command(error: Any, arguments: list[str]) -> str:
    """The command that was meant: that of the error, or the words before the first option."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    words = list(itertools.takewhile(str.isalpha, arguments))
    return " ".join(["dpfrugal", *words[: 2 if words[:1] == ["ledger"] else 1]])


def _said(error: Any, arguments: list[str]) -> str:
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    message = " ".join(error.format_message().rstrip(".").split())
    if message == "Missing command":
        *others, last = error.ctx.command.commands
        return f"A command is needed: {', '.join(others)} or {last}"
    if kind == "NoSuchOption":
        return f"There is no option {error.option_name}{_meant(error.option_name, error.possibilities or [])}"
    if found := re.match(r"No such command '?([^'.]*)'?\.?(?: Did you mean (.*)\?)?", message):
        meant = re.findall(r"'([^']+)'", found[2] or "")
        return f"There is no command {found[1]}{_meant(found[1], meant)}"
    if found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        return f"There are too many arguments, from {found[1].split()[0]!r} on"
    if kind == "BadOptionUsage" and "requires" in message:
        return f"{error.option_name} needs a value"
    if parameter is None:
        return message
    name = _name(parameter)
    if kind == "MissingParameter":
        return f"{name} is missing"
    if kind != "BadParameter":
        return message
    given = _given(parameter, arguments)
    not_so = "" if given is None else f"; {given!r} is not"
    rule = error.message.rstrip(".").replace("Value error, ", "")  # in the words of pydantic, which checks for Typer
    if rule.startswith("--"):
        return str(rule)
    if found := re.match(r"('.*') is not one of (.*)", rule):
        choices = found[2].replace("'", "")
        return f"{name} must be one of {choices}; {found[1]} is not"
    for words, wanted in WANTED.items():
        if words in rule:
            return f"{name} must be {wanted}{not_so}"
    if found := re.match(r"Input should be (.*)", rule):
        bound = found[1].replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
        return f"{name} must be {bound}{not_so}"
    return f"{name}: {rule}"


def _name(parameter: Any) -> str:
    """An option by its longest name, an argument by what help calls it."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))


def _given(parameter: Any, arguments: list[str]) -> str | None:
    """What was given for an option, where it can be found among the arguments."""
    for place, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option in parameter.opts:
            return value if equals else next(iter(arguments[place + 1 :]), None)
    return None


def _meant(given: str, possibilities: list[str]) -> str:
    """The name that is spelled most like it."""
    nearest = difflib.get_close_matches(given, possibilities, n=1, cutoff=0.0)
    return f" (did you mean {nearest[0]}?)" if nearest else ""
