"""The options that commands share: one guarantee is asked for, and each field is an option of every command."""

import inspect
import itertools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

import dpfrugal as dpf
from dpfrugal.cli.options import (
    EstimatorOptions,
    KeyOptions,
    guarantee_from,
    ledger_from,
    with_shared_options,
)
from dpfrugal.cli.quantile import quantile
from dpfrugal.cli.watch import watch
from dpfrugal.errors import ParameterError

GIVEN = {"epsilon": 0.5, "delta": 1e-6, "rho": 0.25, "calibration": "classic"}
# Which of them make a guarantee, and which; all other choices are refused.
GUARANTEES: dict[frozenset[str], dpf.Guarantee] = {
    frozenset({"epsilon"}): dpf.PureDP(epsilon=0.5),
    frozenset({"epsilon", "delta"}): dpf.ApproxDP(epsilon=0.5, delta=1e-6),
    frozenset({"rho"}): dpf.ZCDP(rho=0.25),
    frozenset({"epsilon", "delta", "calibration"}): dpf.ApproxDP(epsilon=0.5, delta=1e-6, calibration="classic"),
}


def asked(**options: Any) -> EstimatorOptions:
    return EstimatorOptions([[0.5]], **options)  # type: ignore[list-item]


@pytest.mark.parametrize(
    "names", [frozenset(some) for size in range(5) for some in itertools.combinations(GIVEN, size)], ids=sorted
)
def test_guarantee__is_stated_in_one_of_four_ways(names: frozenset[str]) -> None:
    """Every choice among the options: none is ignored, and there is no default."""
    given: dict[str, Any] = {"epsilon": None, "delta": None, "rho": None} | {name: GIVEN[name] for name in names}
    if names in GUARANTEES:
        assert guarantee_from(**given) == GUARANTEES[names]
        assert asked(**given).guarantee() == GUARANTEES[names]
    else:
        with pytest.raises(ParameterError, match=r"--(epsilon|rho|calibration|delta)"):
            guarantee_from(**given)


@pytest.mark.parametrize("names", [(), ("ledger",), ("dataset",), ("ledger", "dataset")])
def test_ledger__and_dataset_belong_together(names: tuple[str, ...], tmp_path: Path) -> None:
    dpf.Ledger(tmp_path / "b.db", total=dpf.PureDP(epsilon=1.0))
    path = tmp_path / "b.db" if "ledger" in names else None
    dataset = "clicks" if "dataset" in names else None
    if len(names) == 1:
        with pytest.raises(ParameterError, match="belong together"):
            ledger_from(path, dataset)
    else:
        assert (ledger_from(path, dataset) is None) is (not names)


def test_discovered_keys__and_values_cost_together_what_was_asked_for() -> None:
    values, discovery = KeyOptions(discover_keys=True).guarantees(asked(epsilon=0.6, delta=1e-6))
    assert discovery is not None
    assert values == dpf.PureDP(epsilon=0.3)
    assert (values.epsilon + discovery.epsilon, discovery.delta) == (0.6, 1e-6)
    assert KeyOptions(keys=Path("k")).guarantees(asked(rho=0.25)) == (dpf.ZCDP(rho=0.25), None)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (KeyOptions(), {"epsilon": 1.0}),
        (KeyOptions(keys=Path("k"), discover_keys=True), {"epsilon": 1.0, "delta": 1e-6}),
        (KeyOptions(discover_keys=True), {"epsilon": 1.0}),
        (KeyOptions(discover_keys=True), {"rho": 1.0}),
        (KeyOptions(discover_keys=True), {"epsilon": 1.0, "delta": 1e-6, "rho": 1.0}),
        (KeyOptions(discover_keys=True), {"epsilon": 1.0, "delta": 1e-6, "calibration": "analytic"}),
        (KeyOptions(keys=Path("k")), {"epsilon": 1.0, "algorithm": "private-quantile"}),
    ],
    ids=str,
)
def test_keys__are_declared_or_discovered(keys: KeyOptions, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        keys.guarantees(asked(**options))


def test_quantiles__may_be_listed_and_repeated() -> None:
    assert EstimatorOptions([[0.5, 0.9], [0.99]]).quantiles == [0.5, 0.9, 0.99]  # type: ignore[list-item]


@pytest.mark.parametrize("command", [quantile, watch])
def test_shared_options__are_options_of_both_commands(command: Any) -> None:
    """The same annotation and the same default, and none of them is there as a whole."""
    found = inspect.signature(command).parameters
    for kind in (EstimatorOptions, KeyOptions):
        for field in fields(kind):
            assert found[field.name].annotation == field.type, field.name
            assert field.name == "quantiles" or found[field.name].default == field.default
    assert "options" not in found


def test_shared_options__reach_the_command_as_one_value() -> None:
    seen = []

    @with_shared_options
    def command(first: int, options: EstimatorOptions, *, key_options: KeyOptions) -> None:
        seen.append((first, options, key_options))

    app = typer.Typer()
    app.command()(command)
    arguments = ["3", "-q", "0.5,0.9", "--rho", "2", "--discover-keys"]
    typer.main.get_command(app).main(arguments, standalone_mode=False)
    assert seen == [(3, EstimatorOptions([[0.5, 0.9]], rho=2.0), KeyOptions(discover_keys=True))]  # type: ignore[list-item]
