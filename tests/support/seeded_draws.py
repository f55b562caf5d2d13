"""Draws that another run repeats, so that what it releases can be compared: of choices by a seed, of noise none."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from dpfrugal.estimators.table.choices import group_answers
from dpfrugal.privacy import choice


@contextmanager
def seeded_draws(seed: int = 7) -> Iterator[None]:
    """Choices in here are those of any other run in here with the same windows of order statistics."""
    chance = random.Random(seed)  # noqa: S311
    replaced: list[tuple[Any, str, Any]] = [
        (choice, "secrets", SimpleNamespace(randbits=chance.getrandbits)),
        (choice, "os", SimpleNamespace(urandom=chance.randbytes)),
        (group_answers, "add_noise_to_many", lambda values, *_: values),
    ]
    before = [getattr(module, name) for module, name, _ in replaced]
    try:
        for module, name, value in replaced:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(replaced, before, strict=True):
            setattr(module, name, value)
