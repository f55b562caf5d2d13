"""DP-Frugal-1U for every key of a stream: a private GROUP BY quantile in 8 bytes per key and quantile.

A row is a key and a value. Replacing a row, its value and its key, moves the estimate of one key by at most two steps,
or those of two keys by at most one step each: over all keys together 2 in L1 and at most 2 in L2, so that a table of a
million keys costs one guarantee (docs/proofs.md, Theorem 10). A release adds noise to *every* key, whether or not it
has had rows, and re-anchors all of them: any number of releases costs the one guarantee.

Worked number: ``decimals=1``, ε = 1: noise of scale 2 steps of 0.1, so |noise| < 0.7 with probability 95%, for a key
with a hundred rows as for one with a million.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import ItemError, ParameterError, ReplayError
from dpfrugal.estimators.base import PrivateEstimator
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.keyed.coded_rows import ROWS_AT_ONCE, UNEVEN, KeyLookup, LookedUpCodes, coded_rows, sized
from dpfrugal.estimators.keyed.release_table import KeyedClaim, release_table, total_cost
from dpfrugal.estimators.keyed.sensitivity import keyed_exposure, keyed_sensitivity
from dpfrugal.estimators.keyed.state import KeyedState, starts_of
from dpfrugal.estimators.keyed.walk import is_one_call
from dpfrugal.estimators.releases import SHOWN_BETA
from dpfrugal.estimators.walk.kernel_choice import Path
from dpfrugal.kernels import coins
from dpfrugal.keys.discovery import KeyDiscovery, declared_or_discovered, in_order_of_keys
from dpfrugal.keys.index import MOST_KEYS, UNDECLARED, Codes, KeyIndex
from dpfrugal.keys.person_limits import PersonLimits
from dpfrugal.parameters import NanPolicy, NullKeys
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee, checked_guarantee
from dpfrugal.privacy.noise import Progress
from dpfrugal.storage.checkpoint_file import Contents


class KeyedDPFrugal1U(PrivateEstimator):
    """Private quantiles for each of many keys, one integer per key and quantile, all under one guarantee.

    The guarantee (Theorem 10) is for neighbours that differ by one replaced row, whose value and key may both change;
    or by the rows of one person: at most ``max_items_per_person`` of them or, with ``max_keys_per_person``, at most so
    many in each of at most so many keys. The number of rows and the release times are public, and so are the declared
    keys, the starts and the steps.

    Rows with a key that was not declared are dropped. With ``discover_keys`` none are declared, and keys that enough
    rows have are shown: that costs its (ε, δ) in addition (Theorem 11). ``start`` is one public number, or one for each
    key. With ``adaptive_steps`` the step of a key doubles while its releases keep moving in one direction, and halves
    once they have converged; see ``keyed.adaptive_steps``. State: 8 bytes per key and quantile; with adaptive steps
    one more, and the last release, which is public. ``threads`` share the work of large batches: the look-up by rows,
    the walk by keys; the result is the same, bit for bit. ``update_many`` and ``release`` may be called from several
    threads.

    >>> from dpfrugal import PureDP
    >>> k = KeyedDPFrugal1U(0.5, PureDP(epsilon=1.0), keys=["/home", "/pay"], decimals=1, start=20.0)
    >>> k.update_many(["/home", "/pay", "/else"] * 5_000, [20.5, 21.5, 3.0] * 5_000)
    >>> table = k.release()
    >>> table.column_names, table["key"].to_pylist(), k.items
    (['key', 'quantile', 'value', 'alpha'], ['/home', '/pay'], 15000)
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        guarantee: Guarantee,
        *,
        keys: Any = None,
        discover_keys: ApproxDP | None = None,
        max_keys: int = MOST_KEYS,
        decimals: int = 0,
        start: float | Sequence[float] = 0.0,
        max_items_per_person: int = 1,
        max_keys_per_person: int | None = None,
        adaptive_steps: bool = True,
        nan_policy: NanPolicy = "raise",
        null_keys: NullKeys = "raise",
        threads: int = 1,
        coin_seed: int | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._guarantee = checked_guarantee(guarantee)
        self._max_items_per_person = parameters.max_items_per_person(max_items_per_person)
        self._max_keys_per_person = parameters.max_keys_per_person(max_keys_per_person)
        self._nan_policy, self._null_keys = parameters.nan_policy(nan_policy), parameters.null_keys(null_keys)
        self._threads = parameters.threads(threads)
        parameters.truth("adaptive_steps", adaptive_steps)
        path = Path(parameters.quantiles(quantile), Grid(decimals), coins.key_from_seed(coin_seed))
        bounds = self._max_items_per_person, self._max_keys_per_person
        self._sensitivity = keyed_sensitivity(len(path.quantiles), *bounds)
        guarantee.noise_scale(self._sensitivity)  # what cannot be calibrated is refused here, not at the release
        super().__init__(Account.opened(None, None, guarantee, self._sensitivity, by=type(self).__name__))
        declared_or_discovered(keys, discover_keys)
        self._discovery: KeyDiscovery | None = None
        if discover_keys is not None:
            self._discovery = KeyDiscovery(discover_keys, bounds[0] * (bounds[1] or 1))
            if np.ndim(start):
                raise ParameterError("start must be one number where keys are discovered.")
        self._index = KeyIndex(keys, max_keys=max_keys, typed=discover_keys is not None)
        self._kept: int | None = None  # while discovered keys may have to be taken back: how many stay
        starts = starts_of(start, path.grid, max(1, self._index.size))
        self._first_start = int(starts[0])  # of a key that is yet to come
        self._state = KeyedState.at(starts, path, adaptive_steps)
        self._person_limits: PersonLimits | None = None
        self._not_chosen = 0  # rows that exceeded limits which somebody else enforced
        self._last: Any = None
        super().__init__(
            Account.opened(
                *(ledger, dataset, guarantee if ledger is None else total_cost(guarantee, discover_keys)),
                *(() if discover_keys else (self._sensitivity,)),
                by=type(self).__name__,
                # So many items are covered wherever they lie: all in one key, or each in a key of its own.
                max_items_per_person=min(bounds[0], bounds[1] or bounds[0]),
                exposure=None if discover_keys else keyed_exposure(guarantee, len(path.quantiles), *bounds),
                asked={"quantiles": list(path.quantiles)},
            )
        )

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are estimated, in the caller's order."""
        return self._state.path.quantiles

    @property
    def discover_keys(self) -> ApproxDP | None:
        """What discovering keys costs besides; None where they were declared."""
        return None if self._discovery is None else self._discovery.cost

    @property
    def max_items_per_person(self) -> int:
        """How many rows of one person the guarantee covers: in all or, with the next one, in each of their keys."""
        return self._max_items_per_person

    @property
    def max_keys_per_person(self) -> int | None:
        """How many keys of one person the guarantee covers; None where rows are limited in all."""
        return self._max_keys_per_person

    @property
    def nan_policy(self) -> NanPolicy:
        """What becomes of rows whose value is NaN or null."""
        return self._nan_policy

    @property
    def null_keys(self) -> NullKeys:
        """What becomes of rows whose key is null."""
        return self._null_keys

    @property
    def keys(self) -> Any:
        """The keys that are public, as a pyarrow.Array: those declared, or those discovered so far."""
        import pyarrow as pa

        if self._discovery is None:
            return self._index.keys
        if not self._discovery.public.size:
            return pa.nulls(0)  # a type would say that some key is there
        return self._index.keys.take(in_order_of_keys(self._index.keys, self._discovery.public))

    @property
    def items(self) -> int:
        """How many rows have been taken in, omitted and dropped ones included."""
        return self._state.items

    @property
    def set_aside(self) -> int:
        """How many rows exceeded the limits per person. Not for publication: no guarantee covers this number."""
        return self._not_chosen + (0 if self._person_limits is None else self._person_limits.set_aside)

    def update_many(self, keys: Any, values: Any, person: Any = None) -> None:
        """Take in a batch of rows: all of it, or, where any of it is refused, nothing.

        ``person`` says whose row each is: rows beyond the bounds per person are set aside at random. Without it the
        bounds are the caller's promise.
        """
        with self._alone():
            before, people = self.items, self._people(person)
            if people is None:
                self._update(keys, values)
                return
            people.begin()
            looked_up = np.empty(0, dtype=np.int32)

            def limited(codes: Codes) -> Codes:
                nonlocal looked_up
                looked_up = codes
                return people.taken(person, codes)

            empty = False
            try:
                empty = self._update(keys, values, limited) == 0
            finally:
                if empty or self.items > before:
                    people.settle(looked_up)
                    self._person_limits = people
                else:
                    people.undo()

    def _update_chosen(self, keys: Any, values: Any, chosen: NDArray[np.bool_]) -> None:
        """Take in a batch of which only the chosen rows count; the others keep their positions and coins."""

        def limited(codes: Codes) -> Codes:
            self._not_chosen += int(np.count_nonzero((codes >= 0) & ~chosen))
            return np.where(chosen, codes, np.int32(UNDECLARED))

        with self._alone():
            self._update(keys, values, limited)

    def _update(self, keys: Any, values: Any, limited: Callable[[Codes], Codes] | None = None) -> int:
        """Take in a batch, and say how many rows it had; ``limited`` makes the codes of rows set aside negative."""
        self._take_back()
        self._kept = None if self._discovery is None else self._index.size
        batch, values = KeyLookup(self._index, keys, self._null_keys, self._threads), sized(values)
        batch.check_length(values)
        try:
            codes = batch if limited is None else LookedUpCodes(limited(batch.next(batch.size)))
            self._take(codes, values, batch.size)
        finally:
            self._take_back()
        return batch.size

    def _people(self, person: Any) -> PersonLimits | None:
        """Who has had how many rows, where rows come with a person."""
        if (person is None) != (self._person_limits is None) and self.items:
            raise ItemError("person must be given with every batch, or with none.")
        if person is None or self._person_limits is not None:
            return self._person_limits
        return PersonLimits(self._max_items_per_person, self._max_keys_per_person)

    def _take(self, keys: KeyLookup | LookedUpCodes, values: Any, rows: int) -> None:
        """A batch of one piece is one call of compiled code on the state itself; all else walks on a copy of it."""
        batch = coded_rows(keys, values, self._nan_policy)
        if rows <= ROWS_AT_ONCE:
            batch = iter(several := list(batch))
            whole = len(several) == 1 and self._discovery is None
            if whole and is_one_call(self.items + rows, self._threads):
                self._state.walk(several[0].codes, several[0].values, threads=1)
                return
        state, discovery = self._state.copy(), None if self._discovery is None else self._discovery.twin()
        for piece in batch:
            if discovery is not None:
                discovery.count(piece.codes)
                if self._index.size > len(state.estimates):
                    state = state.with_room(self._index.size, self._first_start)
            state.walk(piece.codes, piece.values, self._threads)
        if state.items != self.items + rows:
            raise ItemError(UNEVEN)
        # No interrupt can come between these stores.
        self._state, self._discovery, self._kept = state, discovery, None

    def _take_back(self) -> None:
        """Forget the keys that a refused batch has added; again, where an interrupt cut that short."""
        if self._kept is not None:
            self._index.forget(self._kept)
            self._kept = None

    def release(self, progress: Progress | None = None) -> Any:
        """A pyarrow.Table with a private value for every public key and quantile, and its α at β = 0.05.

        The same table again where no row has come since the last release. ``progress`` is called with the number of
        values that have their noise, and the number of all.
        """
        with self._alone():
            if self._last is None or self._state.released_at < self.items:
                table, state = self._fresh_release(progress)
                # Re-anchor: no interrupt can come between these stores.
                self._last, self._state = table, state
            return self._last

    def _fresh_release(self, progress: Progress | None) -> tuple[Any, KeyedState]:
        """Theorem 10 rests on this: noise for every public key, whether or not it has had rows, then re-anchor."""
        import pyarrow as pa

        noise.load()  # first: a kill between the ledger's count and the release loses the items
        self._account.before_noise()
        keys, public = self._index.keys, None
        if self._discovery is not None:
            self._discovery.settle(self._discovery.found())  # before anybody is told how many there are
            public = in_order_of_keys(keys, self._discovery.public)
            keys = keys.take(public) if public.size else pa.nulls(0)  # a type would say that some key is there
        values, exponents, state = self._state.release(public, self._guarantee, self._sensitivity, progress)
        alpha = self._guarantee.alpha(SHOWN_BETA, self._sensitivity, exact=True) / state.path.grid.scale
        claim = KeyedClaim(
            guarantee=self._guarantee,
            discover_keys=self.discover_keys,
            max_items_per_person=self._max_items_per_person,
            max_keys_per_person=self._max_keys_per_person,
            items=self.items,
        )
        return release_table(keys, self.quantiles, values, np.ldexp(alpha, exponents), claim.metadata()), state

    def _contents(self) -> Contents:
        from dpfrugal.estimators.keyed.state_record import contents_of

        self._take_back()
        return contents_of(self)

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        from dpfrugal.estimators.keyed.state_record import estimator_of

        estimator: Self = estimator_of(cls, contents)
        return estimator

    def _forget(self) -> None:
        from dpfrugal.estimators.keyed.state_record import forgotten

        if self._person_limits is not None:
            raise ReplayError(
                "This checkpoint is stale, and counts rows per person: rows that were taken since are not in its "
                "counts, so it cannot continue even without its items. Load a newer one, or start a new estimator."
            )
        self._state = forgotten(self._state)
        if self._discovery is not None:
            self._discovery.settle(np.empty(0, dtype=np.int64))

    def __repr__(self) -> str:
        shown = self.quantiles[0] if len(self.quantiles) == 1 else list(self.quantiles)
        return f"{type(self).__name__}({shown}, {self._guarantee}, keys={len(self.keys)}, items={self.items})"
