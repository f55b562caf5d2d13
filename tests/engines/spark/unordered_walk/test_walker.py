"""The walk of many keys over rows that come in any order, in any cut, each with its own word."""

from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.engines.spark.unordered_walk import packets
from dpfrugal.engines.spark.unordered_walk.kernel import words_of
from dpfrugal.engines.spark.unordered_walk.packets import Packer
from dpfrugal.engines.spark.unordered_walk.secret_words import siphash_key, word
from dpfrugal.engines.spark.unordered_walk.walker import Walker, walk_rows_compiled, walk_rows_plainly
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.walk.kernel_choice import Path

PATH = Path((0.5, 0.9), Grid(1), 12345)
rows = st.lists(
    st.tuples(st.integers(-1, 2), st.floats(-3, 3), st.integers(0, 2**50)),
    min_size=1,
    max_size=40,
    unique_by=lambda row: row[2],
)


@settings(deadline=None, max_examples=60)
@given(rows=rows, wide=st.booleans())
def test_walk_rows__compiled_equals_plain(rows: list[tuple[int, float, int]], wide: bool) -> None:
    codes, values, positions = (np.array(column) for column in zip(*rows, strict=True))
    words = np.array([word(PATH.key, int(position)) for position in positions], dtype=np.uint64)
    with np.errstate(over="ignore"):  # where functions run as they are written
        assert np.array_equal(words_of(positions, *map(np.uint64, siphash_key(PATH.key))), words)
    steps = np.array([[0, 1], [2, 3], [1, 0]], dtype=np.uint8) if wide else None
    plain, compiled = np.zeros((3, 2), dtype=np.int64), np.zeros((3, 2), dtype=np.int64)
    walk_rows_plainly(plain, steps, words, codes.astype(np.int32), values, PATH)
    walk_rows_compiled(compiled, steps, words, codes.astype(np.int32), values, PATH, 10**6)
    assert np.array_equal(plain, compiled)


def walked(rows: list[tuple[int, float, int]], cut: int, buckets: int = 0) -> list[tuple[int, list[int]]]:
    codes, values, positions = (list(column) for column in zip(*rows, strict=True))
    batch = pa.record_batch(
        {
            "code": pa.array(codes, pa.int32()),
            "item": pa.array(values, pa.float64()),
            "row": pa.array(positions, pa.int64()),
        }
    )
    parts = [batch.slice(first, cut) for first in range(0, len(rows), cut)]
    walker = Walker(PATH.quantiles, 1, PATH.key, np.zeros((3, 2), dtype=np.int64))
    if not buckets:
        found = list(walker(iter(parts)))
    else:  # as Spark does: the packets of each bucket in the order of their groups
        packed = pa.Table.from_batches(list(Packer(buckets, PATH.key)(iter(parts)))).sort_by("group")
        own = [packed.filter(pc.equal(packed["bucket"], bucket)).to_batches() for bucket in range(buckets)]
        found = [result for part in own for result in walker(iter(part))]
    table = pa.Table.from_batches(found)
    assert sum(seen[0] for seen in table["seen"].to_pylist()) == len(rows)
    pairs = zip(table["code"].to_pylist(), table["points"].to_pylist(), strict=True)
    return sorted(pair for pair in pairs if pair[0] != packets.UNDECLARED)


@settings(deadline=None, max_examples=40)
@given(rows=rows, cut=st.integers(1, 40))
def test_walker__does_not_depend_on_the_cut_into_batches(rows: list[tuple[int, float, int]], cut: int) -> None:
    assert walked(rows, cut) == walked(rows, len(rows))


@settings(deadline=None, max_examples=40)
@given(rows=rows, cut=st.integers(1, 40), buckets=st.integers(1, 5), at_once=st.integers(1, 50))
def test_walker__walks_packets_in_the_order_of_words(
    rows: list[tuple[int, float, int]], cut: int, buckets: int, at_once: int
) -> None:
    in_order = sorted(rows, key=lambda row: word(PATH.key, row[2]))
    with mock.patch.object(packets, "ROWS_AT_ONCE", at_once):
        assert walked(rows, cut, buckets) == walked(in_order, len(rows))
        assert walked(rows[::-1], cut, buckets) == walked(in_order, len(rows))


