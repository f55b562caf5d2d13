"""The file of a checkpoint: raw private state, written whole or not at all, and read back exactly or not at all.

    dpfrugal checkpoint 2: RAW PRIVATE STATE, not for publication⏎
    length of the header, 8 bytes, little-endian
    the header, JSON: class, parameters, state, account, notes, and the name, type and shape of each array
    the arrays, one after the other, little-endian
    SHA-256 of all that is above, 32 bytes

Whoever can read it needs no release: it is created with mode 0600, and a reader is warned where others may read it.
"""

import glob
import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import CheckpointError, CheckpointWarning, DPFrugalError
from dpfrugal.storage import durable
from dpfrugal.storage.json_values import integer_of, list_of
from dpfrugal.version import __version__

VERSION: Final = 2
TITLE: Final = b"dpfrugal checkpoint %d: RAW PRIVATE STATE, not for publication\n"
TITLE_LINE: Final = re.compile(rb"dpfrugal checkpoint (\d{1,9}): [^\n]{0,80}\n")
LONGEST_TITLE: Final = 128
DTYPES: Final = ("|b1", "|u1", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
SEAL: Final = 32
LARGEST: Final = 1 << 34
T = TypeVar("T")


@dataclass(frozen=True)
class Contents:
    """What a checkpoint holds; all but ``arrays`` is plain JSON."""

    kind: str
    parameters: dict[str, Any]
    state: dict[str, Any]
    account: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def write(path: str | os.PathLike[str], contents: Contents) -> None:
    """Replace the file at ``path``: a crash leaves the old one or the new one, and the new one is on disk on return."""
    target = Path(path)
    if what := durable.kind_of(target):
        raise CheckpointError(f"{target} is {what}; a checkpoint is a file.")
    unfinished = target.with_name(f".{target.name}.{os.urandom(4).hex()}.{os.getpid()}.unfinished")
    try:
        _clear_unfinished(target)
        try:
            durable.write_new(unfinished, _encoded(contents))
            os.replace(unfinished, target)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink()
            raise
        durable.sync_folder(target.parent)
    except OSError as error:
        raise CheckpointError(f"The checkpoint {target} could not be written: {error.strerror}.") from None


def read(path: str | os.PathLike[str], kind: str) -> Contents:
    """The contents of a checkpoint of that class, every byte of it checked."""
    source = Path(path)
    data, mode = _whole(source)
    title = TITLE_LINE.match(data)
    if title is None:
        raise CheckpointError(f"{source} is not a checkpoint.")
    if mode & 0o077:
        warnings.warn(
            f"The checkpoint {source} is raw private state, and others than its owner may read it: chmod 600.",
            CheckpointWarning,
            stacklevel=3,
        )
    if int(title[1]) != VERSION:
        raise CheckpointError(
            f"{source} is a checkpoint of version {int(title[1])}; this dpfrugal reads version {VERSION}. "
            "Use the dpfrugal that wrote it."
        )
    whole = memoryview(data)
    if hashlib.sha256(whole[:-SEAL]).digest() != whole[-SEAL:]:
        raise CheckpointError(f"{source} is damaged or cut off: its checksum is wrong. Nothing was restored.")
    contents = restored(source, lambda: _decoded(whole[title.end() : -SEAL]))
    if contents.kind != kind:
        raise CheckpointError(f"{source} is a checkpoint of {contents.kind}, not of {kind}.")
    return contents


def to_bytes(contents: Contents) -> bytes:
    """The same as one string of bytes, to be sent: raw private state."""
    return b"".join(_encoded(contents))


def of_bytes(data: bytes, kind: str, source: str) -> Contents:
    """The contents of what ``to_bytes`` wrote, every byte of it checked; ``source`` names it in a refusal."""
    title = TITLE % VERSION
    if not isinstance(data, bytes | bytearray | memoryview) or bytes(data[: len(title)]) != title:
        raise CheckpointError(f"{source} is not one that this version of dpfrugal wrote.")
    if hashlib.sha256(data[:-SEAL]).digest() != bytes(data[-SEAL:]):
        raise CheckpointError(f"{source} is damaged or cut off: its checksum is wrong. Nothing was taken in.")
    contents = restored(source, lambda: _decoded(memoryview(data)[len(title) : -SEAL]))
    if contents.kind != kind:
        raise CheckpointError(f"{source} is of {contents.kind}, not of {kind}.")
    return contents


def _whole(source: Path) -> tuple[bytes, int]:
    """The bytes of a file that begins as a checkpoint does, as many as it says that it has, and its mode."""
    try:
        with durable.opened_to_read(source) as file:
            status = os.fstat(file.fileno())
            size = status.st_size if status.st_size <= LARGEST else LONGEST_TITLE
            data = file.read(min(size, LONGEST_TITLE))
            if TITLE_LINE.match(data) is None:  # whatever it is, however large
                raise CheckpointError(f"{source} is not a checkpoint.")
            # One byte more than there is: a file that grows meanwhile is no checkpoint either.
            data += file.read(size - len(data) + 1)
    except durable.NoFile as error:
        raise CheckpointError(f"{source} is {error}; a checkpoint is a file.") from None
    except OSError as error:
        raise CheckpointError(f"The checkpoint {source} could not be read: {error.strerror}.") from None
    except MemoryError:
        raise CheckpointError(f"The checkpoint {source} does not fit into the memory of this process.") from None
    if len(data) != status.st_size:
        raise CheckpointError(f"{source} is damaged or cut off: its checksum is wrong. Nothing was restored.")
    return data, status.st_mode


def restored(source: str | os.PathLike[str], work: Callable[[], T]) -> T:
    """The result of ``work`` on a checkpoint; whatever fails in it is reported as a checkpoint that is invalid."""
    try:
        return work()
    except (DPFrugalError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError, AttributeError):
        raise CheckpointError(f"{Path(source)} holds no state that could be restored.") from None


def _encoded(contents: Contents) -> Iterator[bytes]:
    arrays, described = [], []
    for name, array in contents.arrays.items():
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        if plain.dtype.str not in DTYPES:
            raise CheckpointError(f"An array of {plain.dtype} cannot be saved.")
        arrays.append(plain.tobytes())
        described.append({"name": name, "dtype": plain.dtype.str, "shape": list(array.shape)})
    header = json.dumps(
        {
            "class": contents.kind,
            "dpfrugal": __version__,
            "parameters": contents.parameters,
            "state": contents.state,
            "account": contents.account,
            "notes": contents.notes,
            "arrays": described,
        },
        allow_nan=False,
    ).encode()
    seal = hashlib.sha256()
    for part in (TITLE % VERSION, len(header).to_bytes(8, "little"), header, *arrays):
        seal.update(part)
        yield part
    yield seal.digest()


def _decoded(body: memoryview) -> Contents:
    length = int.from_bytes(body[:8], "little")
    if length > len(body) - 8:
        raise ValueError("the header is cut off")
    header = json.loads(bytes(body[8 : 8 + length]), object_pairs_hook=_no_name_twice, parse_constant=_refused)
    arrays: dict[str, NDArray[Any]] = {}
    first = 8 + length
    for described in list_of(header["arrays"]):
        shape = [integer_of(size, 0, LARGEST) for size in list_of(described["shape"])]
        name, dtype = described["name"], described["dtype"]
        if dtype not in DTYPES or not isinstance(name, str) or name in arrays:
            raise ValueError("no such array")
        last = first + math.prod(shape) * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(body[first:last], dtype=dtype).reshape(shape).copy()
        first = last
    if first != len(body) or not isinstance(header["class"], str):
        raise ValueError("something is left over")
    return Contents(header["class"], header["parameters"], header["state"], header["account"], header["notes"], arrays)


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number here")


def _clear_unfinished(target: Path) -> None:
    """Remove what processes that were killed while writing have left: it is raw state, too."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.unfinished"):
        writer = leftover.name.removesuffix(".unfinished").rpartition(".")[2]
        try:
            os.kill(int(writer), 0)
            alive = True
        except (ValueError, OverflowError, PermissionError):
            alive = True
        except ProcessLookupError:
            alive = False
        if not alive:
            leftover.unlink(missing_ok=True)
