"""The program around a server: what it logs."""

import asyncio
from pathlib import Path

import pytest

from dpfrugal.serve.program import log_failure, run
from dpfrugal.serve.server import Server
from dpfrugal.serve.settings_reading import settings_of_text
from tests.support.serving import settings_text


def test_log__a_failure_within_the_loop_says_nothing_of_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        raise ValueError("ann paid 12.5")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_failure)
        loop.call_soon(failing)
        await asyncio.sleep(0)

    asyncio.run(run())
    said = capsys.readouterr().err
    assert "something failed within (ValueError)" in said
    assert "ann" not in said


def test_run__a_server_that_fails_says_so_and_ends_with_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def failing(server: Server) -> None:
        raise ValueError("ann paid 12.5")

    monkeypatch.setattr(Server, "run", failing)
    with pytest.raises(SystemExit) as ended:
        run(settings_of_text(settings_text(), tmp_path))
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "something failed within (ValueError); stopped" in said
    assert "ann" not in said
