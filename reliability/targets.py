"""What is fuzzed: each target takes bytes and asserts what holds for every input. Only our own errors are forgiven."""

import hashlib
import math
import os
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpfrugal as dpf
from dpfrugal.inputs import files
from dpfrugal.inputs.line_formats import json_lines, logfmt_lines, pattern_lines, plain_lines
from dpfrugal.inputs.log_lines import LogLines, LogRows
from dpfrugal.inputs.number_lines import LONGEST_LINE, LineParser
from dpfrugal.inputs.numbers import number
from dpfrugal.storage import checkpoint_file

MEMORY = "/dev/shm"  # noqa: S108 - files that are written a million times, in a folder of our own
FOLDER = Path(tempfile.mkdtemp(prefix="dpfrugal-fuzz-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
ONE = dpf.PureDP(epsilon=1.0)


@dataclass(frozen=True)
class Target:
    """A check that takes any bytes, and inputs to start from."""

    check: Callable[[bytes], None]
    seeds: list[bytes]


def check_lines(data: bytes) -> None:
    """Where a text is cut leaves no trace; every line is a number, a missing item, or the one that is refused."""
    omit_bad, cut = bool(data[:1] and data[0] & 1), len(data) // 2
    whole, parts = LineParser(omit_bad=omit_bad), LineParser(omit_bad=omit_bad)
    found = whole.feed(data) + whole.finish()
    again = parts.feed(data[:cut]) + parts.feed(data[cut:]) + parts.finish()
    assert [repr(x) for x in found] == [repr(x) for x in again]
    assert str(whole.refusal) == str(parts.refusal)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    if whole.refusal is None:
        assert len(found) == lines
    else:
        assert not omit_bad
        assert len(found) < lines
        assert whole.feed(b"1\n") == []
    assert len(parts._rest) <= LONGEST_LINE + 1


FORMS = (
    plain_lines(keyed=False),
    plain_lines(keyed=True),
    json_lines("ms", "route", "user"),
    logfmt_lines("ms", "route", "user"),
    pattern_lines(r"(?P<key>\S+) (?P<value>\S+)$"),
)


def rows_of(parts: list[LogRows]) -> list[tuple[str, ...]]:
    """The rows of parts of a log, one by one."""
    columns = [(part.values, part.keys, part.persons) for part in parts]
    return [
        tuple(map(repr, row))
        for values, *others in columns
        for row in zip(
            values.tolist(), *([None] * len(values) if each is None else each for each in others), strict=True
        )
    ]


def check_log_lines(data: bytes) -> None:
    """The same of a log, in each form of its lines: where it is cut leaves no trace, nor does what a line holds."""
    omit_bad, cut = bool(data[:1] and data[0] & 1), len(data) // 2
    for form in FORMS:
        whole, parts = LogLines(form, omit_bad=omit_bad), LogLines(form, omit_bad=omit_bad)
        found = rows_of([whole.feed(data), whole.finish()])
        assert found == rows_of([parts.feed(data[:cut]), parts.feed(data[cut:]), parts.finish()])
        assert str(whole.refusal) == str(parts.refusal)
        lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        assert len(found) <= lines
        assert whole.refusal is None or (not omit_bad and len(found) < lines)


def raw_state(estimator: Any) -> Any:
    """All that an estimator knows, to be compared; single items that wait are taken in first, as every batch does."""
    if isinstance(estimator, dpf.PrivateQuantile):
        estimator._settle()
        state = (estimator._planner.items, estimator._filled, estimator._counts.tolist(), list(estimator._pending))
        return repr((id(estimator._planner), state))
    if isinstance(estimator, dpf.KeyedDPFrugal1U):
        return repr((estimator.items, estimator._state.estimates.tolist()))
    walk = estimator._walk
    return repr((walk._settled().tolist(), walk._position, walk._pending))


def estimators(policy: Literal["raise", "omit"]) -> dict[str, Any]:
    """One of each kind, which lives through all inputs."""
    return {
        "walk": dpf.DPFrugal1U([0.5, 0.9], ONE, decimals=2, nan_policy=policy, coin_seed=1),
        "segments": dpf.PrivateQuantile(0.5, ONE, nan_policy=policy),
        "keyed": dpf.KeyedDPFrugal1U(0.5, ONE, keys=["a", "b"], nan_policy=policy, coin_seed=1),
    }


ESTIMATORS = {"raise": estimators("raise"), "omit": estimators("omit")}
DTYPES = (
    "<f8",
    "<f4",
    "<f2",
    "<i8",
    "<i4",
    "<i2",
    "i1",
    "<u8",
    "<u4",
    "u1",
    ">f8",
    ">i4",
    "?",
    "<c8",
    "S3",
    "<M8[s]",
    "O",
)


def an_item(data: bytes, at: int) -> Any:
    """A number, or something that is none, from nine bytes."""
    kind, body = data[at], data[at + 1 : at + 9].ljust(8, b"\0")
    integer, real = struct.unpack("<q", body)[0], struct.unpack("<d", body)[0]
    items = (real, integer, real, float(body[0]), math.nan, None, math.inf, integer * 10**300, np.float32(body[0]))
    odd: tuple[Any, ...] = (
        "12",
        b"1",
        True,
        Decimal(body[0]),
        Decimal("sNaN"),
        Fraction(body[0], 7),
        1j,
        [1.0],
        np.int8(1),
        {},
        object(),
    )
    return items[kind % 9] if kind < 230 else odd[kind % 11]


def a_batch(data: bytes) -> tuple[Any, int]:
    """Items in some container, and how many there are."""
    shape, body = data[0] if data else 0, data[1:]
    if shape < 110:
        items = [an_item(body, at) for at in range(0, min(len(body), 400), 9)]
        if shape < 20:
            return (item for item in items), len(items)
        if shape < 40:
            plain = [item if isinstance(item, float) else None for item in items]
            return pa.array(plain, type=pa.float64()), len(items)
        return (tuple(items) if shape < 60 else items), len(items)
    dtype = np.dtype(DTYPES[shape % len(DTYPES)])
    if dtype.kind == "O":
        return np.array([an_item(body, 0)] if body else [], dtype=object), min(len(body), 1)
    array = np.frombuffer(body[: len(body) // dtype.itemsize * dtype.itemsize], dtype=dtype)
    if shape > 240:
        return array.reshape(-1, 1), array.size
    if shape > 220:
        return np.ma.masked_array(array, mask=np.arange(array.size) % 3 == 0), array.size
    return (array[::2], array[::2].size) if shape > 200 else (array, array.size)


def check_update_many(data: bytes) -> None:
    """A batch is taken in whole, or refused by one of our errors and has changed nothing."""
    kind = ("walk", "segments", "keyed")[len(data) % 3]
    estimator = ESTIMATORS["omit" if len(data) & 4 else "raise"][kind]
    batch, size = a_batch(data)
    estimator_items, before = estimator.items, raw_state(estimator)
    try:
        with np.errstate(all="ignore"):
            if kind == "keyed":
                keys: list[Any] = [("a", "b", "c")[i % 3] for i in range(size)]
                if data[:1] and data[0] % 7 == 0:
                    keys = [an_item(data, i) for i in range(min(size, len(data)))]
                estimator.update_many(keys, batch)
            else:
                estimator.update_many(batch)
    except dpf.DPFrugalError:
        assert raw_state(estimator) == before, "a refused batch has changed the state"
        return
    assert estimator.items == estimator_items + size


def check_update(data: bytes) -> None:
    """The same for single items; what is taken in is what ``number`` says."""
    kind = ("walk", "segments")[len(data) % 2]
    estimator = ESTIMATORS["omit" if len(data) & 2 else "raise"][kind]
    for at in range(0, min(len(data), 90), 9):
        item, before = an_item(data, at), estimator.items
        try:
            estimator.update(item)
        except dpf.DPFrugalError:
            assert estimator.items == before
        else:
            assert estimator.items == before + 1
            number(item)


def saved(estimator: Any, *items: float) -> bytes:
    """The bytes of a checkpoint."""
    path = FOLDER / "saved"
    estimator.update_many(list(items))
    estimator.save(path)
    return path.read_bytes()


CHECKPOINT = FOLDER / "checkpoint"
SEAL = 32
HEADER = len(checkpoint_file.TITLE % checkpoint_file.VERSION) + 8


def check_checkpoint(data: bytes) -> None:
    """Damaged bytes are refused by their checksum; with a new one, by what they hold, or the estimator works."""
    CHECKPOINT.touch(mode=0o600)
    header = data[HEADER:-SEAL]
    told = data[: HEADER - 8] + len(header).to_bytes(8, "little") + header  # its length is right again
    for content in (data, *(part + hashlib.sha256(part).digest() for part in (data[:-SEAL], told))):
        CHECKPOINT.write_bytes(content)
        for kind in (dpf.DPFrugal1U, dpf.PrivateQuantile):
            try:
                with np.errstate(all="ignore"):  # a forger's numbers may be as odd as he likes
                    estimator = kind.load(CHECKPOINT, accept_replay_risk=True)
            except (dpf.CheckpointError, dpf.ReplayError, dpf.LedgerError) as error:
                assert str(error)
            else:
                assert content is not data or data in CHECKPOINTS
                with np.errstate(all="ignore"):
                    estimator.update_many([1.0, 2.0])
                assert estimator.items >= 2


def table_check(name: str) -> Callable[[bytes], None]:
    """A file of that name is read to its end or refused; all its batches are numbers that an estimator accepts."""
    path = FOLDER / name

    def check(data: bytes) -> None:
        path.write_bytes(data)
        estimator = dpf.DPFrugal1U(0.5, ONE, nan_policy="omit")
        rows = 0
        try:
            column = files.open_column(path)
            for batch, _ in column.batches:
                rows += len(batch)
                estimator.update_many(batch)
        except dpf.TableError as error:
            assert str(path) in str(error)
            assert error.__cause__ is None
            assert "\n" not in str(error).removeprefix(str(path))
        assert estimator.items == rows

    return check


def arrow_seeds(write: Callable[[Any, Path], None]) -> list[bytes]:
    """A few small tables in a binary format."""
    found = []
    for column in ([1.5, 2.5, None], [1, 2, 3], ["x", "y", None], [Decimal("1.5")], [True], []):
        path = FOLDER / "seed"
        write(pa.table({"value": column}), path)
        found.append(path.read_bytes())
    return found


def write_arrow(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def write_stream(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


LOGS = [
    b'{"ms": 1.5, "route": "/a", "user": "u1"}\n{"ms": 2, "route": null, "user": 7}\n[1]\n{"ms": "3", "route": {}}\n',
    b'ms=1.5 route=/a user=u1\nroute="/b c" ms=2 user=u2\nms= route=\n',
    b"/a 1.5\n/b 2e3\n/c nan\n /d \n1.5\n",
]
LINES = [b"1\n2.5\n-3e4\n", b"nan\n\ninf\n 7 \n", b"\xef\xbb\xbf1\r\n2\r\n", b"x\n1\n", b"5" * 50 + b"\n", b""]
CSV = [b"value\n1\n2.5\n\n-3\n", b"1\n2\n3\n", b"value,other\n1,x\n2,y\n", b'value\n"1"\n"2\n3"\n', b"a\n\n\nNULL\n1\n"]
NDJSON = [
    b'{"value": 1}\n{"value": 2.5}\n',
    b'{"value": null}\n{}\n{"value": 1e400}\n',
    b'{"a": {"b": [1, 2]}}\n',
    b"[1]\n",
]
BATCHES = [bytes([shape]) + struct.pack("<Bd", 0, 1.5) * 5 for shape in range(0, 256, 16)]

CHECKPOINTS = [
    saved(dpf.DPFrugal1U([0.5, 0.9], ONE, decimals=2, coin_seed=1), 1.0, 2.0, 3.5),
    saved(dpf.DPFrugal1U(0.5, dpf.ApproxDP(epsilon=1.0, delta=1e-6), nan_policy="omit")),
    saved(dpf.PrivateQuantile(0.5, ONE), *range(400)),
    saved(dpf.PrivateQuantile([0.1, 0.5], dpf.ZCDP(rho=0.5), expected_items=1000), 1.0, 1e300),
]

TARGETS = {
    "checkpoint": Target(check_checkpoint, CHECKPOINTS),
    "lines": Target(check_lines, LINES),
    "log_lines": Target(check_log_lines, [*LOGS, *LINES, *NDJSON]),
    "update_many": Target(check_update_many, BATCHES),
    "update": Target(check_update, BATCHES),
    "csv": Target(table_check("t.csv"), CSV),
    "ndjson": Target(table_check("t.ndjson"), NDJSON),
    "arrow": Target(table_check("t.arrow"), arrow_seeds(write_arrow) + arrow_seeds(write_stream)),
    "parquet": Target(table_check("t.parquet"), arrow_seeds(pq.write_table)),
}
