"""Read a built site once more: every link and anchor in it leads somewhere, and no page loads anything from outside.

    python -m reliability.site_links site

mkdocs checks links between Markdown files; this reads the HTML that people get, of the theme and the reference too.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
NOT_LOADED = {"canonical", "prev", "next", "alternate", "edit"}


class Page(HTMLParser):
    """The links, the loaded resources and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect what a tag links to, loads or names."""
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel", "") not in NOT_LOADED:
            self.loaded.append(given[LOADED[tag]])


def broken(site: Path) -> list[str]:
    """Each link that leads nowhere and each resource from outside, with its page."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name} loads {target}" for target in page.loaded if urlsplit(target).netloc]
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
    print(f"{number} pages: {len(found)} broken links or outside resources")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
