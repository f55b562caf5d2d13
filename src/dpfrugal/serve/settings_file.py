"""A settings file as fields that know their line: errors name the line, the field and what is allowed.

>>> from dpfrugal.serve.settings_file import read_text
>>> read_text("keep: 3 weeks", "serve.yaml").seconds("keep", default=60)
Traceback (most recent call last):
dpfrugal.errors.ParameterError: serve.yaml, line 1: keep must be a time such as 10s, 5m, 1h or 1d; '3 weeks' is not.
"""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from dpfrugal.errors import DPFrugalError, ParameterError

SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES: Final = {"": 1, "k": 1000, "M": 1000**2, "G": 1000**3, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
LARGEST_FILE: Final = 16 << 20
MISSING: Final = object()
T = TypeVar("T")


class Fields:
    """A mapping of the file. Every field that is not asked for before ``end`` is refused."""

    def __init__(self, node: Any, file: str, path: str = "") -> None:
        self.file, self.path, self.line = file, path, node.start_mark.line + 1
        self._node, self._asked = node, dict[str, None]()
        self._values: dict[str, Any] = {}
        if node.tag != "tag:yaml.org,2002:map":
            self.refuse(None, f"must be fields with a colon each, not {_shown(node)}")
        for key, value in node.value:
            name = str(key.value)
            if name in self._values:
                self.refuse(key, f"names {name} twice")
            self._values[name] = (key, value)

    def refuse(self, node: Any, said: str, name: str = "") -> NoReturn:
        """Raise the error that names file, line and field."""
        line = self.line if node is None else node.start_mark.line + 1
        field = self._full(name) or "the file"
        raise ParameterError(f"{self.file}, line {line}: {field} {said}.") from None

    def _full(self, name: str) -> str:
        return ".".join(part for part in (self.path, name) if part)

    def wrong(self, name: str, said: str) -> NoReturn:
        """Refuse the value of a field."""
        self.refuse(self._values[name][0] if name in self._values else None, said, name)

    def _refuse_misspelling(self, names: tuple[str, ...], allowed: str) -> None:
        """Where a field that is needed is missing, the line to look at is that of one with nearly its name."""
        for given, (key, _) in self._values.items():
            if given not in self._asked and get_close_matches(given, names, 1):
                self.refuse(key, f"is no field; {allowed}", given[:80])

    def __contains__(self, name: str) -> bool:
        self._asked[name] = None
        return name in self._values

    def one_of_fields(self, *names: str) -> str:
        """Which one of several fields is given; exactly one must be."""
        given = [name for name in names if name in self]
        if len(given) != 1:
            said = f"must have one of the fields {', '.join(names)}"
            if not given:
                self._refuse_misspelling(names, f"allowed are {', '.join(names)}")
            self.refuse(None, f"{said}, not {' and '.join(given)}" if given else said)
        return given[0]

    def _value(self, name: str, kinds: tuple[str, ...], allowed: str, default: Any) -> Any:
        self._asked[name] = None
        if name not in self._values:
            if default is MISSING:
                self._refuse_misspelling((name,), f"the field {name} is needed, {allowed}")
                self.refuse(None, f"needs the field {name}, {allowed}")
            return default
        node = self._values[name][1]
        if node.tag.removeprefix("tag:yaml.org,2002:") not in kinds:
            self.wrong(name, f"must be {allowed}; {_shown(node)} is not")
        return node.value

    def text(self, name: str, allowed: str = "text", default: Any = MISSING) -> Any:
        """Text; a number is text too, as it stands."""
        value = self._value(name, ("str", "int", "float"), allowed, default)
        if value == "":
            self.wrong(name, f"must be {allowed}; it is empty")
        return value

    def word(self, name: str, words: tuple[str, ...], default: Any = MISSING) -> Any:
        """One of several words."""
        allowed = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
        value = self._value(name, ("str",), allowed, default)
        if value is not default and value not in words:
            self.wrong(name, f"must be {allowed}; {value!r} is not")
        return value

    def truth(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self._value(name, ("bool",), "true or false", default)
        return value if isinstance(value, bool) else value.lower() in ("true", "yes", "on")

    def number(self, name: str, allowed: str = "a number", default: Any = MISSING) -> Any:
        """A number; YAML takes 1e-6 for text, which no one who writes it means."""
        value = self._value(name, ("int", "float", "str"), allowed, default)
        if isinstance(value, str) and not re.fullmatch(r"[-+.\d_eE]+", value):
            self.wrong(name, f"must be {allowed}; {value[:80]!r} is not")
        return self._converted(name, value, float, allowed) if isinstance(value, str) else value

    def integer(self, name: str, low: int, high: int, default: Any = MISSING) -> Any:
        """An integer between two bounds."""
        allowed = f"an integer between {low:,} and {high:,}"
        value = self._value(name, ("int",), allowed, default)
        found = self._converted(name, value, lambda text: int(text.replace("_", "")), allowed)
        if found is not default and not low <= found <= high:
            self.wrong(name, f"must be {allowed}; {found} is not")
        return found

    def seconds(self, name: str, default: Any = MISSING) -> Any:
        """A time as seconds."""
        return self._measured(name, SECONDS, "a time such as 10s, 5m, 1h or 1d", default)

    def size(self, name: str, default: Any = MISSING) -> Any:
        """A number of bytes."""
        value = self._measured(name, BYTES, "a number of bytes such as 8Mi or 1M", default)
        return value if value is default else int(value)

    def _measured(self, name: str, units: dict[str, Any], allowed: str, default: Any) -> Any:
        value = self._value(name, ("str", "int", "float"), allowed, default)
        if value is default:
            return default
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s?([a-zA-Z]*)", value)
        if match is None or match[2] not in units or float(match[1]) <= 0:
            self.wrong(name, f"must be {allowed}; {value!r} is not")
        return float(match[1]) * units[match[2]]

    def texts(self, name: str, allowed: str, default: Any = MISSING) -> Any:
        """One text or a list of them."""
        nodes = self._nodes(name, allowed, default)
        if nodes is default:
            return default
        for node in nodes:
            if not re.search(r":(str|int|float|bool)$", node.tag) or not node.value:
                self.wrong(name, f"must be {allowed}; {_shown(node)} is not")
        return tuple(str(node.value) for node in nodes)

    def numbers(self, name: str, allowed: str) -> tuple[float, ...]:
        """One number or a list of them."""
        return tuple(self._converted(name, node.value, float, allowed) for node in self._nodes(name, allowed, MISSING))

    def _nodes(self, name: str, allowed: str, default: Any) -> Any:
        kinds = ("seq", "str", "int", "float", "bool")
        value = self._value(name, kinds, allowed, default)
        if value is default:
            return default
        return value if isinstance(value, list) else [self._values[name][1]]

    def section(self, name: str, *, needed: bool = False) -> "Fields | None":
        """The fields within a field."""
        if name not in self and not needed:
            return None
        self._value(name, ("map",), "a section with fields of its own", MISSING)
        return Fields(self._values[name][1], self.file, self._full(name))

    def sections(self, name: str) -> Iterator["Fields"]:
        """A list of sections."""
        allowed = "a list of sections, each beginning with a dash"
        nodes = self._value(name, ("seq",), allowed, MISSING)
        if not nodes:
            self.wrong(name, f"must be {allowed}; it is empty")
        for place, node in enumerate(nodes):
            yield Fields(node, self.file, f"{self._full(name)}[{place}]")

    def names(self) -> tuple[str, ...]:
        """All field names: for sections whose fields the user names."""
        self._asked.update(dict.fromkeys(self._values))
        return tuple(self._values)

    def checked(self, name: str, check: Callable[[], T]) -> T:
        """What a check of the library gives; its refusal gets the line and the field."""
        try:
            found = check()
        except DPFrugalError as error:
            self.wrong(name, f"is refused: {str(error).rstrip('.')}")
        return found

    def _converted(self, name: str, value: Any, convert: Callable[[str], Any], allowed: str) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return convert(value)
        except ValueError:
            self.wrong(name, f"must be {allowed}; {value[:80]!r} is not")

    def end(self) -> None:
        """Refuse every field that nothing asked for."""
        for name, (key, _) in self._values.items():
            if name not in self._asked:
                where = f"{self.path} has" if self.path else "there is"
                line = key.start_mark.line + 1
                raise ParameterError(
                    f"{self.file}, line {line}: {where} no field {name[:80]!r}; allowed are {', '.join(self._asked)}."
                )


def _shown(node: Any) -> str:
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind in ("map", "seq"):
        return "a section" if kind == "map" else "a list"
    return "nothing" if kind == "null" else repr(node.value[:80])


def file_of(given: Fields, name: str, folder: Path) -> Path:
    """A file that is there; a relative path is relative to the folder."""
    path: Path = folder / given.text(name, "the path of a file")
    if not path.is_file():
        given.wrong(name, f"must be the path of a file; {str(path)!r} is none")
    return path


def lines_of(given: Fields, name: str, folder: Path) -> tuple[str, ...]:
    """The lines of a file of text that are not empty."""
    path = file_of(given, name, folder)
    try:
        return tuple(line for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError):
        given.wrong(name, f"must be a file of text in UTF-8 that can be read; {str(path)!r} is not")


def read_text(text: str, file: str) -> Fields:
    """The fields of a text in YAML."""
    import yaml

    said = ""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        said = f"{file}{where}: this is no YAML ({getattr(error, 'problem', None) or 'it cannot be read'})."
    except RecursionError:
        said = f"{file}: sections lie in each other too deeply."
    if said:
        raise ParameterError(said)
    if node is None:
        raise ParameterError(f"{file}: the file is empty; it needs metrics, as docs/serve.md shows.")
    return Fields(node, file)


def read_file(path: Path) -> Fields:
    """The fields of a file."""
    try:
        with path.open("rb") as opened:
            data = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ParameterError(f"{path} cannot be read ({error.strerror}).") from None
    if len(data) > LARGEST_FILE:
        raise ParameterError(f"{path} is larger than {LARGEST_FILE >> 20} MiB; keys may be in a file of their own.")
    try:
        return read_text(data.decode("utf-8"), str(path))
    except UnicodeDecodeError:
        pass
    raise ParameterError(f"{path} is no text in UTF-8.")
