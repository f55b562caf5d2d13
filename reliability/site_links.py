"""Read a built site once more: links and anchors lead somewhere, nothing is loaded from outside, lists are lists.

    python -m reliability.site_links site

mkdocs checks links between Markdown files; this reads the HTML that people get, of the theme and the reference too.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
WITHIN = {"a", "code", "em", "strong", "sup", "sub"}  # what a paragraph goes on after
NOT_LOADED = {"canonical", "prev", "next", "alternate", "edit"}


class Page(HTMLParser):
    """The links, the loaded resources and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.run_together: list[str] = []
        self._in_paragraph = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect what a tag links to, loads or names."""
        self._in_paragraph = tag == "p" or (self._in_paragraph and tag in WITHIN)
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel", "") not in NOT_LOADED:
            self.loaded.append(given[LOADED[tag]])

    def handle_endtag(self, tag: str) -> None:
        """A paragraph ends."""
        self._in_paragraph = self._in_paragraph and tag != "p"

    def handle_data(self, data: str) -> None:
        """Collect what was meant as an item of a list and became a line of a paragraph."""
        if self._in_paragraph:
            self.run_together += re.findall(r"\n(?:[-*]|\d+\.) .*", data)


def broken(site: Path) -> list[str]:
    """Each link that leads nowhere, resource from outside and list that became a paragraph, with its page."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name} loads {target}" for target in page.loaded if urlsplit(target).netloc]
        found += [f"{name} runs a list into a paragraph: {item.strip()[:60]}" for item in page.run_together]
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or name.name == "404.html":
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                found.append(f"{name} links to {target}, which is not there")
            elif there in pages and unquote(parts.fragment) not in pages[there].anchors:
                found.append(f"{name} links to {target}, which has no such anchor")
    for style in sorted(site.rglob("*.css")):
        text = style.read_text(encoding="utf-8")
        found += [
            f"{style.relative_to(site)} loads from outside"
            for sign in ("url(http", "url(//", "@import url")
            if sign in text
        ]
    return found


def main() -> None:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    found = broken(site)
    for each in found:
        print(each)
    number = len(list(site.rglob("*.html")))
    if not number:
        sys.exit(f"{site} has no pages")
    print(f"{number} pages: {len(found)} broken links, outside resources or lists")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
