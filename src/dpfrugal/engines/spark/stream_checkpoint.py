"""Files of a stream's checkpoint, on whatever file system Spark keeps it: one record per micro-batch.

A record is written beside its place and moved into it, so it is there as a whole or not at all; one that is there
already is never replaced, also not by another driver at the same moment. Its number is the batch's, −1 before the first
one; the newest counts. A record holds what was released; the rest of a checkpoint is Spark's own, and raw.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from dpfrugal.errors import ParameterError, PrivacyError, TableError
from dpfrugal.storage import durable

FORMAT: Final = 5
FOLDER: Final = "dpfrugal-releases"
KEPT_RECORDS: Final = 2
DRAFT: Final = "draft"
T = TypeVar("T")


class Records:
    """The records of one query."""

    def __init__(self, spark: Any, checkpoint: str | os.PathLike[str], query: dict[str, Any]) -> None:
        if not isinstance(checkpoint, str | os.PathLike) or not os.fspath(checkpoint):
            raise ParameterError("checkpoint must be the path of a folder: without one, a restart would count again.")
        self.checkpoint = os.fspath(checkpoint)
        self._spark, self._jvm = spark, spark._jvm
        self._folder = self._jvm.org.apache.hadoop.fs.Path(self.checkpoint, FOLDER)
        self._files = self._attempted(lambda: self._folder.getFileSystem(spark._jsc.hadoopConfiguration()))
        local = self._files.getUri().getScheme() == "file"
        self._local = Path(self._files.makeQualified(self._folder).toUri().getPath()) if local else None
        self._query = json.loads(json.dumps(query))

    def ready(self) -> Self:
        """These, once it is sure that they can be written."""
        self._make_folder()
        return self

    def newest(self) -> tuple[int, dict[str, Any]] | None:
        """The newest record and its batch, if this query wrote it; None where there is none."""
        numbers = self._numbers()
        if not numbers:
            return None
        stream = self._files.open(self._path(str(numbers[-1])))
        try:
            text = bytes(stream.readAllBytes()).decode("utf-8", errors="replace")
        finally:
            stream.close()
        digest, _, body = text.partition("\n")
        if hashlib.sha256(body.encode("utf-8")).hexdigest() != digest:
            raise TableError(f"The checkpoint {self._folder.getParent()} is damaged.")
        record: dict[str, Any] = json.loads(body)
        if record.get("format") != FORMAT:
            raise ParameterError(f"The checkpoint {self._folder.getParent()} is of another version. Use a new folder.")
        if other := difference(record["query"], self._query):
            raise ParameterError(
                f"The checkpoint {self._folder.getParent()} belongs to another query: {other}. Use a new folder."
            )
        return numbers[-1], record["state"]

    def write(self, batch: int, state: dict[str, Any]) -> None:
        """Keep a record, once; older ones than the last two go, and what a kill has left."""
        numbers = self._numbers()
        if numbers and numbers[-1] >= batch:
            raise taken_already(batch)
        body = json.dumps({"format": FORMAT, "query": self._query, "state": state})
        text = f"{hashlib.sha256(body.encode('utf-8')).hexdigest()}\n{body}"
        draft = f"{DRAFT}-{batch}-{secrets.token_hex(8)}"
        try:
            if self._local is None:
                self._place(draft, batch, text.encode("utf-8"))
            else:
                self._place_locally(self._local, draft, batch, text.encode("utf-8"))
        finally:
            self._files.delete(self._path(draft), False)
        # Another driver may have written this batch, gone on, and removed its record.
        if max(self._numbers(), default=batch) > batch:
            raise PrivacyError(f"Batch {batch} had a record already; nothing is released.")
        stay = {*map(str, [*numbers[1 - KEPT_RECORDS :], batch])}
        for name in set(self._names()) - stay:
            own = re.fullmatch(r"(?:[a-z]+-)?(-?\d+)(?:-\w+)?", name)
            if own and int(own[1]) <= batch:  # what is later is another driver's
                self._files.delete(self._path(name), True)

    def _place_locally(self, folder: Path, draft: str, batch: int, text: bytes) -> None:
        """Write it to disk, then link it to its name, which fails where the name exists."""
        durable.write_new(folder / draft, [text])
        taken = False
        try:
            os.link(folder / draft, folder / str(batch))
        except FileExistsError:
            taken = True
        except OSError:  # a file system without links
            self._rename(draft, batch)
        if taken:
            raise taken_already(batch)
        durable.sync_folder(folder)

    def _place(self, draft: str, batch: int, text: bytes) -> None:
        """The same on other file systems, by Hadoop's rename."""
        stream = self._files.create(self._path(draft), True)
        stream.write(bytearray(text))
        stream.hsync()
        stream.close()
        self._rename(draft, batch)

    def _rename(self, draft: str, batch: int) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        strictly = self._spark._sc._gateway.new_array(hadoop.Options.Rename, 1)
        strictly[0] = hadoop.Options.Rename.NONE
        files = hadoop.FileContext.getFileContext(self._files.getUri(), self._spark._jsc.hadoopConfiguration())
        paths = (self._files.makeQualified(self._path(name)) for name in (draft, str(batch)))
        try:
            files.rename(*paths, strictly)
            return
        except Py4JJavaError as error:
            taken = "FileAlreadyExistsException" in error.java_exception.getClass().getName()
        raise (
            taken_already(batch)
            if taken
            else TableError(f"The checkpoint {self._folder.getParent()} could not be written.")
        )

    def _make_folder(self) -> None:
        """For its owner only, where the file system knows owners: it is as raw as a checkpoint."""
        owner = self._jvm.org.apache.hadoop.fs.permission.FsPermission.valueOf("drwx------")
        self._attempted(lambda: self._files.mkdirs(self._folder, owner))

    def _attempted(self, action: Callable[[], T]) -> T:
        """What Hadoop gives, or a sentence."""
        try:
            done = action()
        except (Py4JJavaError, IllegalArgumentException):
            done = None
        if done:
            return done
        raise TableError(f"The checkpoint {self.checkpoint} must be a folder that can be written to; it is not.")

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._folder, name)

    def _names(self) -> list[str]:
        if not self._files.exists(self._folder):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(self._folder)]

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in self._names() if re.fullmatch(r"-?\d+", name))


def difference(had: dict[str, Any], given: dict[str, Any]) -> str:
    """The first name with another value, in words; nothing where there is none."""
    for name in sorted(had.keys() | given.keys()):
        one, other = had.get(name), given.get(name)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            return difference(one, other)
        if name == "keys":
            return "its keys are others"
        return f"its {name} was {_readable(one)}, not {_readable(other)}"
    return ""


def _readable(value: Any) -> Any:
    """Digits of floats as people write them."""
    if isinstance(value, list):
        return [_readable(part) for part in value]
    digits = isinstance(value, str) and re.fullmatch(r"-?0x[01]\.[0-9a-f]+p[+-]\d+", value)
    return float.fromhex(value) if digits else value


def taken_already(batch: int) -> PrivacyError:
    """What is said to the second of two drivers."""
    return PrivacyError(f"Batch {batch} has a record already; nothing was written.")
