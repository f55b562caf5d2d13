"""Run the command line, in a process of its own or in this one."""

import contextlib
import io
import signal
import subprocess
import sys
from typing import Any

import pytest

from dpfrugal.cli import main

COMMAND = [sys.executable, "-m", "dpfrugal"]


def run(*arguments: object, text: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def run_here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The same in this process, without standard input: a new one takes a second to load what it needs."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["dpfrugal", *map(str, arguments)])
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess([], status, out.getvalue(), err.getvalue())


def refused(*arguments: object, text: str | None = None) -> str:
    """The one sentence with which a bad call ends."""
    done = run(*arguments, text=text)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def interruptible() -> None:
    """In a new process: a shell that runs the tests in the background has told its children to ignore Ctrl-C.

    nohup likewise has told them to ignore that the terminal is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
