"""Progress bars on a terminal."""

import io

import pytest
from rich.console import Console

from dpfrugal.cli.terminal import progress


def test_progress__of_a_file_that_is_read_again_stays_within_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(progress, "notes", Console(file=shown, force_terminal=True, width=100))
    with progress.progress("file.csv", 10_000, "bytes") as made:
        for _ in range(5):
            made(5_000, 100)
    assert "25.0/30.0 kB" in shown.getvalue()
