"""Generated inputs through one target: counts them, stops at the first that crashes or hangs, and keeps it.

python -m reliability.fuzz lines --inputs 100000 --seed 1
python -m reliability.fuzz lines --guided --inputs 100000     # by atheris, guided by coverage
"""

import argparse
import importlib.util
import os
import random
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path
from types import FrameType

from reliability.mutation import mutated

HANG_SECONDS = 120  # of the processor, so that a busy machine is no hang; the first input compiles kernels


def compiled() -> list[str]:
    """The modules that numba compiles, each by its name: they cannot be instrumented."""
    found = importlib.util.find_spec("dpfrugal")
    folder = Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else Path()
    names = (path.relative_to(folder.parent).with_suffix("") for path in (folder / "kernels").rglob("*.py"))
    return sorted(".".join(name.parts) for name in names)


class HangError(Exception):
    """An input took too long."""


def alarm(number: int, frame: FrameType | None) -> None:
    """Stop an input that does not end."""
    raise HangError


def fuzz(name: str, inputs: int, seed: int, found: Path | None = None) -> float:
    """So many inputs through a target; raises what the first bad one raised. The seconds it took."""
    from reliability.targets import TARGETS

    target, rng = TARGETS[name], random.Random(f"{name} {seed}")  # noqa: S311 - inputs, not secrets
    began = time.perf_counter()
    signal.signal(signal.SIGPROF, alarm)
    data = b""
    try:
        for k in range(inputs):
            if k % 256 == 0:
                signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
            data = mutated(rng, target.seeds)
            target.check(data)
    except BaseException:
        if found is not None:
            found.write_bytes(data)
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.perf_counter() - began


def guided(name: str, inputs: int, seed: int) -> None:
    """The same, guided by coverage of the project's code; ends the process with libFuzzer's report."""
    import atheris

    with atheris.instrument_imports(include=["dpfrugal"], exclude=compiled(), enable_loader_override=False):
        from reliability.targets import FOLDER, TARGETS
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for k, data in enumerate(TARGETS[name].seeds):
        (corpus / str(k)).write_bytes(data)
    done, began = 0, time.perf_counter()

    def check(data: bytes) -> None:
        nonlocal done
        TARGETS[name].check(data)
        done += 1
        if done == inputs:
            # libFuzzer's own end would hold the interpreter's lock while it waits for threads that want it.
            sys.stderr.write(f"Done {done} runs in {time.perf_counter() - began:.0f} seconds\n")
            sys.stderr.flush()
            shutil.rmtree(FOLDER, ignore_errors=True)
            os._exit(0)

    options = [f"-seed={seed}", "-max_len=4096", "-rss_limit_mb=4096", f"-timeout={10 * HANG_SECONDS}"]
    options += [f"-artifact_prefix={FOLDER.parent}/dpfrugal-found-", str(corpus)]
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--guided", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("error")
    if asked.guided:
        guided(asked.target, asked.inputs, asked.seed)
        return
    from reliability.targets import FOLDER

    found = Path(f"found-{asked.target}.bin")
    try:
        seconds = fuzz(asked.target, asked.inputs, asked.seed, found)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    print(f"{asked.target}: {asked.inputs:,} inputs, {seconds:.0f} s, no crash, no hang, nothing changed by a refusal")


if __name__ == "__main__":
    main()
