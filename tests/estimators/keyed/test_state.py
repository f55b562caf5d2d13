"""The state of many keys: rows move it, a release adds noise in steps and starts the next walk at what it showed."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.estimators.grid import LARGEST_ESTIMATE, Grid
from dpfrugal.estimators.keyed.adaptive_steps import UP
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.estimators.walk.kernel_choice import Path
from dpfrugal.kernels import compiler
from dpfrugal.privacy.guarantees import PureDP, Sensitivity
from tests.support.noise_tape import Fixed, no_noise, replace_noise

GUARANTEE, SENSITIVITY = PureDP(epsilon=1.0), Sensitivity(l1=4, l2_squared=8)
PATH = Path((0.5, 0.9), Grid(1), key=7)


def state_at(starts: list[int], *, adaptive_steps: bool = True) -> KeyedState:
    return KeyedState.at(np.array(starts, dtype=np.int64), PATH, adaptive_steps)


def with_estimates(state: KeyedState, estimates: list[list[int]], exponents: list[list[int]]) -> KeyedState:
    state.estimates[:] = estimates
    if state.steps is not None:
        state.steps[:] = exponents
    return state


def rows(size: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    draws = np.random.default_rng(1)
    return draws.integers(-1, 3, size).astype(np.int32), draws.normal(2, 5, size)


def test_at__has_every_quantile_of_a_key_at_its_start() -> None:
    state = state_at([3, -40])
    assert state.estimates.tolist() == [[3, 3], [-40, -40]]
    assert state.anchors.tolist() == [[0.3, 0.3], [-4.0, -4.0]]
    assert state.steps is not None
    assert not state.steps.any()
    assert (state.items, state.released_at, state.farthest, state.widest) == (0, 0, 40, 1)
    assert state_at([0], adaptive_steps=False).steps is None


def test_copy__is_walked_on_without_touching_the_original() -> None:
    state = state_at([0, 0, 0])
    copied = state.copy()
    copied.walk(*rows(500), threads=1)
    assert (state.items, copied.items) == (0, 500)
    assert not state.estimates.any()
    assert copied.estimates.all()


def test_walk__has_the_same_result_in_one_batch_or_several_and_compiled_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, values = rows(900)
    ends = []
    for compiled, cuts in ((False, [900]), (False, [100, 350, 900]), (True, [900]), (True, [1, 899, 900])):
        monkeypatch.setattr(compiler, "worth_loading", lambda *_, compiled=compiled: compiled)
        state, first = state_at([0, 5, -5]), 0
        for last in cuts:
            state.walk(codes[first:last], values[first:last], threads=1)
            first = last
        ends.append((state.estimates.tolist(), state.items))
    assert ends[0][1] == 900
    assert ends[1:] == ends[:1] * 3


def test_walk__moves_by_whole_steps_of_the_key() -> None:
    plain, wide = state_at([0, 0, 0]), state_at([0, 0, 0])
    wide = KeyedState(**{**vars(with_estimates(wide, [[0, 0]] * 3, [[3, 0]] * 3)), "widest": 8})
    codes = np.zeros(40, dtype=np.int32)
    for state in (plain, wide):
        state.walk(codes, np.full(40, 1e6), threads=1)
    assert plain.estimates[0, 0] > 5
    assert wide.estimates[0].tolist() == [8 * plain.estimates[0, 0], plain.estimates[0, 1]]


@pytest.mark.parametrize("keys", [3, 9])
def test_with_room__doubles_or_more_and_keeps_what_there_is(keys: int) -> None:
    state = with_estimates(state_at([1, 2]), [[7, 8], [9, 10]], [[1, 0], [0, 2]])
    wider = state.with_room(keys, start=-50)
    assert len(wider.estimates) == len(wider.anchors) == max(keys, 4)
    assert wider.estimates[:3].tolist() == [[7, 8], [9, 10], [-50, -50]]
    assert wider.anchors[1:3].tolist() == [[0.2, 0.2], [-5.0, -5.0]]
    assert wider.steps is not None
    assert wider.steps[:3].tolist() == [[1, 0], [0, 2], [0, 0]]
    assert wider.farthest == 50


def test_resized__drops_the_keys_that_are_not_kept() -> None:
    state = with_estimates(state_at([1, 2, 3]), [[1, 1], [2, 2], [3, 3]], [[0, 0]] * 3)
    assert state.resized(1, 2, start=4).estimates.tolist() == [[1, 1], [4, 4]]


def test_release__adds_noise_in_steps_and_keeps_the_offset_of_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is 2^e grid units: 37 with e = 3 is 4 steps and an offset of 5, which is that of its anchor."""
    tape = Fixed(10)
    replace_noise(monkeypatch, tape)
    state = with_estimates(state_at([5, 0]), [[37, 101], [-8, 3]], [[3, 0], [2, 1]])
    values, exponents, after = state.release(None, GUARANTEE, SENSITIVITY, None)
    assert tape.hidden == [[37 >> 3, 101, -8 >> 2, 3 >> 1]]
    noisy = Fixed(10)([0, 0, 0, 0])  # what the tape answered, whatever it was asked
    points = [[(noisy[0] << 3) + 5, noisy[1]], [noisy[2] << 2, (noisy[3] << 1) + 1]]
    assert after.estimates.tolist() == [sorted(row) for row in points]
    assert values.tolist() == (after.estimates / 10).tolist() == after.anchors.tolist()
    assert exponents.tolist() == [[3, 3], [2, 2]]  # both rows crossed: each value may carry the noise of either
    assert state.estimates.tolist() == [[37, 101], [-8, 3]]


