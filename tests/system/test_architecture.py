"""What import-linter does not see: private attributes, the size of folders, tests that mirror the tree."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.support.repository import ROOT

PACKAGE = ROOT / "src" / "dpfrugal"
MOST_MODULES = 17
# Modules without a test file of their own name: where their tests are instead, and why they are there.
TESTED_ELSEWHERE = {
    "__init__.py": "tests/system/test_documents.py",  # every public name, and its example
    # Commands are run as a user runs them, several together.
    "cli/__init__.py": "tests/system/test_command_line.py",
    "cli/audit.py": "tests/audit/test_audit.py",
    "cli/demo.py": "tests/system/test_command_line.py",
    "cli/describe.py": "tests/system/test_command_line_tables.py",
    "cli/ledger.py": "tests/budget/test_ledger.py",
    "cli/plan.py": "tests/system/test_command_line.py",
    "cli/quantile.py": "tests/system/test_command_line_tables.py",
    "cli/quantile_walk_by_key.py": "tests/system/test_command_line_by_key.py",
    "cli/serve.py": "tests/serve/test_server.py",
    "cli/watch.py": "tests/system/test_watch_windows.py",
    "cli/streams/watch_running_estimate.py": "tests/system/test_command_line.py",
    "cli/streams/watch_walk_by_key.py": "tests/system/test_command_line_by_key.py",
    "cli/streams/watch_windows.py": "tests/system/test_watch_windows.py",
    "cli/table/demo_picture.py": "tests/system/test_command_line.py",  # it is drawn by the demo
    # All engines answer the same questions, so they have one suite.
    "engines/duckdb.py": "tests/engines/test_engines.py",
    "engines/polars.py": "tests/engines/test_engines.py",
    "engines/sql/connections.py": "tests/engines/sql/test_sql.py",
    "engines/sql/statements.py": "tests/engines/sql/test_sql.py",
    "engines/sql/table.py": "tests/engines/sql/test_sql.py",
    # These need a Spark session, and are what a table or a stream on Spark is made of.
    "engines/spark/actions.py": "tests/engines/spark/test_batch.py",
    "engines/spark/columns.py": "tests/engines/spark/test_batch.py",
    "engines/spark/session.py": "tests/engines/spark/test_batch.py",
    "engines/spark/stream_answers.py": "tests/engines/spark/test_stream.py",
    "engines/spark/stream_release.py": "tests/engines/spark/test_stream.py",
    # The compiled form is tested with the readable one that it equals.
    "estimators/table/choices/many_joint_choices.py": "tests/kernels/choices/test_choose_jointly.py",
    "kernels/choices/sum_walks.py": "tests/estimators/table/choices/test_walk_sums.py",
    # A metric is read as a part of its settings file.
    "serve/metric_reading.py": "tests/serve/test_settings_reading.py",
    # What answers requests is tested by real requests.
    "serve/ingest/statsd_listener.py": "tests/serve/test_clients.py",
    "serve/web/applications.py": "tests/serve/test_web.py",
    "serve/web/http_server.py": "tests/serve/test_web.py",
    "serve/web/ingest_routes.py": "tests/serve/test_ingest.py",
    "serve/web/public_routes.py": "tests/serve/test_web.py",
}
# What pyspark has no public name for.
OF_SPARK = {"_gateway", "_jdf", "_jsc", "_jsq", "_jvm", "_sc"}
# What numba has no public name for: the cache of a compiled function.
OF_NUMBA = {"_cache", "_cache_file", "_source_stamp"}
# What a named tuple has no public name for.
OF_TUPLES = {"_replace"}
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


def own_names(source: str) -> set[str]:
    """The private names that a module's classes define, or use of themselves."""
    nodes = list(ast.walk(ast.parse(source)))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_own(node.value)}
    return {
        name for name in used | {node.name for node in nodes if isinstance(node, ast.FunctionDef)} if is_private(name)
    }


def foreign_attributes(source: str, own: set[str]) -> list[str]:
    """The private attributes in a module's source that belong to something else, each with its line."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute) and is_private(node.attr)]
    foreign = [
        node for node in found if not is_own(node.value) and node.attr not in own | OF_SPARK | OF_NUMBA | OF_TUPLES
    ]
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in foreign]


def has_code(path: Path) -> bool:
    """Whether a module defines anything; a package of a docstring, or a version, has nothing to test."""
    return any(
        isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.parse(path.read_text(encoding="utf-8")).body
    )


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if has_code(path)]


def own_tests(path: Path) -> Path:
    """The test file of a module's own name; that of a package's own code has the package's."""
    inside = path.relative_to(PACKAGE)
    name = inside.parent.name if inside.stem == "__init__" else inside.stem
    return ROOT / "tests" / inside.parent / f"test_{name}.py"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules__have_tests_under_their_name_or_where_the_list_says(path: Path) -> None:
    elsewhere = TESTED_ELSEWHERE.get(str(path.relative_to(PACKAGE)))
    if elsewhere is None:
        assert own_tests(path).exists()
    else:
        assert not own_tests(path).exists(), "it is no exception any more: take it from the list"
        assert "def test_" in (ROOT / elsewhere).read_text(encoding="utf-8")


def test_modules__the_list_of_others_names_what_is_there() -> None:
    assert TESTED_ELSEWHERE.keys() <= {str(path.relative_to(PACKAGE)) for path in MODULES}


@pytest.mark.parametrize(
    "folder",
    [each for each in sorted(PACKAGE.rglob("*/")) if each.name not in ("paper", "page", "__pycache__")],
    ids=lambda folder: str(folder.relative_to(PACKAGE)),
)
def test_folders__have_few_modules(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_MODULES


def test_opendp__is_kept_from_all_packages_but_one() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (kept,) = [each["source_modules"] for each in contracts if each.get("forbidden_modules") == ["opendp"]]
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert {f"dpfrugal.{name}" for name in found - {"privacy", "__init__"}} == set(kept)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_private_attributes__no_package_touches_those_of_another(path: Path) -> None:
    own = set()
    if path.relative_to(PACKAGE).parts[0] not in USERS:
        own = set().union(*(own_names(beside.read_text(encoding="utf-8")) for beside in path.parent.glob("*.py")))
    assert not foreign_attributes(path.read_text(encoding="utf-8"), own)


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
    assert foreign_attributes(source, own_names(source))


def test_private_attributes__own_ones_are_not() -> None:
    own = "self._state, cls._made, super()._close(), df._jdf, a.__class__, state._replace(at=1)"
    assert not foreign_attributes(own, set())
    twin = "class A:\n    def twin(self):\n        twin = copy(self)\n        twin._counts = self._counts.copy()"
    assert not foreign_attributes(twin, own_names(twin))
    assert foreign_attributes(twin, set())
