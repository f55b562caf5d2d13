"""What the report shows."""

import os
import re
from pathlib import Path

from dpfrugal.paper import resources
from dpfrugal.paper.settings import PANELS, Scale
from tests.paper.small_runs import command


def test_report__is_a_self_contained_page(everything: Path) -> None:
    page = (everything / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == page.count('src="data:image/svg+xml;base64,') == 6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "cannot be seeded" in page
    assert resources.machine() in page


def test_report__shows_every_figure_with_a_verdict_in_markdown(everything: Path) -> None:
    text = (everything / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (everything / target).exists(), target
    for figure in (*PANELS, "1d", "4"):
        assert re.search(rf"^> \*\*{figure}\.\*\* .*p [=<] ", text, flags=re.MULTILINE), figure
        assert f"\n**{figure}, " in text, figure
    for number in ("6.4378", "9.1867", "10.7770", "2.4758", "2.9044"):
        assert number in text
    assert os.uname().nodename not in text
    assert str(everything) not in text


def test_report__of_one_figure_has_one_figure(tmp_path: Path) -> None:
    command(tmp_path, "2a", scale=Scale(items=500, repetitions=1))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "## Figure 2" in text
    assert "## Figure 1" not in text
    assert "2b" not in text
