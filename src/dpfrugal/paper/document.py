"""A report as data, and its two forms: one self-contained HTML page, and Markdown beside its pictures."""

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dpfrugal.paper.figures import Picture

STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1020px; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ddd; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; margin: 0.5rem 0 1.5rem; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; white-space: nowrap; }
th, td { padding: 0.15rem 0.6rem; text-align: left; border-bottom: 1px solid #eee; white-space: nowrap; }
th { border-bottom: 1px solid #999; } .n { text-align: right; font-variant-numeric: tabular-nums; }
.claim { border-left: 3px solid #0072B2; padding-left: 0.8rem; } .note { color: #666; font-size: 14px; }
"""
NUMBER: Final = re.compile(r"[-–\d]")


@dataclass(frozen=True)
class Table:
    """A titled table of text."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    """A figure of the report: text, picture, verdicts on the paper's claims, notes, tables.

    Text may be **bold**, *italic* or `code`.
    """

    title: str
    text: list[str] = field(default_factory=list)
    picture: tuple[str, Picture] | None = None
    caption: str = ""
    claims: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers, and are set to the right."""
    columns = zip(*table.rows, strict=True)
    return [all(NUMBER.match(cell) for cell in column) for column in columns]


def as_html(title: str, sections: list[Section]) -> str:
    """One page that needs no other file."""
    body = "".join(_html_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>\n{body}</body></html>\n"
    )


def _html_text(text: str) -> str:
    bold = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text, quote=False))
    italic = re.sub(r"\*(.+?)\*", r"<em>\1</em>", bold)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", italic)


def _html_section(section: Section) -> str:
    parts = [f"<h2>{_html_text(section.title)}</h2>\n"] if section.title else []
    parts += [f"<p>{_html_text(text)}</p>\n" for text in section.text]
    if section.picture:
        data = base64.b64encode(section.picture[1]["svg"]).decode()
        alternative = html.escape(section.caption)
        parts.append(f'<p><img alt="{alternative}" src="data:image/svg+xml;base64,{data}"></p>\n')
        parts.append(f"<p>{_html_text(section.caption)}</p>\n")
    parts += [f'<p class="claim">{_html_text(claim)}</p>\n' for claim in section.claims]
    parts += [f'<p class="note">{_html_text(note)}</p>\n' for note in section.notes]
    for table in section.tables:
        right = numeric_columns(table)
        head = _html_row("th", table.header, right)
        rows = "".join(_html_row("td", row, right) + "\n" for row in table.rows)
        parts.append(
            f"<table><caption>{_html_text(table.title)}</caption><thead>{head}</thead>\n<tbody>{rows}</tbody></table>\n"
        )
    return "".join(parts)


def _html_row(tag: str, cells: Sequence[str], right: list[bool]) -> str:
    kinds = [' class="n"' if number else "" for number in right]
    return "<tr>" + "".join(f"<{tag}{k}>{_html_text(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True)) + "</tr>"


def as_markdown(title: str, sections: list[Section]) -> str:
    """For a repository; the pictures are files beside it."""
    other = "The same as one [page](report.html) that needs no other file; the rows are in [results](results)."
    return f"# {title}\n\n{other}\n" + "".join(_markdown_section(section) for section in sections)


def _markdown_section(section: Section) -> str:
    parts = [f"\n## {section.title}\n"] if section.title else []
    parts += [f"\n{text}\n" for text in section.text]
    if section.picture:
        name = section.picture[0]
        parts.append(f"\n![{section.caption}]({name}.png)\n\n{section.caption} ([SVG]({name}.svg))\n")
    parts += [f"\n> {claim}\n" for claim in section.claims]
    parts += [f"\n*{note}*\n" for note in section.notes]
    for table in section.tables:
        align = "|".join("---:" if number else "---" for number in numeric_columns(table))
        lines = [
            f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in (table.header, *table.rows)
        ]
        parts.append(f"\n**{table.title}**\n\n{lines[0]}\n|{align}|\n" + "\n".join(lines[1:]) + "\n")
    return "".join(parts)
