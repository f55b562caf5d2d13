"""Differentially private quantiles of a stream, in constant memory.

>>> import dpfrugal as dpf
>>> p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), decimals=1)
>>> p.update_many(range(1000))
>>> r = p.release()
>>> r.items
1000
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpfrugal.budget.ledger import Ledger
from dpfrugal.errors import (
    BudgetExceeded,
    CheckpointError,
    CheckpointWarning,
    DPFrugalError,
    ItemError,
    ItemTypeError,
    LedgerError,
    ParameterError,
    ParameterTypeError,
    PrivacyError,
    ReplayError,
    TableError,
)
from dpfrugal.estimators.releases import Release, SegmentRelease, WalkRelease
from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, Sensitivity
from dpfrugal.version import __version__

if TYPE_CHECKING:
    from dpfrugal.estimators.display.plots import plot_quantiles
    from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
    from dpfrugal.estimators.table.describe import Description, describe
    from dpfrugal.estimators.table.private_quantiles import private_quantiles
    from dpfrugal.estimators.table.quantiles_by import quantiles_by
    from dpfrugal.estimators.table.release import TableRelease
    from dpfrugal.estimators.windows.keyed_window_quantile import KeyedWindowQuantile
    from dpfrugal.estimators.windows.window_quantile import WindowQuantile
    from dpfrugal.estimators.windows.window_release import WindowRelease

__all__ = [
    "ZCDP",
    "ApproxDP",
    "BudgetExceeded",
    "CheckpointError",
    "CheckpointWarning",
    "DPFrugal1U",
    "DPFrugalError",
    "Description",
    "Frugal1U",
    "Guarantee",
    "ItemError",
    "ItemTypeError",
    "KeyedDPFrugal1U",
    "KeyedWindowQuantile",
    "Ledger",
    "LedgerError",
    "ParameterError",
    "ParameterTypeError",
    "PrivacyError",
    "PrivateQuantile",
    "PureDP",
    "Release",
    "ReplayError",
    "SegmentRelease",
    "Sensitivity",
    "TableError",
    "TableRelease",
    "WalkRelease",
    "WindowQuantile",
    "WindowRelease",
    "__version__",
    "describe",
    "plot_quantiles",
    "private_quantiles",
    "quantiles_by",
]

# Imported when they are first asked for, so that importing this package stays quick.
_LATER = {
    "KeyedDPFrugal1U": "dpfrugal.estimators.keyed.keyed_dp_frugal",
    "quantiles_by": "dpfrugal.estimators.table.quantiles_by",
    "Description": "dpfrugal.estimators.table.describe",
    "plot_quantiles": "dpfrugal.estimators.display.plots",
    "describe": "dpfrugal.estimators.table.describe",
    "private_quantiles": "dpfrugal.estimators.table.private_quantiles",
    "TableRelease": "dpfrugal.estimators.table.release",
    "KeyedWindowQuantile": "dpfrugal.estimators.windows.keyed_window_quantile",
    "WindowQuantile": "dpfrugal.estimators.windows.window_quantile",
    "WindowRelease": "dpfrugal.estimators.windows.window_release",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _show_tables_in_notebooks() -> None:
    """A pyarrow.Table has no ``_repr_html_`` and cannot be given one: in a notebook, IPython is told."""
    if "IPython" in sys.modules:
        from dpfrugal.estimators.display.html import show_tables_in_notebooks

        show_tables_in_notebooks()


_show_tables_in_notebooks()
