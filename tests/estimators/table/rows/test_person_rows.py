"""The rows of a column that count, of each person at most so many."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from dpfrugal.errors import ItemError
from dpfrugal.estimators.table.base.kinds import INTEGERS
from dpfrugal.estimators.table.rows.person_rows import person_rows

WHO = ["a"] * 50 + ["b"] * 3 + ["c"]
VALUES = np.arange(54)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_person_rows__are_at_most_so_many_of_each_person(most: int) -> None:
    frame = pd.DataFrame({"x": VALUES, "who": WHO})
    kind, codes, rows = person_rows(frame, "x", "who", most, "raise")
    assert (kind, rows) == (INTEGERS, 54)
    had = Counter(WHO)
    assert Counter(WHO[code] for code in codes.tolist()) == {who: min(had[who], most) for who in had}
    assert codes.tolist() == sorted(codes.tolist())


def test_person_rows__are_chosen_by_chance_and_not_by_where_they_stand() -> None:
    """Of 50 rows of a person one counts: 30 equal choices have a chance of 50^-29."""
    frame = pd.DataFrame({"x": VALUES, "who": WHO})
    assert len({person_rows(frame, "x", "who", 1, "raise")[1][0] for _ in range(30)}) > 1


def test_person_rows__a_missing_value_is_refused_or_takes_nobodys_place() -> None:
    frame = pd.DataFrame({"x": [None, 1.0, None], "who": ["a", "a", "b"]})
    with pytest.raises(ItemError, match="NaN or null rows"):
        person_rows(frame, "x", "who", 1, "raise")
    for _ in range(20):
        _, codes, rows = person_rows(frame, "x", "who", 1, "omit")
        assert (codes.size, rows) == (1, 3)
