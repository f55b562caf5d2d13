"""Packets: the rows of many keys as a few long byte strings, so that a cluster sends those and not row by row.

A task gathers its rows by bucket, the code of their key modulo the number of buckets, and by group: rows are walked in
the order of their words, and a group has those between two words. A packet is an Arrow stream of rows with code,
item and word. Rows that move nothing (of other keys, without an item, set aside) are counted where they are read and go
no farther. Where a table is walked in several rounds, each has its groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.engines.spark.unordered_walk.secret_words import COIN_BITS, siphash_key
from dpfrugal.kernels.compiler import loading, read_only

UNDECLARED: Final = -1
NULL_KEY: Final = -2
SET_ASIDE: Final = -3  # more rows than their person may have
NO_PERSON: Final = -4  # a null where a person should be
COUNTS: Final = 5  # rows, missing items, null keys, rows set aside, null persons
ROWS_AT_ONCE: Final = 1 << 20
PACKETS_AT_ONCE: Final = 64  # at least, of so many rows: what is put in order at once is a part of a bucket
STATE, ROWS = 0, 1  # turns: the state of a key comes before its rows


@dataclass(frozen=True)
class Packer:
    """Turns Arrow batches of code, item and row, or of code and points, into packets: ``PACKETS`` in ``keys``."""

    buckets: int
    key: int
    rounds: int = 1

    @property
    def groups(self) -> int:
        """How many groups there are, the same number in each round: where there are few buckets, more than one."""
        return self.rounds * -(-PACKETS_AT_ONCE // (self.buckets * self.rounds))

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One packet per bucket, group and million rows; what was seen goes with the first group."""
        waiting: list[Any] = []
        seen, read = np.zeros(COUNTS, dtype=np.int64), 0
        for batch in batches:
            rows, counts = moving(batch)
            waiting.append(rows)
            seen += counts
            read += len(batch)
            if read >= ROWS_AT_ONCE:
                yield self._packets(waiting, seen)
                waiting, seen, read = [], np.zeros(COUNTS, dtype=np.int64), 0
        if waiting:
            yield self._packets(waiting, seen)

    def _packets(self, waiting: list[Any], seen: NDArray[np.int64]) -> Any:
        import pyarrow as pa

        columns = [pa.concat_arrays([rows.column(k) for rows in waiting]) for k in range(waiting[0].num_columns)]
        rows = pa.record_batch(columns, schema=waiting[0].schema)
        places, groups = rows.column("code").to_numpy() % self.buckets, 1
        if "row" in rows.schema.names:
            rows, groups = with_words(rows, self.key), self.groups
            places = places * groups + groups_of(rows.column("word").to_numpy(), groups)
        places = places.astype(np.min_scalar_type(self.buckets * groups))
        rows = rows.take(pa.array(np.argsort(places, kind="stable")))
        ends = np.cumsum(np.bincount(places, minlength=self.buckets * groups))
        firsts = ends - np.diff(ends, prepend=0)
        own = np.union1d([0], np.flatnonzero(ends > firsts))  # place 0 is of the first group, and carries the counts
        packets = [_bytes(rows.slice(firsts[place], ends[place] - firsts[place])) for place in own]
        counts = np.zeros((own.size, COUNTS), dtype=np.int64)
        counts[0] = seen
        turn = STATE if "points" in rows.schema.names else ROWS
        each = pa.array(np.arange(own.size + 1, dtype=np.int32) * COUNTS)
        packed = {
            "bucket": pa.array((own // groups).astype(np.int32)),
            "round": pa.array((own % groups * self.rounds // groups).astype(np.int32)),
            "group": pa.array((own % groups).astype(np.int32)),
            "turn": pa.array(np.full(own.size, turn, dtype=np.int32)),
            "rows": pa.array(packets, pa.binary()),
            "seen": pa.ListArray.from_arrays(each, pa.array(counts.reshape(-1))),
        }
        return pa.RecordBatch.from_pydict(packed)


def with_words(rows: Any, key: int) -> Any:
    """The rows with their words in place of their positions."""
    import pyarrow as pa

    with loading("words"):
        from dpfrugal.engines.spark.unordered_walk.kernel import words_of

        with np.errstate(over="ignore"):
            words = words_of(read_only(rows.column("row").to_numpy()), *map(np.uint64, siphash_key(key)))
    kept = [name for name in rows.schema.names if name != "row"]
    return pa.record_batch([*(rows.column(name) for name in kept), pa.array(words)], names=[*kept, "word"])


def groups_of(words: NDArray[np.uint64], groups: int) -> NDArray[np.int64]:
    """The group of each row: so many equal parts of all words, by their upper halves."""
    return ((words >> np.uint64(COIN_BITS)) * np.uint64(groups) >> np.uint64(64 - COIN_BITS)).astype(np.int64)


def _bytes(rows: Any) -> Any:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue().to_pybytes()


def moving(batch: Any) -> tuple[Any, NDArray[np.int64]]:
    """The rows that move an estimate, without nulls, and how many there are of each kind in all."""
    import pyarrow as pa

    codes = batch.column("code").to_numpy()
    if "points" in batch.schema.names:
        return batch, np.zeros(COUNTS, dtype=np.int64)
    missing = batch.column("item").is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    counts = [len(batch), missing.sum(), *((codes == kind).sum() for kind in (NULL_KEY, SET_ASIDE, NO_PERSON))]
    kept = (codes >= 0) & ~missing
    return batch if kept.all() else batch.filter(pa.array(kept)), np.array(counts, dtype=np.int64)


def pieces(batch: Any) -> Iterator[tuple[Any, int | None, NDArray[np.int64]]]:
    """Rows that move estimates, or states of keys, of a batch of packets or of rows; with their group and counts.

    Rows that come in an order of their own have no group.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = batch.schema.names
    if "rows" in names:
        counts = batch.column("seen").flatten().to_numpy().reshape(-1, COUNTS)
        for packet, group, seen in zip(batch.column("rows"), batch.column("group").to_pylist(), counts, strict=True):
            yield pa.ipc.open_stream(packet.as_buffer()).read_next_batch(), group, seen
    elif "points" in names:  # states and rows, in this order
        state = batch.column("points").is_valid()
        yield batch.filter(state).select(["code", "points"]), None, np.zeros(COUNTS, dtype=np.int64)
        rows, seen = moving(batch.filter(pc.invert(state)).select(["code", "item", "row"]))
        yield rows, None, seen
    else:
        rows, seen = moving(batch)
        yield rows, None, seen
