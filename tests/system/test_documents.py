"""The documents are true: links lead somewhere, and nothing heavy is imported too early."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import dpfrugal
from tests.support.command_line import run_here
from tests.support.repository import ROOT

DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
README = (ROOT / "README.md").read_text(encoding="utf-8")


PARTS = [str(document.relative_to(ROOT)) for document in DOCUMENTS]


@pytest.mark.parametrize("document", DOCUMENTS, ids=PARTS)
def test_documents__have_links_that_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=PARTS)
def test_documents__are_wrapped(document: Path) -> None:
    """Prose ends at 120 characters; tables, code, pictures and the report that a program writes may be wider."""
    if document.parent.name == "paper":
        return
    code = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if not code and not line.startswith(("|", "![")):
            assert len(line) <= 120, f"line {number}"


def test_contributing__names_what_is_there_in_fewer_lines_than_there_are_folders() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    there = {path.name for top in ("src", "tests") for path in (ROOT / top).rglob("*") if path.name != "__pycache__"}
    named = re.findall(r"`([\w/]+(?:\.py|/))`", "\n".join(rows))
    assert len(named) > 40
    for name in named:
        assert set(name.rstrip("/").split("/")) - {"tests"} <= there, name
    folders = [path for path in (ROOT / "src" / "dpfrugal").rglob("*/") if path.name != "__pycache__"]
    layers = text[text.index("| layer |") :].split("\n\n")[0].splitlines()[2:]
    assert len(layers) <= len(folders)
    assert sum(line.startswith("| ") and not line.startswith("| |") for line in layers) == 10


def test_site__has_every_file_that_its_configuration_names() -> None:
    """``make docs`` builds it; this finds what a fresh clone would lack."""
    named = re.findall(r"[\w/.-]+\.(?:md|py|css)\b", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    placed = set(re.findall(r'": "([\w/-]+\.md)"', (ROOT / "docs" / "site" / "hooks.py").read_text(encoding="utf-8")))
    assert {"docs/site/hooks.py", "index.md", "site/extra.css"} <= set(named)
    for name in set(named) - placed:
        assert (ROOT / name).exists() or (ROOT / "docs" / name).exists(), name
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(named), "pages that the site does not show"


def test_readme__has_options_that_exist() -> None:
    shown = set(re.findall(r" (--[a-z-]+)", "\n".join(re.findall(r"^.*dpfrugal \w+ .*$", README, flags=re.MULTILINE))))
    commands = ("quantile", "describe", "watch", "plan", "paper", "audit", "demo", "serve")
    known = "".join(run_here(command, "--help").stdout for command in commands)
    assert shown
    assert all(option in known for option in shown)


def test_import__is_light() -> None:
    heavy = {"numba", "opendp", "pyarrow", "pandas", "polars", "matplotlib", "typer", "rich"}
    program = (
        f"import sys, dpfrugal; sys.exit(repr({heavy!r} & set(sys.modules)) if {heavy!r} & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names__are_documented_and_exported() -> None:
    for name in dpfrugal.__all__:
        assert name == "__version__" or getattr(dpfrugal, name).__doc__ or name == "Guarantee"


def test_version__is_the_same_in_the_package_the_changelog_and_the_citation() -> None:
    """As the release workflow asks of a tag; the newest section of the changelog comes first."""
    newest = re.search(r"^## (\S+) \((unreleased|20\d\d-\d\d-\d\d)\)$", text("CHANGELOG.md"), flags=re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", text("CITATION.cff"), flags=re.MULTILINE)
    assert newest is not None
    assert cited is not None
    assert newest[1] == cited[1] == dpfrugal.__version__


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_constraints__are_pinned_without_addresses() -> None:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"#.*|[\w.-]+==[\w.+!]+", line), line
