"""The estimator that the options ask for, and how its numbers are shown."""

from typing import TYPE_CHECKING

from dpfrugal.cli import options as o

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.releases import Release, SegmentRelease, WalkRelease
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
    from dpfrugal.privacy.guarantees import Guarantee


def estimator_from(
    algorithm: o.Algorithm | None,
    quantiles: list[float],
    guarantee: "Guarantee",
    *,
    max_items_per_person: int,
    decimals: int | None,
    start: float,
    nan_policy: o.NanPolicyChoice,
    half_life: float | None = None,
    ledger: "Ledger | None" = None,
    dataset: str | None = None,
) -> "PrivateQuantile | DPFrugal1U":
    """``PrivateQuantile``, or the paper's ``DPFrugal1U`` on its grid."""
    from dpfrugal.errors import ParameterError
    from dpfrugal.estimators.grid import Grid
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U

    if algorithm is o.Algorithm.DP_FRUGAL_1U:
        if half_life is not None:
            raise ParameterError("--half-life is for --algorithm private-quantile; a walk forgets by itself.")
        return DPFrugal1U(
            quantiles,
            guarantee,
            decimals=decimals or 0,
            start=start,
            max_items_per_person=max_items_per_person,
            nan_policy=nan_policy.value,
            ledger=ledger,
            dataset=dataset,
        )
    Grid(decimals or 0)  # refuses decimals that no number could be shown with
    return PrivateQuantile(
        quantiles,
        guarantee,
        start=start,
        max_items_per_person=max_items_per_person,
        nan_policy=nan_policy.value,
        half_life=half_life,
        ledger=ledger,
        dataset=dataset,
    )


def last_release(estimator: "PrivateQuantile | DPFrugal1U") -> "SegmentRelease | WalkRelease":
    """The release at the end of the items: it rests on all of them."""
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile

    return estimator.release(close=True) if isinstance(estimator, PrivateQuantile) else estimator.release()


def shown_values(release: "Release", algorithm: o.Algorithm | None, decimals: int | None) -> list[str]:
    """The values as text: with the decimals asked for, or those of the grid, or nine digits."""
    if decimals is None and algorithm is not o.Algorithm.DP_FRUGAL_1U:
        return [f"{value:.9g}" for value in release.values]
    return [f"{value:.{decimals or 0}f}" for value in release.values]
