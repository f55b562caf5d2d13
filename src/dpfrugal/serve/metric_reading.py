"""A metric from its section of the settings file: where its values come from, and what is promised."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from dpfrugal import parameters
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dpfrugal.serve import settings as s
from dpfrugal.serve.settings_file import Fields, lines_of

RESERVED_LABELS: Final = ("quantile", "le", "job", "instance")


def metric_of(given: Fields, folder: Path) -> s.Metric:
    """A metric of its section; paths in it are relative to the folder."""
    name = given.text("name", "a name of letters, digits and underscores")
    if not s.NAME.fullmatch(name) or len(name) > 100 or name.startswith("dpfrugal_"):
        given.wrong(
            "name", f"must be letters, digits and underscores, and not begin with dpfrugal_; {name[:80]!r} is not"
        )
    unit = given.word("unit", s.base_unit_names())
    source = _source(given)
    if source.signal == "spans" and source.what is None and unit != "seconds":
        given.wrong("unit", f"must be seconds: that is what durations of spans are measured in; {unit!r} is not")
    keys, person = _keys(given, folder), _person(given)
    window = given.seconds("window")
    if window < 1 or s.DAY % window:
        given.wrong(
            "window", "must be whole parts of a day from 1s to 1d, such as 10s, 1m or 1h, which end on the clock"
        )
    allowed = "numbers strictly between 0 and 1"
    quantiles = given.numbers("quantiles", allowed)
    quantiles = given.checked("quantiles", lambda: parameters.quantiles(quantiles))
    guarantee = _guarantee(given, "guarantee")
    discovery = None if keys is None else keys.discovery
    if discovery is not None and guarantee.epsilon_delta is None:
        given.wrong(
            "guarantee", "must be an epsilon: keys are discovered at an epsilon and a delta, and the two add up"
        )
    # No duration is negative, and no size: that is public without anybody's saying so.
    low = given.number("low", default=0.0 if s.TO_BASE_UNIT[unit][0] in ("seconds", "bytes") else None)
    high = given.number("high", default=None)
    if low is not None and high is not None and not low < high:
        given.wrong("high", "must be above low")
    common: dict[str, Any] = {
        "name": name,
        "about": given.text("about", default=name.replace("_", " ")),
        "unit": unit,
        "source": source,
        "label": _label(given, keys),
        "keys": keys,
        "person": person,
        "quantiles": quantiles,
        "window": window,
        "guarantee": guarantee,
        "neighbours": given.word("neighbours", ("add-remove", "replace"), "add-remove"),
        "low": low,
        "high": high,
        "hold": given.integer("hold", 1_000, 100_000_000, 1_000_000),
    }
    total = _guarantee(given, "total_per_day")
    cost = s.Metric(**common, total=guarantee, windows_per_day=0).cost
    windows = given.checked("total_per_day", lambda: s.windows_covered(total, cost))
    if windows < 1:
        given.wrong("total_per_day", f"must cover a window at least, which costs {cost}; {total} does not")
    given.end()
    return s.Metric(**common, total=total, windows_per_day=min(windows, round(s.DAY / window)))


def _label(given: Fields, keys: s.Keys | None) -> str:
    default = "key" if keys is None else "".join(c if c.isascii() and c.isalnum() else "_" for c in keys.attribute)
    label = given.text("label", "a name for the label of keys", default)
    if not s.NAME.fullmatch(label) or label.startswith("__") or label in RESERVED_LABELS:
        said = f"must be letters, digits and underscores, and none of {', '.join(RESERVED_LABELS)}"
        given.wrong("label", f"{said}; {label[:80]!r} is not")
    return str(label)


def _source(given: Fields) -> s.Source:
    section = given.section("from", needed=True)
    assert section is not None  # noqa: S101 - needed
    signal: Any = section.one_of_fields("spans", "logs", "statsd", "json")
    allowed = {
        "spans": "duration, or the name of a numeric attribute",
        "logs": "the name of a numeric attribute",
        "statsd": "the name of a timer",
        "json": "the name of a numeric field",
    }[signal]
    what = section.text(signal, allowed)
    where = section.section("where")
    conditions: tuple[tuple[str, str], ...] = ()
    if where is not None:
        conditions = tuple((name, where.text(name, "text")) for name in where.names())
    time = section.text("time", "the field with an item's Unix time in seconds", None) if signal == "json" else None
    section.end()
    return s.Source(signal, None if signal == "spans" and what == "duration" else what, conditions, time)


def _keys(given: Fields, folder: Path) -> s.Keys | None:
    section = given.section("keys")
    if section is None:
        return None
    attribute = section.text("attribute", "the attribute, tag or field that is the key")
    way = section.one_of_fields("declared", "file", "discover")
    other = section.text("other", "a name for all undeclared keys together", None)
    discovery, declared = None, None
    if way == "discover":
        cost = section.section("discover")
        assert cost is not None  # noqa: S101 - it is given
        discovery = _approx(cost)
        cost.end()
        if other is not None:
            section.wrong("other", "needs declared keys: what is not discovered in a window is shown by no name")
    elif way == "declared":
        declared = section.texts("declared", "a list of keys")
    else:
        declared = lines_of(section, "file", folder)
    if declared is not None:
        if len(declared) > s.MOST_KEYS:
            section.wrong(way, f"must be at most {s.MOST_KEYS:,} keys; {len(declared):,} are not")
        shown = declared if other is None else (*declared, other)
        if not declared or len(set(shown)) < len(shown):
            section.wrong(way, "must be at least one key, and none twice (other counts too)")
        if any(not key.isprintable() or len(key) > s.LONGEST_KEY for key in shown):
            section.wrong(way, f"must be printable keys of at most {s.LONGEST_KEY} characters")
    section.end()
    return s.Keys(attribute, declared, discovery, other)


def _person(given: Fields) -> s.Person | None:
    section = given.section("person")
    if section is None:
        return None
    attribute = section.text("attribute", "the attribute, tag or field with a person's id")
    found = s.Person(attribute, section.integer("max_items", 1, 10**6))
    section.end()
    return found


def _guarantee(given: Fields, name: str) -> Guarantee:
    section = given.section(name, needed=True)
    assert section is not None  # noqa: S101 - needed
    which = section.one_of_fields("epsilon", "rho")
    if "delta" in section and which == "epsilon":
        return _ended(section, lambda: _approx(section))
    size = section.number(which)
    if which == "rho":
        return _ended(section, lambda: section.checked("rho", lambda: ZCDP(rho=size)))
    return _ended(section, lambda: section.checked("epsilon", lambda: PureDP(epsilon=size)))


def _ended(section: Fields, make: Callable[[], Guarantee]) -> Guarantee:
    found = make()
    section.end()
    return found


def _approx(given: Fields) -> ApproxDP:
    epsilon, delta = given.number("epsilon"), given.number("delta")
    given.checked("epsilon", lambda: PureDP(epsilon=epsilon))
    return given.checked("delta", lambda: ApproxDP(epsilon=epsilon, delta=delta))
