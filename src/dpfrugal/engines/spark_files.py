"""Files of a stream's checkpoint, on whatever file system Spark keeps it: one record per micro-batch.

A record is written beside its place and moved into it, so it is there as a whole or not at all; one that is there
already is never replaced, also not by another driver at the same moment. Its number is the batch's; the newest counts.
The record is raw private state, guarded like the checkpoint it lies in; so are tables that executors write beside it.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Collection
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from dpfrugal.engines.spark_worker import run
from dpfrugal.errors import DPFrugalError, ParameterError, PrivacyError, TableError

FORMAT: Final = 3
FOLDER: Final = "dpfrugal-raw-state"
KEPT_RECORDS: Final = 2
DRAFT: Final = "draft-"


class Records:
    """The records of one query."""

    def __init__(self, spark: Any, checkpoint: str | os.PathLike[str], query: dict[str, Any]) -> None:
        if not isinstance(checkpoint, str | os.PathLike) or not os.fspath(checkpoint):
            raise ParameterError("checkpoint must be the path of a folder: without one, a restart would count again.")
        self.checkpoint = os.fspath(checkpoint)
        self._spark, self._jvm = spark, spark._jvm
        self._folder = self._jvm.org.apache.hadoop.fs.Path(self.checkpoint, FOLDER)
        self._files = self._folder.getFileSystem(spark._jsc.hadoopConfiguration())
        self._query = json.loads(json.dumps(query))

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
        for name, given in ({"format": FORMAT} | self._query).items():
            if (had := record.get("query", {}).get(name, record.get(name))) != given:
                raise ParameterError(
                    f"The checkpoint {self._folder.getParent()} belongs to another query: its {name} is {had}, "
                    f"not {given}. Use a new folder."
                )
        return numbers[-1], record["state"]

    def write(self, batch: int, state: dict[str, Any], tables: Collection[str] = ()) -> None:
        """Keep a record, once; older ones than the last two go.

        ``tables`` are those that the next batch goes on from. All others go too, and what a kill has left.
        """
        numbers = self._numbers()
        if numbers and numbers[-1] >= batch:
            raise PrivacyError(f"Batch {batch} has a record already; nothing was written.")
        body = json.dumps({"format": FORMAT, "query": self._query, "state": state})
        text = f"{hashlib.sha256(body.encode('utf-8')).hexdigest()}\n{body}"
        draft = self._path(f"{DRAFT}{batch}-{secrets.token_hex(8)}")
        stream = self._files.create(draft, True)
        stream.write(bytearray(text.encode("utf-8")))
        stream.hsync()
        stream.close()
        try:
            self._place(draft, self._path(str(batch)))
        finally:
            self._files.delete(draft, False)
        # Another driver may have written this batch, gone on, and removed its record.
        if max(self._numbers(), default=batch) > batch:
            raise PrivacyError(f"Batch {batch} had a record already; nothing is released.")
        stay = {*map(str, [*numbers[1 - KEPT_RECORDS :], batch]), *tables}
        for name in set(self._names()) - stay:
            self._files.delete(self._path(name), True)

    def _place(self, draft: Any, target: Any) -> None:
        """Give the draft its name, if nothing has it. A link does so at once; elsewhere Hadoop's rename is asked to."""
        problem: DPFrugalError = PrivacyError(f"Batch {target.getName()} has a record already; nothing was written.")
        if self._files.getUri().getScheme() == "file":
            try:
                os.link(*(self._files.makeQualified(path).toUri().getPath() for path in (draft, target)))
                return
            except FileExistsError:
                raise problem from None
            except OSError:  # a file system without links
                pass
        try:
            self._rename(draft, target)
            return
        except Py4JJavaError as error:
            if "FileAlreadyExistsException" not in error.java_exception.getClass().getName():
                problem = TableError(f"The checkpoint {self._folder.getParent()} could not be written.")
        raise problem

    def _rename(self, draft: Any, target: Any) -> None:
        hadoop = self._jvm.org.apache.hadoop.fs
        strictly = self._spark._sc._gateway.new_array(hadoop.Options.Rename, 1)
        strictly[0] = hadoop.Options.Rename.NONE
        files = hadoop.FileContext.getFileContext(self._files.getUri(), self._spark._jsc.hadoopConfiguration())
        files.rename(*(self._files.makeQualified(path) for path in (draft, target)), strictly)

    def frame(self, name: str) -> Any:
        """A table that executors wrote beside the records."""
        return self._spark.read.parquet(self._path(name).toString())

    def write_frame(self, name: str, frame: Any) -> str:
        """Let executors write a table beside the records, under a name of its own that no other driver takes."""
        own = f"{name}-{secrets.token_hex(8)}"
        run(lambda: frame.write.parquet(self._path(own).toString()))
        return own

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._folder, name)

    def _names(self) -> list[str]:
        if not self._files.exists(self._folder):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(self._folder)]

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in self._names() if name.isdigit())
