"""Bits that a test chooses: every way in which a choice or noise takes randomness is replaced here, at once."""

import secrets
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.estimators.table.choices import group_answers
from dpfrugal.estimators.table.rows import brackets
from dpfrugal.keys import hash_tables, person_limits
from dpfrugal.privacy import choice, noise


def replace_bits(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Choices repeat those of another run with the same seed, and noise is none."""
    replace_bits_of_choices(patch, seed)
    patch.setattr(noise, "add_noise", lambda values, *_: [int(value) for value in values])
    patch.setattr(group_answers, "add_noise_to_many", lambda values, *_: np.asarray(values, dtype=np.int64))


def replace_bits_of_choices(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Choices repeat those of another run with the same seed."""
    draws, apart = np.random.default_rng(seed), SimpleNamespace(**vars(secrets))

    def randbits(count: int) -> int:
        return int.from_bytes(draws.bytes(-(-count // 8)), "big") >> (-count % 8)

    def words(groups: int, each: int) -> NDArray[np.uint64]:
        return np.frombuffer(draws.bytes(8 * groups * each), dtype=np.uint64).reshape(groups, each)

    for module in (hash_tables, person_limits, brackets):  # their seeds are not those of choices
        patch.setattr(module, "secrets", apart)
    patch.setattr(secrets, "randbits", randbits)
    patch.setattr(choice, "words", words)
