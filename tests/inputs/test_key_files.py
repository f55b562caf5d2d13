"""Files of declared keys: text, Parquet or Arrow; what is none is refused in one sentence."""

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from dpfrugal.errors import TableError
from dpfrugal.inputs.key_files import read_key_columns, read_keys


@pytest.mark.parametrize(
    ("name", "text", "kind", "keys"),
    [
        ("keys.txt", "a\nb\n", pa.string(), ["a", "b"]),
        ("keys.txt", "\ufeffä\r\nö", pa.string(), ["ä", "ö"]),
        ("keys.csv", "page\na\nb\n", pa.string(), ["a", "b"]),
        ("keys.txt", "page\na\n", pa.string(), ["page", "a"]),
        ("keys.txt", "3\n-7\n", pa.int32(), [3, -7]),
        ("keys.txt", "a\n", pa.dictionary(pa.int32(), pa.string()), ["a"]),
        ("keys.txt", "a\n", pa.string_view(), ["a"]),
        ("keys.txt", "a\n", pa.null(), ["a"]),
    ],
)
def test_read_keys__reads_lines_as_the_type_of_the_column(
    name: str, text: str, kind: Any, keys: list[Any], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert read_keys(tmp_path / name, "page", kind).to_pylist() == keys


@pytest.mark.parametrize("write", [pq.write_table, pyarrow.feather.write_feather], ids=["parquet", "arrow"])
def test_read_keys__reads_a_column_of_a_binary_file(write: Any, tmp_path: Path) -> None:
    write(pa.table({"page": ["a", "b"], "other": [1, 2]}), tmp_path / "keys")
    assert read_keys(tmp_path / "keys", "page", pa.string()).to_pylist() == ["a", "b"]
    with pytest.raises(TableError, match="choose a column"):
        read_keys(tmp_path / "keys", "absent", pa.string())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no keys in it"),
        (b"a\n\nb\n", "line 2 is blank"),
        (b"\xff\xfe\x00", "not a readable file of keys"),
        (b"PAR1 and nothing else", "not a readable file of keys"),
        (b"4242x\n", "must be int64, as those of 'page' are"),
    ],
)
def test_read_keys__refuses_in_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(TableError, match=sentence) as refusal:
        read_keys(tmp_path / "keys", "page", pa.int64())
    assert "4242" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_read_keys__refuses_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="folder, not a file of keys"):
        read_keys(tmp_path, "page", pa.string())
    with pytest.raises(TableError, match="no such file of keys"):
        read_keys(tmp_path / "absent", "page", pa.string())


@pytest.mark.parametrize(("content", "keys"), [(b"a\nb\n", ["a", "b"]), (b"PAR1....", None)])
def test_read_keys__takes_text_from_a_pipe(content: bytes, keys: list[str] | None, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys")
    threading.Thread(target=(tmp_path / "keys").write_bytes, args=(content,)).start()
    if keys is not None:
        assert read_keys(tmp_path / "keys", "key", pa.string()).to_pylist() == keys
        return
    with pytest.raises(TableError, match="keys in a pipe are text"):
        read_keys(tmp_path / "keys", "key", pa.string())


def test_read_keys__refuses_a_small_file_of_long_keys_without_holding_them(tmp_path: Path) -> None:
    """Of 3 MB each, a thousand times: the file has them once."""
    keys = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 3_000_000]))
    pq.write_table(pa.table({"key": keys}), tmp_path / "keys.parquet", store_schema=False)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(TableError, match="a cell of more than"):
        read_keys(tmp_path / "keys.parquet", "key", pa.string())
    with pytest.raises(TableError, match="a cell of more than"):
        read_key_columns(tmp_path / "keys.parquet", ["key", "key"], [pa.string()] * 2)
    assert pa.default_memory_pool().max_memory() < before + (1 << 28)


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv"])
def test_read_key_columns__takes_files_of_several_columns(kind: str, tmp_path: Path) -> None:
    keys = pa.table({"shop": ["a", "b"], "year": pa.array([2025, 2026], pa.int32()), "more": [1.5, 2.5]})
    write = {"parquet": pq.write_table, "feather": pa.feather.write_feather, "csv": pa.csv.write_csv}[kind]
    write(keys, tmp_path / "keys")
    found = read_key_columns(tmp_path / "keys", ["year", "shop"], [pa.int64(), pa.string()])
    assert found.to_pydict() == {"year": [2025, 2026], "shop": ["a", "b"]}
    with pytest.raises(TableError, match="no column 'region'"):
        read_key_columns(tmp_path / "keys", ["region", "shop"], [pa.string()] * 2)
    with pytest.raises(TableError, match="no such file of keys"):
        read_key_columns(tmp_path / "none", ["year", "shop"], [pa.string()] * 2)
