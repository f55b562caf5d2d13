"""A report in two forms: whatever its texts are, they are text in both."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.paper.document import Section, Table, as_html, as_markdown, numeric_columns

cells = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=8).filter(
    lambda cell: "&#124;" not in cell
)
PICTURE = {"svg": b"<svg>drawn</svg>", "png": b"\x89PNG"}


class Texts(HTMLParser):
    """The text between tags, by the tag it is in."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[int] = []
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("img", "meta"):
            self.open.append(len(self.found))
            self.found.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.found[self.open.pop()][0] == tag, "tags are closed in order"

    def handle_data(self, data: str) -> None:
        if self.open:
            tag, before = self.found[self.open[-1]]
            self.found[self.open[-1]] = (tag, before + data)


def parsed(page: str) -> list[tuple[str, str]]:
    texts = Texts()
    texts.feed(page)
    texts.close()
    assert texts.open == []
    return texts.found


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=4))
def test_html__shows_cells_as_they_are(rows: list[tuple[str, str]]) -> None:
    """But for the three marks of emphasis, which a report's own texts use."""
    plain = [(re.sub(r"[*`]", "", a), re.sub(r"[*`]", "", b)) for a, b in rows]
    page = as_html("<a & b>", [Section("s", tables=[Table("t", ("one", "two"), plain)])])
    found = parsed(page)
    assert [text for tag, text in found if tag == "td"] == [cell for row in plain for cell in row]
    assert ("title", "<a & b>") in found


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=4))
def test_markdown__has_as_many_cells_in_every_row(rows: list[tuple[str, str]]) -> None:
    text = as_markdown("r", [Section("s", tables=[Table("t", ("one", "two"), rows)])])
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == len(rows) + 2
    assert {line.count("|") for line in lines} == {3}
    shown = [cell.replace("&#124;", "|") for line in lines[2:] for cell in line[2:-2].split(" | ")]
    assert shown == [cell for row in rows for cell in row]


@pytest.mark.parametrize(
    ("column", "numeric"),
    [(("1", "-2.5", "–"), True), (("1", "x"), False), (("",), False), (("3 %", "4"), True), (("p < 1e-9",), False)],
)
def test_columns__of_numbers_are_set_to_the_right(column: tuple[str, ...], numeric: bool) -> None:
    table = Table("t", ("only",), [(cell,) for cell in column])
    assert numeric_columns(table) == [numeric]
    section = Section("s", tables=[table])
    assert ('class="n"' in as_html("r", [section])) is numeric
    assert ("---:" in as_markdown("r", [section])) is numeric


def test_section__has_all_its_parts_in_both_forms() -> None:
    section = Section(
        "A title", ["Some **bold** text."], ("figure1", PICTURE), "what is drawn", ["a claim"], ["a note"]
    )  # fmt: skip
    page, text = as_html("r", [section]), as_markdown("r", [section])
    assert "<strong>bold</strong>" in page
    assert page.count("data:image/svg+xml;base64,") == 1
    assert "![what is drawn](figure1.png)" in text
    assert "([SVG](figure1.svg))" in text
    for part in ("A title", "what is drawn", "a claim", "a note"):
        assert part in page
        assert part in text
    assert "\n> a claim\n" in text
