"""Columns: which one is read, and how a file that cannot give one is refused."""

from pathlib import Path

import pyarrow as pa
import pytest

from dpfrugal.errors import TableError
from dpfrugal.inputs.columns import attempt, chosen, damaged

FILE = Path("clicks.csv")


def test_attempt__lets_no_message_travel_with_its_failure() -> None:
    def failing() -> None:
        raise pa.ArrowInvalid("could not convert 4242")

    with pytest.raises(TableError) as refusal:
        attempt(failing, damaged(FILE, "CSV"))
    assert refusal.value.__context__ is None
    assert refusal.value.__cause__ is None
    assert str(refusal.value) == "clicks.csv: this is not a readable CSV file; it may be truncated or damaged."
    assert attempt(lambda: 5, damaged(FILE, "CSV")) == 5
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0, damaged(FILE, "CSV"))
    with pytest.raises(TableError):
        attempt(lambda: 1 // 0, damaged(FILE, "CSV"), (ZeroDivisionError,))


def test_chosen__is_the_only_column_or_the_named_one() -> None:
    assert chosen(FILE, ["x"], None) == "x"
    assert chosen(FILE, ["x", "y"], "y") == "y"


@pytest.mark.parametrize(
    ("names", "column", "sentence"),
    [
        (["x", "y"], None, "choose a column with --column; there are 'x', 'y'."),
        (["x", "y"], "z", "there is no column 'z'; there are 'x', 'y'."),
        (["x", "x"], "x", "there are 2 columns 'x'; rename all but one."),
        ([f"c{k}" for k in range(25)], None, "'c19' and 5 more."),
    ],
)
def test_chosen__says_which_columns_there_are(names: list[str], column: str | None, sentence: str) -> None:
    with pytest.raises(TableError) as refusal:
        chosen(FILE, names, column)
    assert str(refusal.value).endswith(sentence)
