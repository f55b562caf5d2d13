"""The bytes of a file, of a pipe, of compressed text; and what is refused."""

import gzip
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dpfrugal.errors import TableError
from dpfrugal.inputs import file_source
from dpfrugal.inputs.file_source import FileSource

TEXT = "\ufeffx\r\n1\n\n2.5"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_file_source__reads_lines_with_their_ends_and_without_the_mark(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.csv{suffix}"
    packed: dict[str, Any] = {
        "": bytes,
        ".gz": gzip.compress,
        ".zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
    }
    path.write_bytes(packed[suffix](TEXT.encode()))
    source = FileSource.of(path)
    assert list(source.lines()) == ["x\r\n", "1\n", "\n", "2.5"]
    assert source.again
    assert source.size == path.stat().st_size
    assert source.suffixes == [".csv"]
    assert source.head() == path.read_bytes()[:8]


@pytest.mark.parametrize("size", [1, 7, 64, 65])
def test_file_source__cuts_no_line_where_a_block_ends(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_source, "BLOCK_BYTES", 16 * size)
    lines = [f"{'é' * (k % 9)}{k}\n" for k in range(40)]
    (tmp_path / "x.txt").write_text("".join(lines), encoding="utf-8")
    assert list(FileSource.of(tmp_path / "x.txt").lines()) == lines


def test_file_source__holds_a_pipe_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    for most, content in ((6, b"1\n2\n3\n"), (5, None)):
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(b"1\n2\n3\n",))
        writer.start()
        if content is None:
            with pytest.raises(TableError, match="a pipe is held, and may have 5 bytes at most"):
                FileSource.of(path, most)
        else:
            source = FileSource.of(path, most)
            assert not source.again
            assert (source.size, list(source.lines())) == (6, ["1\n", "2\n", "3\n"])
            assert "2" not in repr(source).removeprefix(f"FileSource(path={path!r}")
        writer.join()
        path.unlink()


def test_file_source__refuses_what_is_no_file_and_lines_that_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TableError, match=r"no\.csv: there is no such file\.$"):
        FileSource.of(tmp_path / "no.csv")
    with pytest.raises(TableError, match=r"this is a folder, not a file\.$"):
        FileSource.of(tmp_path)
    monkeypatch.setattr(file_source, "LONGEST_LINE", 10)
    for number, text in ((2, "short\n" + "x" * 11 + "\n1\n"), (1, "y" * 11)):
        (tmp_path / "long.txt").write_text(text, encoding="utf-8")
        with pytest.raises(TableError, match=f"line {number} is longer than 10 bytes"):
            list(FileSource.of(tmp_path / "long.txt").lines())


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: bytes(pa.compress(data, "zstd", asbytes=True))])
def test_file_source__of_a_pipe_is_decompressed_by_its_first_bytes(pack: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(pack(TEXT.encode()),)).start()
    assert list(FileSource.of(tmp_path / "pipe").lines()) == ["x\r\n", "1\n", "\n", "2.5"]
