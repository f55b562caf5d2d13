"""A proof speaks of code: when that code changes, the proof must be read again and its digits renewed."""

import hashlib
import importlib.util
import inspect
import re
from typing import Any

import pytest

from tests.support.repository import ROOT

PROOFS = (ROOT / "docs" / "proofs.md").read_text(encoding="utf-8")
CITED = sorted(set(re.findall(r"`(dpfrugal\.[\w.]+)` \(([0-9a-f]{12}|HASH)\)", PROOFS)))


def source_of(name: str) -> str:
    parts = name.split(".")
    target: Any = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        if hasattr(target, "__path__") and importlib.util.find_spec(".".join(parts[:depth])):
            target = importlib.import_module(".".join(parts[:depth]))
        else:
            target = inspect.getattr_static(target, part)
    target = getattr(target, "fget", target)  # of a property
    return inspect.getsource(inspect.unwrap(target))


def digits(name: str) -> str:
    return hashlib.sha256(source_of(name).encode()).hexdigest()[:12]


@pytest.mark.parametrize(("name", "recorded"), CITED)
def test_proofs__cite_the_code_that_was_proved(name: str, recorded: str) -> None:
    assert digits(name) == recorded, f"{name} has changed: read its theorems again, then record {digits(name)}"


def test_proofs__exist_for_every_theorem_that_code_cites() -> None:
    theorems = set(re.findall(r"^## Theorem (\d+)", PROOFS, flags=re.MULTILINE))
    assert len(CITED) >= 10
    for path in (ROOT / "src").rglob("*.py"):
        for cited in re.findall(r"Theorems? (\d+)(?:(?: and | to )(\d+))?", path.read_text(encoding="utf-8")):
            assert {number for number in cited if number} <= theorems, path
