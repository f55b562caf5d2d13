"""One small run of everything, for all tests that only look at what it wrote."""

from pathlib import Path

import pytest

from tests.paper.small_runs import command


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whole run by the command, with its report."""
    output = tmp_path_factory.mktemp("paper")
    command(output)
    return output
