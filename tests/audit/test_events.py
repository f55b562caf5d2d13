"""Events: what tells transcripts of two streams apart is found, and nothing where nothing does."""

import numpy as np
import pytest

from dpfrugal.audit.events import best_event, by_frequency, by_laplace, changes, scores, shown
from dpfrugal.privacy.guarantees import PureDP

ONE = PureDP(epsilon=1.0)


def test_views__are_all_numbers_or_what_changes_between_releases() -> None:
    transcripts = np.array([[[1.0, 2.0], [4.0, 2.5]]])  # one run, two releases of two numbers
    assert shown(transcripts).tolist() == [[1, 2, 4, 2.5]]
    assert changes(transcripts).tolist() == [[1, 2, 3, 0.5]]


def test_by_laplace__is_the_log_likelihood_ratio() -> None:
    rate = by_laplace(np.array([0.0, 5.0]), np.array([2.0, 5.0]))
    assert rate(np.array([[0.0, 9.0], [2.0, 5.0], [1.0, -3.0]])).tolist() == [2.0, -2.0, 0.0]


def test_by_frequency__rates_values_by_how_often_each_side_had_them() -> None:
    one, other = np.array([[0.0]] * 30 + [[1.0]] * 10), np.array([[0.0]] * 10 + [[1.0]] * 30)
    rated = by_frequency(one, other)(np.array([[0.0], [1.0], [7.0]]))
    assert rated[0] == pytest.approx(np.log(30.5 / 10.5))
    assert rated[1] == pytest.approx(-rated[0])
    assert rated[2] == 0.0  # never seen


def test_scores__look_at_frequencies_only_of_numbers_that_were_chosen() -> None:
    few = np.tile([[[0.0]], [[1.0]]], (20, 1, 1))
    assert not any("frequencies" in score.name for score in scores(few, few))
    assert any("frequencies" in score.name for score in scores(few, few, chosen=True))


@pytest.mark.parametrize("place", [0, 1])
def test_best_event__finds_the_number_that_moved(place: int) -> None:
    rng = np.random.default_rng(7)  # synthetic transcripts: no noise of the library
    first, second = rng.laplace(size=(2, 4_000, 1, 2))
    first[:, 0, place] += 3.0  # three scales: a true ε of 3
    event = best_event(first, second, ONE, 20_000)
    assert 2.0 < event.expected < 3.0
    moved, still = event.score.of(first).mean(), event.score.of(second).mean()
    assert moved > still


def test_best_event__expects_nothing_of_transcripts_that_are_alike() -> None:
    first, second = np.random.default_rng(8).laplace(size=(2, 4_000, 1, 2))
    assert best_event(first, second, ONE, 20_000).expected < 0.15
