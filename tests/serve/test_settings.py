"""Settings as values: units, what a window costs, what a total covers, and what a reload cannot change."""

from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import ParameterError
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dpfrugal.serve.settings import TO_BASE_UNIT, Address, Keys, Limits, Metric, Settings, Source, windows_covered

DISCOVERY = ApproxDP(epsilon=0.25, delta=1e-6)


def metric(**changes: Any) -> Metric:
    made = Metric(
        name="latency", about="", unit="milliseconds", source=Source("json", "ms"), label="route", keys=None,
        person=None, quantiles=(0.5,), window=60.0, guarantee=PureDP(epsilon=0.5), total=PureDP(epsilon=5.0),
        windows_per_day=10,
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.parametrize("unit", TO_BASE_UNIT)
def test_metric__has_the_base_unit_in_its_name_once(unit: str) -> None:
    base, scale = TO_BASE_UNIT[unit]
    plain = metric(unit=unit)
    assert plain.base_name == ("latency" if not base else f"latency_{base}")
    assert metric(unit=unit, name=plain.base_name).base_name == plain.base_name
    assert plain.scale == scale
    assert plain.is_time is (base == "seconds")


def test_units__are_exact() -> None:
    """1,000 milliseconds are a second, 1,024 bytes a kibibyte."""
    assert [TO_BASE_UNIT[name][1] for name in ("milliseconds", "nanoseconds", "kibibytes", "percent")] == [
        Fraction(1, 1000), Fraction(1, 10**9), 1024, Fraction(1, 100),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (None, ("",)),
        (Keys("route", ("/a", "/b")), ("/a", "/b")),
        (Keys("route", ("/a", "/b"), other="rest"), ("/a", "/b", "rest")),
        (Keys("route", None, DISCOVERY), None),
    ],
)
def test_shown_keys__are_public(keys: Keys | None, shown: tuple[str, ...] | None) -> None:
    assert metric(keys=keys).shown_keys == shown


def test_cost__of_windows_is_that_of_values_and_keys_together() -> None:
    assert metric().cost_of(3) == PureDP(epsilon=1.5)
    with_keys = metric(keys=Keys("route", None, DISCOVERY))
    assert with_keys.cost == ApproxDP(epsilon=0.75, delta=1e-6)
    assert with_keys.cost_of(4) == ApproxDP(epsilon=3.0, delta=4e-6)


@given(st.integers(1, 2_000), st.integers(1, 999))
def test_windows_covered__is_exact_in_decimals(windows: int, thousandths: int) -> None:
    """The total of so many windows covers them, and a total that is a thousandth less does not."""
    each = thousandths / 1_000
    costs: tuple[tuple[Guarantee, Any], ...] = (
        (PureDP(epsilon=each), lambda size: PureDP(epsilon=size)),
        (ZCDP(rho=each), lambda size: ZCDP(rho=size)),
    )
    for cost, of_size in costs:
        assert windows_covered(of_size(windows * thousandths / 1_000), cost) == windows
        if windows * thousandths > 1:
            assert windows_covered(of_size((windows * thousandths - 1) / 1_000), cost) == windows - 1


def test_windows_covered__needs_one_kind_of_guarantee() -> None:
    with pytest.raises(ParameterError, match="in the same terms"):
        windows_covered(ZCDP(rho=1.0), PureDP(epsilon=1.0))


@pytest.mark.parametrize(
    ("host", "loopback", "text"),
    [
        ("localhost", True, "localhost:80"),
        ("127.0.0.1", True, "127.0.0.1:80"),
        ("127.8.9.1", True, "127.8.9.1:80"),
        ("::1", True, "[::1]:80"),
        ("::", False, "[::]:80"),
        ("0.0.0.0", False, "0.0.0.0:80"),  # noqa: S104 - it is refused elsewhere
        ("localhost.example", False, "localhost.example:80"),
        ("1127.0.0.1", False, "1127.0.0.1:80"),
    ],
)
def test_address__knows_whether_others_can_reach_it(host: str, loopback: bool, text: str) -> None:
    assert Address(host, 80).is_loopback is loopback
    assert str(Address(host, 80)) == text


OTHERS: dict[str, Any] = {
    "listen": Address("127.0.0.1", 9),
    "operator": Address("127.0.0.1", 8),
    "statsd": Address("127.0.0.1", 7),
    "store": Path("other.db"),
    "certificate": Path("c"),
    "private_key": Path("k"),
    "limits": Limits(body=1),
}


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_reload__cannot_change_what_is_open(name: str) -> None:
    before = Settings(metrics=())
    value = OTHERS.get(name, "changed")
    assert before.needs_restart(replace(before, **{name: value})) == ([name] if name in OTHERS else [])


def test_tokens__are_not_printed() -> None:
    settings = Settings(metrics=())
    assert "secret" not in repr(replace(settings.tokens, ingest=("secret",)))
