"""river: a private quantile as a statistic of river, released on a public schedule.

river asks a statistic for its value after every item; a private one has an answer only where it has released. So
``get`` shows the last release, of which there is one after every ``release_every`` items, and never computes.

>>> import dpfrugal as dpf
>>> from dpfrugal.engines.river import RiverQuantile
>>> median = RiverQuantile(0.5, dpf.PureDP(epsilon=1.0), release_every=10_000)
>>> for x in range(10_000):
...     median.update(x * 7919 % 100)
>>> 45 < median.get() < 55
True
"""

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from dpfrugal import parameters
from dpfrugal.engines import missing
from dpfrugal.errors import PrivacyError
from dpfrugal.estimators.releases import Release
from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee

try:
    from river.stats.base import Univariate
except ModuleNotFoundError:
    raise missing("river") from None

__all__ = ["RiverQuantile"]


class Estimator(Protocol):
    """What this needs of an estimator: ``PrivateQuantile``, ``WindowQuantile`` and ``DPFrugal1U`` have it."""

    def update(self, item: Any, /) -> Any:
        """Take one item."""

    def release(self) -> Release:
        """Draw noise, and show."""


class RiverQuantile(Univariate):  # type: ignore[misc]  # river's types are not read
    """The private q-quantile of what it was updated with.

    ``estimator`` makes the estimator, called with q and the guarantee: ``dpf.PrivateQuantile`` for one running number
    of a steady stream, ``dpf.WindowQuantile`` for the items since the last release. All releases share the one
    guarantee, per item. After how many items a release comes is public: a constant, never data. ``get`` is None before
    the first release.

    ``clone`` makes a new statistic without items. A copy is refused, as two copies could release the same items. The
    ``feature_extraction.Agg`` of river copies a statistic for each group; when a group releases would then depend on
    data, so for groups there are ``quantiles_by`` and ``KeyedWindowQuantile``.

    >>> import dpfrugal as dpf
    >>> from dpfrugal.engines.river import RiverQuantile
    >>> median = RiverQuantile(0.5, dpf.PureDP(epsilon=1.0), release_every=1_000, estimator=dpf.WindowQuantile)
    >>> for _ in range(1_000):
    ...     median.update(7)
    >>> median.get()
    7.0
    """

    def __init__(
        self,
        q: float,
        guarantee: Guarantee,
        release_every: int = 1_000,
        estimator: Callable[[float, Guarantee], Estimator] = PrivateQuantile,
    ) -> None:
        self.q = parameters.probability("q", q)
        self.guarantee = checked_guarantee(guarantee)
        self.release_every = parameters.integer("release_every", release_every, 1)
        self.estimator = estimator
        self.last: Release | None = None
        self._running = estimator(self.q, guarantee)
        self._items = 0

    def update(self, x: float) -> None:
        """Take one item; after every ``release_every`` of them, release."""
        self._running.update(x)
        self._items += 1
        if self._items % self.release_every == 0:
            self.last = self._running.release()

    def get(self) -> float | None:
        """The value of the last release; None before the first one."""
        return None if self.last is None else self.last.value

    @property
    def name(self) -> str:
        """As river calls it in a table of statistics."""
        return f"private_quantile_{self.q:g}"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(
            "A private statistic cannot be copied or pickled: the copy could release the same items. Use clone() for a "
            "new one; for groups, KeyedWindowQuantile or quantiles_by."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce__()
