"""The options of a table: sizes as people write them, and defaults under which nothing was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.cli.table.table_options import DEFAULT_MEMORY, LEAST_MEMORY, UNITS, TableOptions, bytes_of
from dpfrugal.errors import ParameterError


@given(st.integers(1, 999), st.sampled_from(sorted(UNITS)), st.sampled_from(["", "b", "B"]), st.booleans())
def test_sizes__have_every_unit(number: int, unit: str, byte: str, spaced: bool) -> None:
    size = number * UNITS[unit]
    text = f"{number}{' ' if spaced else ''}{unit.upper()}{byte}"
    if size < LEAST_MEMORY:
        with pytest.raises(ParameterError, match="--memory"):
            bytes_of(text)
    else:
        assert bytes_of(text) == size


@pytest.mark.parametrize(("text", "size"), [("2GB", 2 * 10**9), ("500 mb", 5 * 10**8), ("1.5GiB", 1_610_612_736)])
def test_sizes__are_read_as_people_write_them(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    "text", ["", "lots", "-1GB", "10", "1XB", "0.5", "GB", "1PB", "1e9", "1,5GB", "infGB", "1 GB or so"]
)
def test_sizes__that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="--memory"):
        bytes_of(text)


def test_sizes__of_the_default_is_a_gigabyte() -> None:
    assert bytes_of(DEFAULT_MEMORY) == bytes_of(TableOptions().memory) == 10**9
