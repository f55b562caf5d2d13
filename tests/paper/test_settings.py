"""The paper's parameters, and how figures are named."""

from dataclasses import replace

import pytest

from dpfrugal.errors import ParameterError
from dpfrugal.paper.settings import ALGORITHMS, FIGURES, PANELS, Scale, chosen_figures, default_setting


def test_settings__have_the_grids_of_table_2() -> None:
    assert {name: panel.values for name, panel in PANELS.items()} == {
        "1a": (0.1, 0.5, 1.0, 2.0),
        "2a": (0.01, 0.04, 0.08, 0.1),
        "3a": (0.1, 0.5, 1.0, 5.0),
        **dict.fromkeys(("1b", "2b", "3b"), (0.1, 0.3, 0.5, 0.99)),
        **dict.fromkeys(("1c", "2c", "3c"), (10, 50, 75, 100)),
    }
    assert Scale().lengths == [10_000_000, 50_000_000, 75_000_000, 100_000_000]
    assert Scale().repetitions == 10
    defaults = {algorithm: default_setting(algorithm, "D5", 10) for algorithm in ALGORITHMS}
    assert [(s.quantile, s.epsilon, s.delta, s.rho) for s in defaults.values()] == [
        (0.99, 1.0, None, None),
        (0.99, 1.0, 0.04, None),
        (0.99, None, None, 1.0),
    ]


def test_settings__choose_figures_by_name_or_number() -> None:
    assert chosen_figures([]) == list(FIGURES)
    assert chosen_figures(["4", "1a", "1a"]) == ["1a", "4"]
    assert chosen_figures(["1"]) == ["1a", "1b", "1c", "1d"]
    for unknown in ("9z", "", "a", "1e", "11"):
        with pytest.raises(ParameterError, match=r"one of 1a, 1b, 1c, 1d, 2a, .*, 4, accuracy, start"):
            chosen_figures([unknown])


@pytest.mark.parametrize("figure", PANELS)
def test_panel__varies_its_parameter_alone(figure: str) -> None:
    panel = PANELS[figure]
    default = default_setting(panel.algorithm, "D5", 10_000)
    found = panel.settings(10_000)
    assert len({getattr(setting, panel.varied) for setting in found}) == len(panel.values)
    for setting in found:
        assert replace(setting, **{panel.varied: getattr(default, panel.varied)}) == default
        assert setting.guarantee.noise_scale(2) > 0
