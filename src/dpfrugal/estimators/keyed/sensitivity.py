"""How far the rows of one person can move the estimates of many keys, all together (docs/proofs.md, Theorem 10)."""

from dpfrugal.budget.person_moves import Exposure, exposed
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity


def keyed_sensitivity(quantiles: int, max_items_per_person: int, max_keys_per_person: int | None) -> Sensitivity:
    """How far the rows of one person can move all estimates of all keys and releases together, in steps (Theorem 10).

    ``max_keys_per_person=None``: up to ``max_items_per_person`` rows, in whatever keys. Otherwise up to so many rows
    in each of up to ``max_keys_per_person`` keys.
    """
    keys = 1 if max_keys_per_person is None else max_keys_per_person
    steps = 2 * max_items_per_person
    return Sensitivity(l1=steps * keys * quantiles, l2_squared=steps**2 * keys * quantiles)


def keyed_exposure(
    guarantee: Guarantee, quantiles: int, max_items_per_person: int, max_keys_per_person: int | None
) -> Exposure | None:
    """What one person can move: a row that leaves a key or comes to one, its estimates by a step (Theorem 10)."""
    sensitivity = keyed_sensitivity(quantiles, max_items_per_person, max_keys_per_person)
    rows = 2 * max_items_per_person  # in one key, of both streams
    moves = ((steps, sensitivity, steps, quantiles) for steps in range(1, rows + 1))
    return exposed(guarantee, rows * (max_keys_per_person or 1), moves)
