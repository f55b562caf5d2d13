"""Parameters: what breaks its rule is refused when the estimator is made, by its name."""

from typing import Any

import pytest

import dpfrugal as dpf
from tests.laws.kinds import KINDS, PRIVATE, WITH_COINS, Kind

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_private_kind = pytest.mark.parametrize("kind", PRIVATE.values(), ids=PRIVATE)


@every_kind
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"start": float("nan")}, "start"),
        ({"start": "0"}, "start"),
        ({"start": True}, "start"),
        ({"nan_policy": "drop"}, "nan_policy"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_parameters__are_named_when_they_are_refused(kind: Kind, options: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        kind.make(**options)


@pytest.mark.parametrize("kind", WITH_COINS.values(), ids=WITH_COINS)
@pytest.mark.parametrize(
    ("options", "name"),
    [({"decimals": -1}, "decimals"), ({"decimals": 400}, "decimals"), ({"coin_seed": -1}, "coin_seed")],
)
def test_parameters__of_the_grid_and_the_coins_are_named(kind: Kind, options: dict[str, Any], name: str) -> None:
    with pytest.raises(dpf.ParameterError, match=name):
        kind.make(**options)


@every_private_kind
@pytest.mark.parametrize(
    ("most", "error"),
    [
        *((most, dpf.ParameterError) for most in (0, -1, 10**10)),
        *((most, dpf.ParameterTypeError) for most in (1.5, "2", True, None)),
    ],
)
def test_max_items_per_person__is_refused_out_of_its_range(kind: Kind, most: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_items_per_person"):
        kind.make(max_items_per_person=most)


@every_private_kind
@pytest.mark.parametrize("guarantee", [None, 1.0, "ε=1", dpf.PureDP], ids=repr)
def test_guarantee__must_be_one(kind: Kind, guarantee: Any) -> None:
    with pytest.raises(dpf.ParameterTypeError, match="guarantee"):
        kind.cls(0.5, guarantee, **kind.options)


@every_kind
@pytest.mark.parametrize(
    ("quantile", "error"),
    [
        *((q, dpf.ParameterError) for q in (0, 1, -0.5, 2, float("nan"), float("inf"), [], [0.5, 0.5], [0.5, 1.0])),
        *((q, dpf.ParameterTypeError) for q in ("0.5", None, 0.5j, ["0.5"])),
    ],
)
def test_quantile__must_lie_between_0_and_1_and_occur_once(kind: Kind, quantile: Any, error: type[Exception]) -> None:
    promised = (kind.guarantee,) if kind.private else ()
    with pytest.raises(error, match="quantile"):
        kind.cls(quantile, *promised, **kind.options)
