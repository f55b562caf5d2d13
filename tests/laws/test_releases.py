"""Releases: an item is released once, and what was released is shown again without noise."""

import pytest

from tests.laws import laws
from tests.laws.kinds import PRIVATE, REPEATING, WITH_COINS, Kind

every_private_kind = pytest.mark.parametrize("kind", PRIVATE.values(), ids=PRIVATE)
every_repeating_kind = pytest.mark.parametrize("kind", REPEATING.values(), ids=REPEATING)
with_coins = pytest.mark.parametrize("kind", WITH_COINS.values(), ids=WITH_COINS)
PRIVATE_WITH_COINS = {name: kind for name, kind in PRIVATE.items() if kind.tosses_coins}


@every_repeating_kind
def test_release__hides_no_item_a_second_time(kind: Kind) -> None:
    laws.nothing_is_released_twice(kind)


@every_repeating_kind
def test_release__is_the_same_until_an_item_comes(kind: Kind) -> None:
    laws.release_is_repeated(kind)


@with_coins
def test_coin_seed__reproduces_the_walk(kind: Kind) -> None:
    laws.seeds_fix_the_coins(kind)


@pytest.mark.parametrize("kind", PRIVATE_WITH_COINS.values(), ids=PRIVATE_WITH_COINS)
def test_coin_seed__reproduces_no_noise(kind: Kind) -> None:
    laws.seeds_fix_no_noise(kind)
