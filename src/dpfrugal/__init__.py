"""Differentially private quantiles of a stream, in constant memory.

>>> import dpfrugal as dpf
>>> p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), decimals=1)
>>> p.update_many(range(1000))
>>> r = p.release()
>>> r.items
1000
"""

from dpfrugal.dp_frugal import DPFrugal1U
from dpfrugal.errors import (
    DPFrugalError,
    ItemError,
    ItemTypeError,
    ParameterError,
    ParameterTypeError,
    PrivacyError,
    TableError,
)
from dpfrugal.frugal import Frugal1U
from dpfrugal.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, Sensitivity
from dpfrugal.keyed import KeyedDPFrugal1U
from dpfrugal.quantile import PrivateQuantile
from dpfrugal.release import Release, SegmentRelease, WalkRelease
from dpfrugal.version import __version__

__all__ = [
    "ZCDP",
    "ApproxDP",
    "DPFrugal1U",
    "DPFrugalError",
    "Frugal1U",
    "Guarantee",
    "ItemError",
    "ItemTypeError",
    "KeyedDPFrugal1U",
    "ParameterError",
    "ParameterTypeError",
    "PrivacyError",
    "PrivateQuantile",
    "PureDP",
    "Release",
    "SegmentRelease",
    "Sensitivity",
    "TableError",
    "WalkRelease",
    "__version__",
]
