"""Files of every kind give the same numbers; damaged ones give one sentence."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dpfrugal.errors import TableError
from dpfrugal.inputs import file_source, files
from dpfrugal.inputs.files import open_column

ITEMS = np.random.default_rng(2).normal(100, 30, 300_000).round(3)
TABLE = pa.table({"id": np.arange(ITEMS.size), "ms": ITEMS, "name": ["x"] * ITEMS.size})


def write_parquet(path: Path) -> None:
    pq.write_table(TABLE, path, row_group_size=70_000)


def write_csv(path: Path) -> None:
    pa.csv.write_csv(TABLE, path)


def write_csv_gz(path: Path) -> None:
    plain = path.with_name("plain.csv")
    write_csv(plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))


def write_csv_zst(path: Path) -> None:
    plain = path.with_name("plain.csv")
    write_csv(plain)
    with pa.output_stream(path, compression="zstd") as file:
        file.write(plain.read_bytes())


def write_ndjson(path: Path) -> None:
    path.write_text("".join(json.dumps({"name": "x", "ms": item}) + "\n" for item in ITEMS.tolist()))


def write_arrow_file(path: Path) -> None:
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=50_000)


def write_arrow_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=50_000)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.parquet": write_parquet,
    "a.csv": write_csv,
    "a.csv.gz": write_csv_gz,
    "a.csv.zst": write_csv_zst,
    "a.ndjson": write_ndjson,
    "a.jsonl": write_ndjson,
    "a.arrow": write_arrow_file,
    "a.arrows": write_arrow_stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_files__of_every_kind_give_the_same_numbers(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    column = open_column(path, "ms")
    batches = list(column.batches)
    assert np.array_equal(np.concatenate([batch.to_numpy() for batch, _ in batches]), ITEMS)
    assert max(len(batch) for batch, _ in batches) <= files.BATCH_ROWS
    if column.total:
        assert sum(made for _, made in batches) == column.total


@pytest.mark.parametrize("name", WRITERS)
def test_files__answer_a_missing_column_with_those_there_are(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    header = True if ".csv" in name else None
    for column in ("nope", None):
        with pytest.raises(TableError, match=r"there are .*name"):
            open_column(path, column, header=header)


def test_csv__no_cell_of_a_first_line_is_shown_unless_it_is_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b"secret,1\nms,2\n")
    with pytest.raises(TableError, match="no column 'ms' in its first line") as refusal:
        open_column(path, "ms")
    assert "secret" not in str(refusal.value)
    with pytest.raises(TableError, match="'secret', '1'"):
        open_column(path, "ms", header=True)
    keyed = written(tmp_path / "b.csv", b"key,x\na,2\n")
    with pytest.raises(TableError, match="no column 'ms'; there are 'key', 'x'"):
        open_column(keyed, "ms", beside=("key",))
    with pytest.raises(TableError, match="without a header has no column 'x'"):
        open_column(keyed, "x", header=False)
    with pytest.raises(TableError, match=r"line 1 has 2 fields; choose a column"):
        list(open_column(keyed).batches)
    with pytest.raises(TableError, match="header is for CSV files"):
        open_column(written(tmp_path / "a.ndjson", b'{"ms": 1}'), "ms", header=True)


@pytest.mark.parametrize("first", ["ms", "12.5", "", "NA"])
@pytest.mark.parametrize("header", [None, True, False])
def test_csv__whether_there_is_a_header_does_not_depend_on_a_cell(
    first: str, header: bool | None, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.csv", f"{first}\n7\n8\n".encode())
    try:
        rows = sum(len(batch) for batch, _ in open_column(path, header=header).batches)
    except TableError as refusal:
        assert first == "ms"
        assert "line 1" in str(refusal)  # noqa: PT017
    else:
        assert rows == (2 if header else 3)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("column", ["ms", "b, c"])
def test_csv__finds_what_divides_the_columns(delimiter: str, column: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'ms{delimiter}"b, c"\n1.5{delimiter}1.5\n2{delimiter}2\n')
    (batch, _), *_rest = open_column(path, column).batches
    assert batch.to_pylist() == [1.5, 2.0]


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson", "a.csv.gz", "a.csv.zst", "a.jsonl.gz"])
@pytest.mark.parametrize("before", [b"", b"ms\n1\n", b'{"ms": 1}\n'])
def test_csv_and_json__refuse_a_line_that_is_too_long(name: str, before: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    with pa.output_stream(path, compression="detect" if path.suffix in (".gz", ".zst") else None) as file:
        file.write(before + b"7" * (3 << 20))
    with pytest.raises(TableError) as refusal:
        list(open_column(path, "ms").batches)
    if before in (b"", b'{"ms": 1}\n' if "json" in name else b"ms\n1\n"):
        line = before.count(b"\n") + 1
        assert str(refusal.value) == f"{path}: line {line} is longer than 1,048,576 bytes, which is the limit."


def test_file_source__lines_are_those_of_the_text_however_blocks_cut_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"\xef\xbb\xbfa,b\r\nc\rd\n\n\xc3\xa4"
    path = written(tmp_path / "a.txt", text)
    for size in range(16, 16 * 20, 16):
        monkeypatch.setattr(file_source, "BLOCK_BYTES", size)
        assert list(file_source.FileSource(path).lines()) == ["a,b\r\n", "c\r", "d\n", "\n", "ä"]


def test_files__a_pipe_is_read_once_and_held(tmp_path: Path) -> None:
    for content in (b"1\n2\n4\n", parquet_bytes()):
        path = tmp_path / f"pipe{len(content)}"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(content,))
        writer.start()
        (batch, _), *_rest = open_column(path).batches
        writer.join()
        assert batch.to_pylist() == [1, 2, 4]
    with pytest.raises(TableError, match="this is a device, not a file"):
        file_source.FileSource.of(Path("/dev/zero"))
    endless = tmp_path / "endless"
    os.mkfifo(endless)
    writer = threading.Thread(target=endless.write_bytes, args=(bytes(101),))
    writer.start()
    with pytest.raises(TableError, match="may have 100 bytes at most"):
        file_source.FileSource.of(endless, 100)
    writer.join()


def parquet_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1, 2, 4]}), sink)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_files__refuse_a_column_that_is_not_numeric(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    with pytest.raises(TableError, match="'name' is not numeric; it holds string"):
        open_column(path, "name")


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson"])
def test_csv_and_json__refuse_a_column_that_is_not_numeric_at_its_first_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    line = 2 if name == "a.csv" else 1
    with pytest.raises(TableError, match=f"line {line}, column 'name': not a number"):
        list(open_column(path, "name").batches)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("keep", [0.9, 0.5, 0.1])
def test_files__that_are_truncated_are_refused_or_end_early(name: str, keep: float, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    try:
        rows = sum(len(batch) for batch, _ in open_column(path, "ms").batches)
    except TableError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either end is fine, a long message is not
    else:
        assert "parquet" not in name
        assert rows < ITEMS.size


@pytest.mark.parametrize("distinct", [True, False])
def test_files__of_parquet_refuse_cells_that_are_too_long(distinct: bool, tmp_path: Path) -> None:
    """400 cells of two megabytes each are a few kilobytes of file; neither way of storing them is expanded."""
    cells = [f"{index if distinct else 7}" + "secret" * 350_000 for index in range(40 if distinct else 400)]
    table = pa.table({"ms": range(len(cells)), "key": cells})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    del table
    before = pa.total_allocated_bytes()
    with pytest.raises(TableError, match="column 'key' has a cell of more than 1,048,576 bytes") as refusal:
        list(open_column(tmp_path / "a.parquet", "ms", beside=("key",)).batches)
    assert "secret" not in str(refusal.value)
    assert pa.total_allocated_bytes() - before < 50e6
    assert sum(len(batch) for batch, _ in open_column(tmp_path / "a.parquet", "ms").batches) == len(cells)


def test_files__of_arrow_are_read_without_their_other_columns(tmp_path: Path) -> None:
    write_arrow_file(tmp_path / "a.arrow")
    before = pa.total_allocated_bytes()
    (batch, _), *_rest = open_column(tmp_path / "a.arrow", "ms", beside=("id",)).batches
    assert batch.schema.names == ["ms", "id"]
    assert pa.total_allocated_bytes() - before < 3 * ITEMS.size * 8


def test_files__refuse_damaged_parquet_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 4000] = bytes(4000)
    path.write_bytes(data)
    with pytest.raises(TableError, match="truncated or damaged"):
        [batch for name in ("ms", "id") for batch in open_column(path, name).batches]


BAD_TEXT: dict[str, tuple[str, str, str]] = {
    "word in csv": ("b.csv", "ms,name\n1,a\n2,b\n4242x,c\n", "line 4, column 'ms': not a number"),
    "quoted newline in csv": ("b.csv", 'ms,name\n1,"a\nb"\n4242x,c\n', "line 4, column 'ms': not a number"),
    "too many fields": ("b.csv", "ms,name\n1,a\n4242,b,c\n", "line 3 has 3 fields, the first line has 2"),
    "bare numbers": ("b.csv", "1\n2\n4242x\n", "line 3, column 'value': not a number"),
    "late in csv": ("b.csv", "ms\n" + "1\n" * 500_000 + "4242x\n", "line 500002, column 'ms': not a number"),
    "string in ndjson": ("b.ndjson", '{"ms": 1}\n{"ms": "4242"}\n', "line 2, column 'ms': not a number"),
    "bool in ndjson": ("b.ndjson", '{"ms": 1}\n{"ms": true}\n', "line 2, column 'ms': not a number"),
    "late in ndjson": ("b.ndjson", '{"ms": 1}\n' * 2_000 + '{"ms": "4242"}\n', "line 2001, column 'ms': not a number"),
    "half a line": ("b.ndjson", '{"ms": 1}\n' * 2_000 + '{"ms": 4242', "line 2001 is not a JSON object"),
    "an array": ("b.json", '[{"ms": 4242}]', "line 1 is not a JSON object"),
    "no json": ("b.json", "ms: 4242", "not a readable JSON Lines file in UTF-8"),
    "a number beyond floats": ("b.ndjson", '{"ms": 1}\n{"ms": 1e4242}\n', "line 2, column 'ms': not a number"),
    "deep nesting": ("b.ndjson", '{"ms": ' + "[" * 50_000 + "4242", "not a readable JSON Lines file"),
    "no header, two columns": ("b.csv", "4242.5,a\n1,b\n", "no column 'ms' in its first line"),
    "no header, but a column": ("b.csv", "4242.5\n1\n", "no column 'ms' in its first line"),
    "two columns of a name": ("b.csv", "ms,ms\n4242,1\n", "2 columns 'ms'"),
}


@pytest.mark.parametrize("case", BAD_TEXT)
def test_csv_and_json__name_bad_text_by_its_line_and_do_not_show_it(case: str, tmp_path: Path) -> None:
    name, text, message = BAD_TEXT[case]
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TableError, match=message) as error:
        list(open_column(path, None if case == "bare numbers" else "ms").batches)
    assert "4242" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("c.csv", "ms\n1\n2.5\n4", [1, 2.5, 4]),
        ("c.txt", "1\n2.5\n-3e2\ninf\n", [1, 2.5, -300, np.inf]),
        ("c.csv", "\ufeffms,b\n1,2\n", [1]),
        ("c.csv", 'ms,b\n"7","x,y"\n', [7]),
        ("c.tsv", "b\tms\nx\t5\n", [5]),
        ("c.ndjson", '{"ms": 1}\n\n{"other": 2, "ms": 2.5}\n', [1, 2.5]),
    ],
)
def test_csv_and_json__read_text_as_people_write_it(
    name: str, text: str, expected: list[float], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    found = [batch for batch, _ in open_column(path, None if name == "c.txt" else "ms").batches]
    assert np.concatenate([batch.to_numpy(zero_copy_only=False) for batch in found]).tolist() == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "nope.csv", "no such file"),
        (lambda path: path, "this is a folder"),
        (lambda path: Path("/dev/null"), "this is a device, not a file"),
        (lambda path: written(path / "e.csv", b""), "empty"),
        (lambda path: written(path / "e.xyz", b"hello"), "--format"),
        (lambda path: written(path / "e.parquet", b"PAR1 and then nothing"), "not a readable Parquet file"),
        (lambda path: written(path / "e.csv", b"\xff\xfe\x00\x01"), "not a readable CSV file in UTF-8"),
        (lambda path: written(path / "e.arrow", b"ARROW1\0\0"), "not a readable Arrow IPC file"),
    ],
)
def test_files__that_cannot_be_read_are_refused(make: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        list(open_column(make(tmp_path), "ms").batches)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "text", ["ms,b\n1,x\n,y\nNA,z\n2,x\n", "ms\n1\n\nNA\n2\n", "1\n\nnan\n2", "ms\r\n1\r\n\r\nNULL\r\n2\r\n"]
)
def test_csv_and_json__take_a_missing_item_for_an_item(text: str, tmp_path: Path) -> None:
    """Were it dropped, all later items would meet other coins: no guarantee would be left."""
    path = tmp_path / "n.csv"
    path.write_text(text, newline="")
    (batch, _), *_rest = open_column(path, None if text[0] == "1" else "ms").batches
    assert batch.to_pylist() == [1, None, None, 2]


@pytest.mark.parametrize("first", ["", "NA", "nan", "12.5", "-inf"])
def test_csv_and_json__have_as_many_items_whatever_the_first_one_is(first: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{first}\n7\n8\n")
    assert sum(len(batch) for batch, _ in open_column(path).batches) == 3


def test_files__let_no_raw_text_travel_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ms,b\n1,x\nsecret,y\n")
    with pytest.raises(TableError) as error:
        list(open_column(path, "ms").batches)
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


def test_files__read_numeric_kinds_that_are_not_plain(tmp_path: Path) -> None:
    path = tmp_path / "k.parquet"
    columns: dict[str, Any] = {
        "decimal": pa.array([1, 2], type=pa.decimal128(10, 3)),
        "dictionary": pa.array([1.5, 2.5]).dictionary_encode(),
        "null": pa.nulls(2),
    }
    pq.write_table(pa.table(columns), path)
    for name in columns:
        assert sum(len(batch) for batch, _ in open_column(path, name).batches) == 2


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.ndjson"])
def test_csv_and_json__are_read_through_files_of_pyarrows_own(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that reads ahead of an error through a file of Python's aborts the program that ends meanwhile."""
    import pyarrow.csv
    import pyarrow.json

    path, sources = tmp_path / name, []
    text = b'{"value": 1}\n' if "ndjson" in name else b"value\n1\n"
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    for module, opener in ((pyarrow.csv, "open_csv"), (pyarrow.json, "open_json")):
        original = getattr(module, opener)

        def listening(source: Any, original: Any = original, **options: Any) -> Any:
            sources.append(source)
            return original(source, **options)

        monkeypatch.setattr(module, opener, listening)
    assert sum(len(batch) for batch, _ in files.open_column(path, "value").batches) == 1
    assert len(sources) == 1
    assert isinstance(sources[0], pa.NativeFile)
    assert not isinstance(sources[0], pa.PythonFile)