def test_walker__walks_rows_whenever_their_words_say_wherever_they_lie() -> None:
    """Two files change places, as they do on Spark when one value makes the other file the larger one.

    Means of 300 walks differ by more than five standard deviations with a probability below 1e-6. The leg that must
    fail: rows that are walked as they come.
    """
    low, high = [(0, -2.0)] * 100, [(0, 2.0)] * 100

    def ends(files: list[tuple[int, float]], *, packed: bool) -> NDArray[np.float64]:
        found = []
        for key in range(300):
            path = Path((0.5,), Grid(1), key)
            batch = pa.record_batch(
                {
                    "code": pa.array([code for code, _ in files], pa.int32()),
                    "item": [value for _, value in files],
                    "row": np.arange(len(files)),
                }
            )
            packets = pa.Table.from_batches(list(Packer(1, key)(iter([batch])))).sort_by("group").to_batches()
            walker = Walker(path.quantiles, 1, key, np.zeros((1, 1), dtype=np.int64))
            *_, result = walker(iter(packets if packed else [batch]))
            found.append(result["points"][0].as_py()[0])
        return np.array(found, dtype=np.float64)

    def distance(packed: bool) -> float:
        one, other = ends(low + high, packed=packed), ends(high + low, packed=packed)
        return float(abs(one.mean() - other.mean()) / np.sqrt((one.var() + other.var() + 1e-9) / 300))

    assert distance(packed=True) < 5
    assert distance(packed=False) > 5


@settings(deadline=None, max_examples=40)
@given(rows=rows, buckets=st.integers(1, 200), rounds=st.integers(1, 100))
def test_packets__have_a_row_in_one_round(rows: list[tuple[int, float, int]], buckets: int, rounds: int) -> None:
    codes, values, positions = (list(column) for column in zip(*rows, strict=True))
    batch = pa.record_batch({"code": pa.array(codes, pa.int32()), "item": values, "row": positions})
    packer = Packer(buckets, PATH.key, rounds)
    (packed,) = packer(iter([batch]))
    assert packer.groups % rounds == 0
    found = []
    for packet, (contents, group, seen) in zip(packed.to_pylist(), packets.pieces(packed), strict=True):
        assert packet["round"] == packet["group"] * rounds // packer.groups
        assert group == packet["group"]
        assert packet["round"] == 0 or not seen.any()
        for code, own in zip(contents["code"].to_pylist(), contents["word"].to_pylist(), strict=True):
            assert packet["bucket"] == code % buckets
            assert group == (own >> 32) * packer.groups >> 32
            found.append(own)
    assert sorted(found) == sorted(word(PATH.key, row) for code, _, row in rows if code >= 0)


def test_packets__are_cut_where_no_content_of_rows_decides() -> None:
    """The last row of each packet: the same positions, whether the rows before it move an estimate or not."""

    def ends(codes: list[int], items: list[float | None]) -> list[int]:
        batches = [
            pa.record_batch(
                {"code": pa.array([code], pa.int32()), "item": pa.array([item], pa.float64()), "row": [row]}
            )
            for row, (code, item) in enumerate(zip(codes, items, strict=True))
        ]
        with mock.patch.object(packets, "ROWS_AT_ONCE", 3):
            found = [list(packets.pieces(batch)) for batch in Packer(1, PATH.key)(iter(batches))]
        assert sum(counts[0] for packet in found for _, _, counts in packet) == len(codes)
        words = [[own for rows, *_ in packet for own in rows["word"].to_pylist()] for packet in found]
        position = {word(PATH.key, row): row for row in range(len(codes))}
        return [max(position[own] for own in packet) for packet in words]

    assert ends([0] * 6, [1.0] * 6) == ends([0, -1, 0, -2, -3, 0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) == [2, 5]
    assert ends([0] * 6, [None, float("nan"), 1.0, 1.0, None, 1.0]) == [2, 5]


def test_walker__has_the_state_of_a_key_before_its_rows() -> None:
    state = pa.record_batch({"code": pa.array([1, 2], pa.int32()), "points": [[50, 70], [-5, 5]]})
    rows = pa.record_batch({"code": pa.array([2, 0], pa.int32()), "item": [9.0, 9.0], "row": [0, 1]})
    packed = [packet for batch in (state, rows) for packet in Packer(1, PATH.key)(iter([batch]))]
    assert [set(batch["turn"].to_pylist()) for batch in packed] == [{packets.STATE}, {packets.ROWS}]
    walker = Walker(PATH.quantiles, 1, PATH.key, np.zeros((4, 2), dtype=np.int64))
    found = pa.Table.from_batches(list(walker(iter(packed))))
    points = dict(zip(found["code"].to_pylist(), found["points"].to_pylist(), strict=True))
    assert points.keys() == {packets.UNDECLARED, 0, 1, 2}
    assert points[1] == [50, 70]
    assert all(abs(after - before) <= 1 for after, before in zip(points[2], (-5, 5), strict=True))
