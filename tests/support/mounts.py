"""Commands that run where a file or a folder is mounted a second time, in a mount namespace of their own."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@cache
def _namespace() -> list[str] | None:
    """The command that makes a mount namespace here: for root, or for a user who may be root in one of their own."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return None
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        tried = [*command, "sh", "-c", "mount -t tmpfs none /mnt"]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return command
    return None


def mounted(first: Path, second: Path, command: list[str], *, read_only: bool = False, **options: Any) -> Any:
    """Start a command for which ``second`` is ``first``, mounted; a loud skip where mounting is not permitted."""
    namespace = _namespace()
    if namespace is None:
        pytest.skip("NOT TESTED: a second mount of one file. Mount namespaces are not permitted here (unshare -m).")
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    if read_only:
        script = 'mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && shift 2 && exec "$@"'
    return subprocess.Popen([*namespace, "sh", "-c", script, "sh", str(first), str(second), *command], **options)
