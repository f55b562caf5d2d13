"""Bad disks: full, read-only, and with files whose bytes are flipped or cut off. A clear error, never a wrong value.

python -m reliability.disks           # a tmpfs where mounting is permitted, else a limit on the size of files
"""

import argparse
import contextlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import dpfrugal as dpf

ONE, TOTAL = dpf.PureDP(epsilon=1.0), dpf.PureDP(epsilon=3.0)
CLEAR = (dpf.CheckpointError, dpf.LedgerError)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="dpfrugal-disk-"))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextlib.contextmanager
def mounted(size: str) -> Iterator[Path | None]:
    """A small tmpfs, or None where mounting is not permitted."""
    with folder() as made:
        point = made / "disk"
        point.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(point)]
        permitted = shutil.which("mount") is not None and not subprocess.run(command, capture_output=True).returncode
        try:
            yield point if permitted else None
        finally:
            if permitted:
                subprocess.run(["umount", str(point)], check=True)


@contextlib.contextmanager
def limited(size: int) -> Iterator[None]:
    """No file of this process may grow beyond ``size``: to the program it is a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def begun(place: Path) -> tuple[dpf.Ledger, dpf.DPFrugal1U, bytes]:
    """A ledger, an estimator charged to it that was saved, and the bytes of its checkpoint."""
    ledger = dpf.Ledger(place / "budget.db", total=TOTAL)
    estimator = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks", coin_seed=1)
    estimator.update_many([5.0] * 100)
    estimator.save(place / "state")
    return ledger, estimator, (place / "state").read_bytes()


def refused(action: Callable[[], object]) -> bool:
    """Whether it ended in one of the clear errors; any other error is a finding."""
    try:
        action()
    except CLEAR as error:
        assert "\n" not in str(error)
        return True
    return False


def full_disk(place: Path, fill: Callable[[], contextlib.AbstractContextManager[object]]) -> None:
    """Saving and spending are refused, what was saved stays, and all goes on when there is room again."""
    ledger, estimator, saved = begun(place)
    estimator.update_many([7.0] * 100)
    with fill():
        assert refused(lambda: estimator.save(place / "state"))
        assert refused(estimator.release), "noise was taken without its spend on disk"
        assert refused(lambda: dpf.Ledger(place / "other.db", total=TOTAL))
    assert (place / "state").read_bytes() == saved
    assert not list(place.glob(".state*")), "raw state was left lying about"
    assert len(ledger.dataset("clicks").spends if ledger.datasets() else ()) == 0
    assert estimator.release().items == 200
    estimator.save(place / "state")
    assert len(ledger.dataset("clicks").spends) == 1


@contextlib.contextmanager
def filled(place: Path) -> Iterator[None]:
    """A disk without a free byte."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 512)
    try:
        yield
    finally:
        filler.unlink()


def read_only_disk(place: Path) -> None:
    """The same on a disk that takes no writes; reading a checkpoint from it works."""
    ledger, estimator, saved = begun(place)
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    try:
        assert refused(lambda: estimator.save(place / "state"))
        assert refused(estimator.release)
        assert (place / "state").read_bytes() == saved
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
    assert estimator.release().items == 100
    assert len(ledger.dataset("clicks").spends) == 1


def flipped_checkpoint(place: Path, step: int = 1) -> int:
    """Every byte of a checkpoint in turn, one bit and all bits; and every length it could be cut off at."""
    ledger, _, saved = begun(place)
    path, tried = place / "state", 0
    for at in range(0, len(saved), step):
        for damage in (saved[:at] + bytes([saved[at] ^ 1 << at % 8]) + saved[at + 1 :], saved[:at]):
            path.write_bytes(damage)
            assert refused(lambda: dpf.DPFrugal1U.load(path, ledger=ledger)), at
            tried += 1
    path.write_bytes(saved)
    assert dpf.DPFrugal1U.load(path, ledger=ledger).items == 100
    return tried


def said_by(ledger: dpf.Ledger) -> str:
    """All that a ledger says."""
    return repr([(dataset, dataset.spends) for dataset in ledger.datasets()])


def flipped_ledger(place: Path, step: int = 1) -> tuple[int, int]:
    """Every byte of a ledger in turn: refused, or it says what it said before. How many were tried, and refused."""
    ledger = dpf.Ledger(place / "budget.db", total=TOTAL)
    ledger.spend("clicks", ONE, by="a report")
    ledger.spend("clicks", dpf.PureDP(epsilon=0.5), by="another")
    ledger.spend("views", ONE, by="a third")
    truth, good = said_by(ledger), (place / "budget.db").read_bytes()
    rng, path = random.Random(1), place / "damaged.db"  # noqa: S311 - which bit to flip
    tried = refusals = 0
    ends = range(0, len(good), max(step, 512))
    flips = (good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1 :] for at in range(0, len(good), step))
    for damage in (*(good[:at] for at in ends), *flips):
        for leftover in ("-wal", "-shm"):
            Path(f"{path}{leftover}").unlink(missing_ok=True)
        path.write_bytes(damage)
        try:
            said = said_by(dpf.Ledger(path))
        except dpf.LedgerError:
            refusals += 1
        else:
            assert said == truth, "a damaged ledger said something else"
        tried += 1
    return tried, refusals


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with mounted("256k") as disk:
        if disk is not None:
            (disk / "a").mkdir()
            full_disk(disk / "a", lambda: filled(disk))
            print("full disk (tmpfs of 256 KiB): refused, nothing lost, goes on when there is room")
    with mounted("256k") as disk:
        if disk is not None:
            read_only_disk(disk)
            print("read-only disk (tmpfs, remounted): refused, nothing lost")
        else:
            print("full and read-only tmpfs: mounting is not permitted here")
    with folder() as place:
        full_disk(place, lambda: limited(0))
        print("full disk (files may not grow, RLIMIT_FSIZE): refused, nothing lost, goes on when there is room")
    with folder() as place:
        print(f"checkpoint: {flipped_checkpoint(place):,} flipped bytes and cuts, all refused")
    with folder() as place:
        tried, refusals = flipped_ledger(place)
        print(
            f"ledger: {tried:,} flipped bytes and cuts, {refusals:,} refused, the others in unused bytes: same answer"
        )


if __name__ == "__main__":
    main()
