"""Checkpoints: a stream goes on exactly as it would have, in bounded memory, and no item is released twice."""

from pathlib import Path

import numpy as np
import pytest

from tests.laws import laws
from tests.laws.kinds import KINDS, PRIVATE, REPEATING, Kind

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_private_kind = pytest.mark.parametrize("kind", PRIVATE.values(), ids=PRIVATE)
every_repeating_kind = pytest.mark.parametrize("kind", REPEATING.values(), ids=REPEATING)
STREAMS = {
    "normal": np.random.default_rng(1).normal(50, 2, 24_000),
    "ties": np.random.default_rng(2).integers(0, 7, 24_000).astype(float),
    "cauchy": np.random.default_rng(3).standard_cauchy(24_000),
}


@every_kind
@pytest.mark.parametrize("stream", STREAMS)
def test_save_and_load__go_on_exactly(kind: Kind, stream: str, tmp_path: Path) -> None:
    places = np.random.default_rng([len(repr(kind)), len(stream)])
    options = {"nan_policy": "omit" if stream == "ties" else "raise"}
    for cut in (0, 1, *places.integers(0, 20_000, 3).tolist()):
        waiting = int(places.integers(0, 900))
        laws.checkpoint_goes_on_exactly(kind, STREAMS[stream], cut, waiting, tmp_path / "state", **options)


@every_repeating_kind
def test_save_and_load__keep_the_last_release(kind: Kind, tmp_path: Path) -> None:
    laws.release_is_restored(kind, tmp_path / "state")


@every_private_kind
def test_load__lets_one_of_all_copies_go_on(kind: Kind, tmp_path: Path) -> None:
    laws.one_of_all_copies_goes_on(kind, tmp_path)


@every_repeating_kind
def test_load__goes_on_from_a_stale_checkpoint_without_its_items(kind: Kind, tmp_path: Path) -> None:
    laws.stale_checkpoint_forgets_its_items(kind, tmp_path)


@every_private_kind
def test_load__asks_for_the_ledger_or_for_the_risk_to_be_accepted(kind: Kind, tmp_path: Path) -> None:
    laws.replay_risk_is_accepted_aloud(kind, tmp_path)


@every_kind
def test_save__writes_no_more_however_many_items_have_come(kind: Kind, tmp_path: Path) -> None:
    laws.memory_is_bounded(kind, tmp_path / "state")
