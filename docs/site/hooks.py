"""mkdocs: pages that are files of the repository, links between them, and the reference of the command line.

``README.md`` is the first page of the site, and ``CHANGELOG.md`` one of the last; they lie where people look for them,
and link to each other as files. Here each gets its place, and every link that leads from a page of the site to a file
of the repository is turned towards that place. A link to a folder is shown as its text; one to a file that has no
place is left alone, so that mkdocs reports it.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
# Files of the repository that are pages of the site, and those that pages show or offer.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks/README.md",
}
OTHERS = ["CITATION.cff", *(f"benchmarks/results/{name}.png" for name in ("compare", "keyed"))]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
ITEM = re.compile(r"([-*]|\d+\.) ")
COMMANDS = "<!-- every command with its options -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside of ``docs``."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for name in OTHERS:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links towards the site, set lists apart, and write the reference of the command line."""
    here = page.file.src_uri
    source = next((name for name, at in PAGES.items() if at == here), f"docs/{here}")

    def turned(link: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        if (ROOT / file).is_dir():
            return link[1]
        target = PAGES.get(file, file if file in OTHERS else file.removeprefix("docs/"))
        if file == target and file not in (*PAGES, *OTHERS):
            return link[0]
        return f"[{link[1]}]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{link[3] or ''})"

    text = with_lists(LINK.sub(turned, markdown))
    return text.replace(COMMANDS, "\n\n".join(command_pages())) if COMMANDS in text else text


def with_lists(text: str) -> str:
    """A list may follow a line of text at once, as where the repository shows its files; mkdocs wants a blank line."""
    found: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        before = found[-1] if found else ""
        if not fenced and ITEM.match(line) and before and not before.startswith(" ") and not ITEM.match(before):
            found.append("")
        found.append(line)
    return "\n".join(found)


def command_pages() -> list[str]:
    """A section for each command, from what ``--help`` shows."""
    from typer.main import get_command

    from dpfrugal.cli import app

    found: list[str] = []

    def describe(command: Any, name: str) -> None:
        found.append(f"## {name}\n\n{prose(command.help or '')}")
        context = command.make_context(name, [], resilient_parsing=True)
        records = [each.get_help_record(context) for each in command.params if "--help" not in each.opts]
        rows = [f"| `{in_cell(option)}` | {in_cell(meaning)} |" for option, meaning in filter(None, records)]
        if rows:
            found.append("\n".join(["| option | |", "|---|---|", *rows]))
        for below, each in getattr(command, "commands", {}).items():
            describe(each, f"{name} {below}")

    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        describe(command, f"dpfrugal {name}")
    return found


def prose(text: str) -> str:
    """A help text as Markdown: its examples are fenced, and placeholders of regular expressions are no tags."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    shown = [
        f"```text\n{part.removeprefix('Example: ')}\n```" if part.startswith("Example: ") else part.replace("<", "&lt;")
        for part in paragraphs
    ]
    return "\n\n".join(shown)


def in_cell(text: str) -> str:
    """One line, in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
