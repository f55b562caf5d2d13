"""The pictures."""

from pathlib import Path

from dpfrugal.paper.figures import axis_title, label_of, starts
from dpfrugal.paper.noise_conventions import ON_GRID
from dpfrugal.paper.runner import results_of
from dpfrugal.paper.settings import PANELS
from dpfrugal.paper.summary import Point


def test_figures__are_pictures(everything: Path) -> None:
    for name in ("figure1", "figure2", "figure3", "figure4", "accuracy", "start"):
        assert (everything / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (everything / f"{name}.svg").read_bytes()[:1000]


def test_pictures__are_the_same_for_the_same_rows(everything: Path) -> None:
    """No date, no random ids: a report that was made again differs only where its rows do."""
    rows = list(results_of(everything / "results", "start"))
    assert starts(rows) == starts(rows)


def test_labels__are_the_values_of_the_panel() -> None:
    for figure, panel in PANELS.items():
        for setting in panel.settings(10_000_000):
            label = label_of(figure, Point(setting, ON_GRID, (0.1,), 50.0, 50.0, 50.0))
            assert float(label.replace("M", "e6")) == getattr(setting, panel.varied)
        assert axis_title(figure) in "εδρqn"
