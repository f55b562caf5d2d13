"""Cases of tables: neighbours under the relation that they speak of, and answers within the hints."""

from collections import Counter

import pytest

from dpfrugal.audit.neighbour_search import Case
from dpfrugal.audit.table_cases import TOP, added_cases, replaced_cases, table_cases, version_cases
from dpfrugal.privacy.guarantees import PureDP


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", replaced_cases(), ids=by_name)
def test_replaced_cases__differ_in_one_row(case: Case) -> None:
    for (first,), (second,) in case.neighbours:
        left, right = Counter(first) - Counter(second), Counter(second) - Counter(first)
        assert (left.total(), right.total()) == (1, 1)


@pytest.mark.parametrize("case", added_cases(), ids=by_name)
def test_added_cases__have_one_row_more(case: Case) -> None:
    for (first,), (second,) in case.neighbours:
        assert not Counter(first) - Counter(second)
        assert (Counter(second) - Counter(first)).total() == 1


def test_version_cases__differ_in_one_row_of_each_version() -> None:
    [case] = version_cases()
    for first, second in case.neighbours:
        for one, other in zip(first, second, strict=True):
            assert (Counter(one) - Counter(other)).total() <= 1


def test_table_cases__answer_with_whole_numbers_within_the_hints() -> None:
    for case in table_cases():
        for numbers in case.run(PureDP(epsilon=1.0), case.neighbours[0][1]):
            assert all(0 <= number <= TOP and number == int(number) for number in numbers)
