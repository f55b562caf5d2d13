"""What keeps the packages apart besides import-linter: private attributes belong to the package that defines them."""

import ast
from pathlib import Path

import pytest

from tests.support.repository import ROOT

PACKAGE = ROOT / "src" / "dpfrugal"
# What pyspark has no public name for.
OF_SPARK = {"_gateway", "_jdf", "_jsc", "_jsq", "_jvm", "_sc"}
# These use estimators through their interface alone; all others may use private attributes of their own classes.
USERS = ("audit", "cli", "engines", "paper")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def is_own(owner: ast.expr) -> bool:
    """Whether an attribute is one of self, cls or super()."""
    if isinstance(owner, ast.Call):
        owner = owner.func
        return isinstance(owner, ast.Name) and owner.id == "super"
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls")


def foreign_attributes(source: str, *, own_classes: bool) -> list[str]:
    """The private attributes in a module's source that belong to something else, each with its line."""
    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    own = {node.attr for node in found if is_own(node.value)} if own_classes else set()
    if own_classes:
        own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    foreign = [node for node in found if not is_own(node.value) and node.attr not in own | OF_SPARK]
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in foreign]


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "estimators"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_private_attributes__no_module_outside_the_estimators_touches_those_of_another(path: Path) -> None:
    own_classes = path.relative_to(PACKAGE).parts[0] not in USERS
    assert not foreign_attributes(path.read_text(encoding="utf-8"), own_classes=own_classes)


@pytest.mark.parametrize(
    "source",
    [
        "estimator._state",
        "self._estimator._state",
        "type(estimator)._load(path)",
        "self._walk._settled()",
        "def f(estimator): return estimator._account",
    ],
)
def test_private_attributes__a_foreign_one_is_found(source: str) -> None:
    assert foreign_attributes(source, own_classes=False)
    assert foreign_attributes(source, own_classes=True)


def test_private_attributes__own_ones_are_not() -> None:
    assert not foreign_attributes("self._state, cls._made, super()._close(), df._jdf, a.__class__", own_classes=False)
    twin = "class A:\n    def twin(self):\n        twin = copy(self)\n        twin._counts = self._counts.copy()"
    assert not foreign_attributes(twin, own_classes=True)
    assert foreign_attributes(twin, own_classes=False)
