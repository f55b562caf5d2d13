"""Numbers that documents state and code decides: they are the same."""

import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.engines.sql import statements
from dpfrugal.estimators.windows import keyed_window_quantile, window_quantile
from dpfrugal.kernels import coins, threads
from dpfrugal.privacy import noise
from dpfrugal.serve import repeated_items
from dpfrugal.serve.settings import Limits, Metric
from dpfrugal.serve.settings_file import read_text
from tests.support.repository import ROOT

ONE = dpf.PureDP(epsilon=1.0)
FEW = np.arange(5)


def needed(*quantiles: float, **options: Any) -> list[int]:
    """How many rows the reasons of a table that is too small ask for."""
    reasons = dpf.private_quantiles(FEW, list(quantiles), ONE, **options).reasons
    found = [re.search(r"about ([\d,]+) are needed", reason or "") for reason in reasons]
    return [int(each[1].replace(",", "")) for each in found if each]


# Document, a sentence with the number in a group, what the code has, and how far rounding may take the two apart.
FACTS: list[tuple[str, str, float, float]] = [
    ("docs/limits.md", r"\((\d+) for a median, \d+ for a p90", needed(0.5)[0], 0),
    ("docs/limits.md", r"for a median, (\d+) for a p90", needed(0.9)[0], 10),
    ("docs/limits.md", r"for a p90, ([\d,]+) for a p99", needed(0.99)[0], 100),
    ("docs/limits.md", r"a median about (\d+) rows", needed(0.5, 0.9)[0], 0),
    ("docs/limits.md", r"a p90 about (\d+) rows", needed(0.5, 0.9)[1], 10),
    ("docs/limits.md", r"a p99 about ([\d,]+)", needed(0.5, 0.9, 0.99)[2], 100),
    ("docs/limits.md", r"up to ([\d,]+) buffered items", window_quantile.MOST_PENDING, 0),
    ("README.md", r"about (\d+) rows for a median", needed(0.5)[0], 0),
    ("README.md", r"([\d,]+) for a p99; with fewer", needed(0.99)[0], 100),
    ("docs/how-to/choose-epsilon.md", r"A p99 needs about ([\d,]+)/ε", needed(0.99)[0], 100),
    ("docs/how-to/choose-epsilon.md", r"a median about (\d+)/ε", needed(0.5)[0], 0),
    ("docs/explanation/mechanism.md", r"needs about (\d+)/ε rows on each side", needed(0.5, intervals=False)[0] / 2, 0),
    ("docs/tutorials/data-scientist.md", r"About (\d+)/ε rows must lie", needed(0.5, intervals=False)[0] / 2, 0),
    ("docs/keys.md", r"fewer than ([\d,]+) rows is processed by one thread", threads.WORTH_A_THREAD, 0),
    ("docs/how-to/database.md", r"at most ([\d,]+) keys", statements.MOST_KEYS, 0),
    ("docs/serve-threat-model.md", r"the first (\d+) million spans", repeated_items.MOST_REMEMBERED / 1e6, 0),
    ("docs/serve.md", r"\| `hold` \| ([\d,]+) \|", Metric.hold, 0),
    ("docs/coins.md", r"every block of (\d+) positions", coins.BLOCK, 0),
    ("docs/decisions/2-noise-from-opendp.md", r"up to (\d+) numbers", noise.LOT, 0),
    ("docs/decisions/2-noise-from-opendp.md", r"speed target is ([\d.]+) of", 0.4, 0),
]


@pytest.mark.parametrize(
    ("document", "sentence", "number", "rounding"), FACTS, ids=[f"{fact[0]} {fact[1][:30]}" for fact in FACTS]
)
def test_document__states_the_number_of_the_code(document: str, sentence: str, number: float, rounding: float) -> None:
    text = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    found = re.findall(sentence, text)
    assert found, "the sentence is there"
    assert all(abs(float(each.replace(",", "")) - number) <= rounding for each in found), found


HELP = [
    ("src/dpfrugal/cli/streams/watch_options.py", r"Default: (\d+) million", window_quantile.HELD),
    ("src/dpfrugal/cli/streams/watch_options.py", r"with keys.{0,8}?(\d+) million", keyed_window_quantile.HELD_IN_ALL),
]


@pytest.mark.parametrize(("source", "sentence", "number"), HELP)
def test_help__states_the_default_of_the_code(source: str, sentence: str, number: int) -> None:
    """In binary millions, which are rounded."""
    text = re.sub(r'"\s+"', "", (ROOT / source).read_text(encoding="utf-8"))
    (found,) = re.findall(sentence, text)
    assert int(found) == number >> 20


def test_serve__states_the_limits_of_the_code() -> None:
    """Each field of ``limits`` with its default, as a settings file would have it."""
    text = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `limits` \|.*$", text, flags=re.MULTILINE)
    stated = dict(re.findall(r"`(\w+)` (\w+)", row.partition("`limits`")[2]))
    assert stated.keys() == {field.name for field in fields(Limits)}
    for name, value in stated.items():
        given = read_text(f"{name}: {value}", "limits")
        default = getattr(Limits(), name)
        read = given.seconds if isinstance(default, float) else given.size
        assert read(name) == default, name
