"""Figures 1a–c, 2, 3 and 4: the relative error of released values.

A chunk of the stream is generated once and given to all estimators of the task. On the grid every value is the
``release()`` of a ``DPFrugal1U`` of its own; as published it is the estimate of ``Frugal1U``, which has the same coins
and so the same path, plus the authors' noise. All walks start at 0.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.paper.cpu_time import ESTIMATORS, EXACT, Clock
from dpfrugal.paper.datasets import CHUNK, DATASETS
from dpfrugal.paper.exact_quantiles import ExactQuantiles, ranks, selected
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, CONVENTIONS, ON_GRID, OWN_COUNTS, released_as_published
from dpfrugal.paper.results import ResultsFile
from dpfrugal.paper.settings import ALGORITHMS, DECIMALS, DISTRIBUTIONS, PANELS, START, Scale, Setting, default_setting
from dpfrugal.paper.task import Task
from dpfrugal.privacy.guarantees import PureDP

SETTING_COLUMNS: Final = ("algorithm", "dataset", "items", "quantile", "epsilon", "delta", "rho")
KEY: Final = ("figure", "convention", *SETTING_COLUMNS, "repetition")
VALUES: Final = ("seed", "exact_lower", "exact_upper", "released", "relative_error")


def tasks(figure: str, scale: Scale) -> list[Task]:
    """One per stream: per repetition of a panel, and per dataset and repetition of Figure 4."""
    if figure == DISTRIBUTIONS:
        streams = {
            name: [default_setting(algorithm, name, scale.items) for algorithm in (*ALGORITHMS, "PrivateQuantile")]
            for name in DATASETS
        }
    else:
        settings = PANELS[figure].settings(scale.items)
        streams = {settings[0].dataset: settings}
    return [
        Task(
            figure=figure,
            dataset=name,
            repetition=repetition,
            rows=tuple(
                row_key(figure, convention, setting, repetition)
                for setting in settings
                for convention in conventions_of(setting)
            ),
            work=max(setting.items for setting in settings),
            run=run,
        )
        for name, settings in streams.items()
        for repetition in range(1, scale.repetitions + 1)
    ]


def conventions_of(setting: Setting) -> tuple[str, ...]:
    """Both for the walk; ``PrivateQuantile`` has no grid."""
    return (OWN_COUNTS,) if setting.algorithm == "PrivateQuantile" else CONVENTIONS


def row_key(figure: str, convention: str, setting: Setting, repetition: int) -> dict[str, Any]:
    """The columns that name a row."""
    columns = {column: getattr(setting, column) for column in SETTING_COLUMNS}
    return {"figure": figure, "convention": convention, **columns, "repetition": repetition}


class Contender:
    """The estimator of one row: it sees the stream, and releases a value at its end."""

    setting: Setting
    published: bool

    def __init__(self, row: dict[str, Any], seed: int) -> None:
        self.row = row
        self.setting = Setting(**{column: row[column] for column in SETTING_COLUMNS})
        self.published = row["convention"] == AS_PUBLISHED
        self._estimator: DPFrugal1U | PrivateQuantile | None = None
        if row["convention"] == ON_GRID:
            self._estimator = DPFrugal1U(
                self.setting.quantile, self.setting.guarantee, decimals=DECIMALS, start=START, coin_seed=seed
            )
        elif row["convention"] == OWN_COUNTS:
            self._estimator = PrivateQuantile(self.setting.quantile, self.setting.guarantee)

    def update(self, chunk: Any) -> None:
        """Take in a chunk, unless the shared walk does."""
        if self._estimator is not None:
            self._estimator.update_many(chunk)

    def released(self, walk: Frugal1U) -> float:
        """The private value."""
        if isinstance(self._estimator, PrivateQuantile):
            return self._estimator.release(close=True).value
        if self._estimator is not None:
            return self._estimator.release().value
        estimate = walk.estimates[walk.quantiles.index(self.setting.quantile)]
        return released_as_published(estimate, self.setting.guarantee)


def load_compiler() -> None:
    """Load what all tasks use, so that it is not part of the time of any."""
    some = np.zeros(CHUNK)
    Frugal1U(0.5).update_many(some)
    PrivateQuantile(0.5, PureDP(epsilon=1.0)).update_many(some)
    ExactQuantiles([0.5]).update(some)


def run(task: Task, results: ResultsFile, clock: Clock) -> None:
    """Go once through the stream and write every row where its stream ends."""
    dataset = DATASETS[task.dataset]
    seed = dataset.seed(task.repetition)
    contenders = [Contender(row, seed) for row in task.missing(results)]
    cuts = sorted({contender.setting.items for contender in contenders})
    quantiles = sorted({contender.setting.quantile for contender in contenders})
    walk = Frugal1U(quantiles, decimals=DECIMALS, start=START, coin_seed=seed)
    exact = ExactQuantiles(quantiles)
    for chunk in clock.chunks(dataset.stream(seed, cuts)):
        with clock.spent_on(EXACT):
            exact.update(chunk)
        with clock.spent_on(ESTIMATORS):
            if any(contender.published for contender in contenders):
                walk.update_many(chunk)
            for contender in contenders:
                contender.update(chunk)
        if clock.items not in cuts:
            continue
        with clock.spent_on(EXACT):
            found = exact.at_now()
        for contender in [contender for contender in contenders if contender.setting.items == clock.items]:
            quantile = contender.setting.quantile
            with clock.spent_on(EXACT):
                lower, upper = found[quantile] or exactly(task.dataset, seed, clock.items, quantile)
            with clock.spent_on(ESTIMATORS):
                released = contender.released(walk)
            error = abs(released - lower) / abs(lower)
            results.append(
                {
                    **contender.row,
                    "seed": seed,
                    "exact_lower": lower,
                    "exact_upper": upper,
                    "released": released,
                    "relative_error": error,
                }
            )
            contenders.remove(contender)


def exactly(name: str, seed: int, items: int, quantile: float) -> tuple[float, float]:
    """Lower and upper quantile by selection, for a stream whose first chunk gave a wrong bracket."""
    lower, upper = (selected(lambda: DATASETS[name].stream(seed, [items]), rank) for rank in ranks(quantile, items))
    return lower, upper
