"""griffe: examples in docstrings are fenced, as a bare ``>>>`` is a quotation in Markdown."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).+)*", re.MULTILINE)


def fenced(docstring: str) -> str:
    """The same text with every example in a fence; examples with nothing but a blank line between them share one."""
    text = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)
    return text.replace("```\n\n```pycon\n", "\n")


class Doctests(griffe.Extension):  # type: ignore[misc]  # griffe is not installed where types are checked
    """Fences the examples of whatever has a docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each module, class, function and attribute that was read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
