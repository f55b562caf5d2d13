"""The window that is open: items come in until it is cut, and leave it once, as private quantiles.

Keys become codes and persons keyed hashes on arrival; both live as long as the window. Short batches are gathered, and
taken in together.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.windows.keyed_window_quantile import KeyedWindowQuantile
from dpfrugal.keys.index import LARGEST_CODE
from dpfrugal.serve.figures import Figures
from dpfrugal.serve.ingest.items import NO_KEY, REPEATED, Rows
from dpfrugal.serve.repeated_items import SeenItems
from dpfrugal.serve.settings import Metric

GATHERED: Final = 1 << 16


@dataclass(frozen=True)
class Quantiles:
    """What a window released, keys × quantiles; NaN where it has too few items to tell. All of it is public."""

    keys: tuple[str, ...]
    values: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    items: int | None  # only where it is public

    def numbers(self) -> NDArray[np.float64]:
        """Values, lower and upper ends in one array."""
        return np.stack([self.values, self.lower, self.upper])


class OpenWindow:
    """The items of one metric since the last cut. Raw: only ``release`` shows anything, once."""

    def __init__(self, metric: Metric, seen: SeenItems | None, estimator: KeyedWindowQuantile | None = None) -> None:
        self.metric = metric
        self._seen = seen
        declared = () if metric.keys is None else metric.keys.declared
        self._discovers = declared is None
        self._codes: dict[str | None, int] = {key: code for code, key in enumerate(declared or ())}
        self._undeclared = len(self._codes)  # the code of everything else: that of other, or of nothing
        if metric.keys is None:
            self._codes = {None: 0}
        self._shown = list(metric.shown_keys or ())
        self._secret = os.urandom(32)
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._rows = 0
        self._window = estimator_for(metric) if estimator is None else estimator

    def take(self, rows: Rows, figures: Figures) -> Mapping[str, int]:
        """Take in the items of a batch; how many do not count, and why."""
        refused = dict(rows.refused)
        codes = self._codes_of(rows.keys)
        if unknown := rows.keys.count(None) if self._discovers else int((codes >= len(self._shown)).sum()):
            refused[NO_KEY] = refused.get(NO_KEY, 0) + unknown
        persons = np.zeros(0, dtype=np.int64) if rows.persons is None else self._persons_of(rows.persons)
        identities = np.zeros(0, dtype=np.int64) if rows.identities is None else rows.identities
        self._waiting.append((codes, rows.values, persons, identities))
        self._rows += codes.size
        if self._rows >= GATHERED:
            refused[REPEATED] = self._gather(figures)
        return refused

    def _codes_of(self, keys: list[str | None]) -> NDArray[Any]:
        """The codes of declared keys; where keys are discovered, themselves."""
        if self._discovers:
            return np.array(keys, dtype=object)
        known, undeclared = self._codes, self._undeclared
        return np.array([known.get(key, undeclared) for key in keys], dtype=np.int64)

    def _persons_of(self, persons: list[str]) -> NDArray[np.int64]:
        secret = self._secret
        words = b"".join(hashlib.blake2b(person.encode(), digest_size=8, key=secret).digest() for person in persons)
        return np.frombuffer(words, dtype=np.int64)

    def _gather(self, figures: Figures) -> int:
        """Take in what waits, without repetitions; how many there were."""
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if not waiting:
            return 0
        codes, values, persons, identities = (np.concatenate(column) for column in zip(*waiting, strict=True))
        repeated = 0
        if self._seen is not None and identities.size:
            new = self._seen.new(identities)
            repeated = int((~new).sum())
            codes, values = codes[new], values[new]
            persons = persons[new] if persons.size else persons
        keys: Any = codes
        if self._discovers:
            import pyarrow as pa

            keys = pa.array(codes, pa.large_string())
        else:
            figures.count_rows(self.metric, self._shown, codes)
        self._window.update_many(keys, values, person=persons if self.metric.person is not None else None)
        return repeated

    @property
    def waiting(self) -> int:
        """How many items wait to be taken in."""
        return self._rows

    def close(self, figures: Figures) -> None:
        """Take in what waits: nothing comes any more."""
        figures.refuse(self.metric.base_name, {REPEATED: self._gather(figures)})

    def emptied(self) -> KeyedWindowQuantile:
        """The estimator, without items, for a window to come; a new one where this one knows keys that it found."""
        if self._discovers:
            return estimator_for(self.metric)
        self._window.discard()
        return self._window

    def release(self) -> Quantiles:
        """The private quantiles of all items, with fresh noise; must be paid for before."""
        return _quantiles_of(self._window.release(), self.metric)


def _quantiles_of(table: Any, metric: Metric) -> Quantiles:
    width = len(metric.quantiles)
    keys = metric.shown_keys
    if keys is None:
        keys = tuple(table.column("key").to_pylist()[::width])

    def column(name: str) -> NDArray[np.float64]:
        numbers = table.column(name).cast("float64").to_numpy(zero_copy_only=False)
        # The nearest float to value · scale: 99 ms are 0.099 s.
        scale = metric.scale
        with np.errstate(over="ignore"):  # a warning would be a line of the log
            numbers = numbers * float(scale.numerator) / float(scale.denominator)
        return np.ascontiguousarray(numbers.reshape(-1, width))

    metadata = table.schema.metadata or {}
    public = metric.neighbours == "replace" and metric.keys is None
    items = int(metadata[b"items"]) if public and b"items" in metadata else None
    return Quantiles(keys, column("value"), column("lower"), column("upper"), items)


def estimator_for(metric: Metric) -> KeyedWindowQuantile:
    """An empty window; to make one takes longer than to cut one, so those that were released are used again."""
    keys, discovery = 1, None
    if metric.keys is not None:
        keys, discovery = len(metric.shown_keys or ()), metric.keys.discovery
    return KeyedWindowQuantile(
        metric.quantiles,
        metric.guarantee,
        keys=None if discovery else np.arange(keys),
        discover_keys=discovery,
        hold_in_all=metric.hold,
        neighbours=metric.neighbours,
        counts=False,
        low=metric.low,
        high=metric.high,
        max_items_per_person=1 if metric.person is None else metric.person.max_items,
        nan_policy="omit",
        null_keys="drop",
        max_keys=LARGEST_CODE,  # keys are forgotten of which no item is held
    )
