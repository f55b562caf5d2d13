"""The release of many keys: a pyarrow.Table with a row per key and quantile, and its claim in the schema's metadata.

Everything in it is public: the keys were declared or discovered, the values carry noise, and the rest never depended on
a row. How many rows a key has had is not in it.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.composition import added
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.releases import SHOWN_BETA
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee

NEIGHBOURS = "replace-one, value and key"
NOISE_ALONE = (
    "95% bound on the noise of this release alone: how far the walk still is from the quantile is not in it, and may "
    "be much more"
)


def total_cost(guarantee: Guarantee, discover_keys: ApproxDP | None) -> Guarantee:
    """The guarantee of the values with what it costs to show which keys there are (basic composition)."""
    if discover_keys is None:
        return guarantee
    if guarantee.epsilon_delta is None:
        raise ParameterError("With discover_keys a ledger takes PureDP or ApproxDP: the cost is one (ε, δ).")
    epsilon, delta = guarantee.epsilon_delta
    return ApproxDP(epsilon=added(epsilon, discover_keys.epsilon), delta=added(discover_keys.delta, delta))


@dataclass(frozen=True, kw_only=True)
class KeyedClaim:
    """What covers a table of releases, and whose change it hides."""

    guarantee: Guarantee
    discover_keys: ApproxDP | None
    max_items_per_person: int
    max_keys_per_person: int | None
    items: int

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        items, keys = self.max_items_per_person, self.max_keys_per_person
        if keys is not None:
            return f"person of ≤ {items} items in each of ≤ {keys} keys"
        return "item" if items == 1 else f"person of ≤ {items} items"

    @property
    def total(self) -> str:
        """The guarantee of the values with what it costs to show which keys there are (basic composition)."""
        if self.discover_keys is not None and self.guarantee.epsilon_delta is None:
            return f"{self.guarantee} for values and {self.discover_keys} for which keys are shown"
        return str(total_cost(self.guarantee, self.discover_keys))

    def metadata(self) -> dict[str, str]:
        """For the schema of a table."""
        discovery = {} if self.discover_keys is None else {"discover_keys": str(self.discover_keys)}
        return discovery | {
            "total": self.total,
            "guarantee": str(self.guarantee),
            "guarantee_parameters": json.dumps(self.guarantee.to_record()),
            "neighbours": NEIGHBOURS,
            "unit": self.unit,
            "items": str(self.items),
            "beta": str(SHOWN_BETA),
            "alpha": NOISE_ALONE,
        }


def release_table(
    keys: Any,
    quantiles: tuple[float, ...],
    values: NDArray[np.float64],
    alphas: NDArray[np.float64],
    metadata: dict[str, str],
) -> Any:
    """A row for each key and quantile, keys in their order; ``values`` and ``alphas`` are keys × quantiles."""
    import pyarrow as pa

    count = len(keys)
    if len(quantiles) > 1:
        keys = keys.take(pa.array(np.repeat(np.arange(count), len(quantiles))))
    columns = {
        "key": keys,
        "quantile": pa.array(np.tile(np.array(quantiles, dtype=np.float64), count)),
        "value": pa.array(values.reshape(-1)),
        "alpha": pa.array(alphas.reshape(-1)),
    }
    return pa.table(columns).replace_schema_metadata(metadata)
