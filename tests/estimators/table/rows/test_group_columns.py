"""Columns of public keys, with a label or a null as one more of them, in the type that they have."""

import pyarrow as pa
import pytest

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.rows.group_columns import key_columns_with, no_keys, refuse_declared, with_null_key
from dpfrugal.keys.columns import KeyColumns

COLUMNS = {"country": pa.array(["at", "de"]), "plan": pa.array([1, 2], pa.int16())}


def test_key_columns__with_a_label_have_it_last_in_their_own_types() -> None:
    found = key_columns_with(COLUMNS, ("others", 0))
    assert {name: column.to_pylist() for name, column in found.items()} == {
        "country": ["at", "de", "others"],
        "plan": [1, 2, 0],
    }
    assert found["plan"].type == pa.int16()


def test_key_columns__without_keys_have_the_label_alone_and_its_type() -> None:
    index = KeyColumns(["country", "plan"])
    empty = no_keys(index)
    assert {name: len(column) for name, column in empty.items()} == {"country": 0, "plan": 0}
    found = key_columns_with(empty, ("others", 0))
    assert [column.to_pylist() for column in found.values()] == [["others"], [0]]


def test_key_columns__with_a_null_key_keep_their_types() -> None:
    found = with_null_key(COLUMNS)
    assert [column.to_pylist() for column in found.values()] == [["at", "de", None], [1, 2, None]]
    assert [column.type for column in found.values()] == [pa.string(), pa.int16()]


def test_refuse_declared__a_label_is_none_of_the_keys() -> None:
    index = KeyColumns(["country"], ["at", "de"])
    refuse_declared(index, None)
    refuse_declared(index, ("others",))
    with pytest.raises(ParameterError, match="other must not be one of keys"):
        refuse_declared(index, ("de",))