def test_release__without_noise_shows_the_estimates_and_continues_there(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_noise(monkeypatch, no_noise)
    state = state_at([0, 0, 0])
    state.walk(*rows(600), threads=1)
    values, exponents, after = state.release(None, GUARANTEE, SENSITIVITY, None)
    assert (10 * values).round().astype(int).tolist() == state.estimates.tolist() == after.estimates.tolist()
    assert not exponents.any()
    assert (after.items, after.released_at) == (600, 600)
    assert after.farthest == abs(state.estimates).max()


def test_release__of_some_keys_leaves_the_others_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_noise(monkeypatch, lambda values: [value + 1 for value in values])
    state = with_estimates(state_at([0, 0, 0]), [[1, 2], [3, 4], [5, 6]], [[0, 0]] * 3)
    values, exponents, after = state.release(np.array([2, 0]), GUARANTEE, SENSITIVITY, None)
    assert values.tolist() == [[0.6, 0.7], [0.2, 0.3]]
    assert exponents.shape == (2, 2)
    assert after.estimates.tolist() == [[2, 3], [3, 4], [6, 7]]
    assert after.anchors.tolist() == [[0.2, 0.3], [0.0, 0.0], [0.6, 0.7]]


def test_release__learns_steps_from_released_values_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two releases that are far from their anchors in one direction double the step; raw estimates do not matter."""
    replace_noise(monkeypatch, lambda values: [1000 * (1 + values[0] // 1000)] * len(values))
    ends = []
    for hidden in (3, 400):
        state = with_estimates(state_at([0]), [[hidden, hidden]], [[0, 0]])
        once = state.release(None, GUARANTEE, SENSITIVITY, None)[2]
        once.estimates[:] += hidden
        twice = once.release(None, GUARANTEE, SENSITIVITY, None)[2]
        assert once.steps is not None
        assert twice.steps is not None
        assert (once.steps.tolist(), once.widest) == ([[UP, UP]], 1)
        assert (twice.steps.tolist(), twice.widest) == ([[UP + 1, UP + 1]], 2)
        ends.append(twice.anchors.tolist())
    assert ends[0] == ends[1] == [[200.0, 200.0]]


@pytest.mark.parametrize("sign", [-1, 1])
def test_release__puts_noise_beyond_the_grid_back_on_its_end(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_noise(monkeypatch, lambda values: [sign * (2**63 - 1)] * len(values))
    state = with_estimates(state_at([0]), [[0, 5]], [[0, 3]])
    _, _, after = state.release(None, GUARANTEE, SENSITIVITY, None)
    assert np.abs(after.estimates).max() <= LARGEST_ESTIMATE
    assert (sign * after.estimates > LARGEST_ESTIMATE - 16).all()
