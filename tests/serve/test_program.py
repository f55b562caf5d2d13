"""The program around a server: what it logs."""

import asyncio

import pytest

from dpfrugal.serve.program import log_failure


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
