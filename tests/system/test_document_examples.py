"""Every example in the README and on the site runs, and prints what is shown; every notebook runs."""

import importlib
import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dpfrugal as dpf
from tests.support.documents import NOT_SET_UP, OTHERS, RAN, blocks, compare, needs, run_page
from tests.support.repository import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def examples() -> list[Any]:
    """The pages that have something to run; those with Spark run with its other tests."""
    found = []
    for page in PAGES:
        if any(block.language in RAN for block in blocks(page)):
            marks = [pytest.mark.spark] if "spark" in needs(page) else []
            found.append(pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks))
    return found


@pytest.mark.parametrize("page", examples())
def test_document__has_examples_that_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for need in needs(page):
        if need in ("spark", "postgresql"):
            request.getfixturevalue(need)
        else:
            assert importlib.util.find_spec(need), f"{page.name} needs {need}: pip install '.[test]'"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_page(page, tmp_path)
    if any(block.apart for block in blocks(page)) and not OTHERS.exists():
        pytest.skip(NOT_SET_UP)


ANALYSIS = """
import json, sys
from zetasql.api import Analyzer, CatalogBuilder, TableBuilder
from zetasql.core.exceptions import ZetaSQLError
from zetasql.types import AnalyzerOptions, LanguageFeature, LanguageOptions, TypeKind, ZetaSQLBuiltinFunctionOptions

language = LanguageOptions.maximum_features()
language.enabled_language_features.append(LanguageFeature.FEATURE_DIFFERENTIAL_PRIVACY)
functions = ZetaSQLBuiltinFunctionOptions(language_options=language)
table = TableBuilder("orders").add_column("user_id", TypeKind.TYPE_INT64).add_column("item", TypeKind.TYPE_STRING)
table = table.add_column("quantity", TypeKind.TYPE_INT64).build()
catalog = CatalogBuilder("shop").add_table(table).with_builtin_functions(functions).build()
analyzer = Analyzer(AnalyzerOptions(language_options=language), catalog)
said = []
for query in json.load(sys.stdin):
    try:
        analyzer.analyze_statement(query)
        said.append("")
    except ZetaSQLError as error:
        said.append(str(error) or repr(error))
print(json.dumps(said))
"""


def test_bigquery_page__has_a_query_that_googles_analyzer_accepts() -> None:
    """Its syntax, functions, arguments and types; with a wrong name it must be refused for that name."""
    if not OTHERS.exists():
        pytest.skip(NOT_SET_UP)
    page = ROOT / "docs" / "coming-from" / "bigquery.md"
    (query,) = (block.text for block in blocks(page) if block.language == "sql")
    wrong_argument = query.replace("contribution_bounds_per_row", "bounds")
    wrong_function = query.replace("PERCENTILE_CONT", "PERCENTILES")
    asked = [query, wrong_argument, wrong_function]
    # One process for all: compiling the analyzer takes it a quarter of a minute.
    done = subprocess.run(
        [OTHERS, "-c", ANALYSIS], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    right, of_argument, of_function = json.loads(done.stdout.splitlines()[-1])
    assert right == ""
    assert "No matching signature" in of_argument
    assert "PERCENTILES" in of_function


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook__runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    read = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(read, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in read.cells if cell.cell_type == "code" for output in cell.outputs]
    rich = [output for output in shown if "dpfrugal" in output.get("data", {}).get("text/html", "")]
    pictures = [output for output in shown if "image/png" in output.get("data", {})]
    assert rich, "no release or table is shown as HTML"
    assert pictures, "nothing is drawn"


# Modules beside ``dpfrugal`` itself whose names are public; docs/versions.md says what that means.
PUBLIC = ("dpfrugal.audit", "dpfrugal.engines.river", "dpfrugal.engines.spark", "dpfrugal.engines.sql")


def public_names() -> list[str]:
    found = [f"dpfrugal.{name}" for name in dpf.__all__ if name != "__version__"]
    return found + [f"{place}.{name}" for place in PUBLIC for name in importlib.import_module(place).__all__]


@pytest.mark.parametrize("name", public_names())
def test_reference__shows_every_public_name_with_an_example(name: str) -> None:
    """The example is in the docstring of the name itself, not of a base class, where it runs as a doctest."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    assert f"::: {name}\n" in pages, f"{name} is not on a page of the reference"
    place, _, last = name.rpartition(".")
    public = getattr(importlib.import_module(place), last)
    assert public.__module__.startswith("dpfrugal."), "doctests of other packages do not run here"
    assert ">>>" in (public.__doc__ or ""), f"{name} has no example"


def test_compare__finds_a_line_that_was_not_printed() -> None:
    compare("q=0.5: 7.1 in [7, 8.25]\n…\n", "before\nq=0.5: 63 in [6e+10, -65]\n", "here")
    with pytest.raises(AssertionError, match="shown but not printed"):
        compare("q=0.5: 7 in [7, 8]", "q=0.5: 7", "here")
