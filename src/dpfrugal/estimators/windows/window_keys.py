"""The keys of windows: declared, or discovered at a stated cost; only those that are public outlive a window."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.keyed.coded_rows import KeyLookup
from dpfrugal.estimators.keyed.state_record import arrow_keys, learn, saved_keys
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows
from dpfrugal.estimators.windows.held_items import Groups, HeldItems
from dpfrugal.keys.arrays import is_null, null_rows
from dpfrugal.keys.columns import typed
from dpfrugal.keys.discovery import KeyDiscovery, in_order_of_keys
from dpfrugal.keys.index import UNDECLARED, KeyIndex
from dpfrugal.storage import json_values


class WindowKeys:
    """Codes of the keys of the open window, and which keys a release shows, with ``other`` for the rest."""

    def __init__(self, declared: Any, discovery: KeyDiscovery | None, other: Any, max_keys: int) -> None:
        self.discovery, self.other, self._max_keys = discovery, other, max_keys
        self.index = KeyIndex(declared, max_keys=max_keys, typed=discovery is not None)
        self._found: Any = None  # of discovered keys those that are public, in their order
        if (
            discovery is None
            and other is not None
            and self.index.codes(typed(other, self.index.keys.type))[0] != UNDECLARED
        ):
            raise ParameterError("other must not be one of keys.")

    @property
    def public(self) -> Any:
        """Those declared, or those discovered so far, as a pyarrow.Array."""
        import pyarrow as pa

        if self.discovery is None:
            return self.index.keys
        return pa.nulls(0) if self._found is None else self._found

    @property
    def groups(self) -> int:
        """How many groups rows that are held may have."""
        return self.index.size + (self.discovery is None and self.other is not None)

    def groups_of(self, lookup: KeyLookup) -> Groups:
        """The groups of a batch's rows; -1 of those that are dropped."""
        groups = lookup.next(lookup.size)
        if self.other is None or self.discovery is not None:
            return groups
        others = (groups == UNDECLARED) & ~null_keys_of(lookup)
        return np.where(others, np.int32(self.index.size), groups)

    def check_other(self) -> None:
        """Refuse a batch whose keys are of another type than ``other``."""
        if self.other is not None and self.discovery is not None and self.index.size:
            typed(self.other, self.index.keys.type)

    def declared(self, rows: KeyedRows) -> GroupedRows:
        """The rows of the declared keys, in their order, with or without rows."""
        import pyarrow as pa

        keys, size = self.index.keys, self.groups
        if self.other is not None:
            keys = pa.concat_arrays([keys, typed(self.other, keys.type)])
        codes, starts = rows.by_group(np.arange(size, dtype=np.int32), size, rows.kind)
        return GroupedRows(rows.kind, {"key": keys}, rows.rows, starts, codes)

    def discovered(self, rows: KeyedRows, index: KeyIndex) -> GroupedRows:
        """The rows of the keys that were public before, and of those that pass discovery now; this draws noise."""
        import pyarrow as pa

        assert self.discovery is not None  # noqa: S101
        before, size = 0 if self._found is None else len(self._found), index.size
        counts, shown = rows.counts(size), np.zeros(size, dtype=np.bool_)
        shown[:before] = True
        label = UNDECLARED
        if self.other is not None and size:
            label = _code_of(index, self.other)
        if label != UNDECLARED:
            counts[label] = 0  # rows that have the label as their key are others too
        self.discovery.restore(counts, shown)
        passed = np.concatenate([np.arange(before, dtype=np.int64), self.discovery.found()])
        if passed.size:
            passed = in_order_of_keys(index.keys, passed)
            self._found = index.keys.take(pa.array(passed, pa.int64()))
        self.begin()
        keys, groups = self.public, passed.size
        relabel = np.full(size, UNDECLARED if self.other is None else groups, dtype=np.int32)
        relabel[passed] = np.arange(groups, dtype=np.int32)
        if self.other is not None:
            one = typed(self.other, keys.type)
            keys, groups = pa.concat_arrays([keys, one]) if len(keys) else one, groups + 1
        codes, starts = rows.by_group(relabel, groups, rows.kind)
        return GroupedRows(rows.kind, {"key": keys}, rows.rows, starts, codes)

    def begin(self) -> None:
        """A new window: only public keys outlive the last one."""
        if self.discovery is not None:
            self.index = KeyIndex(max_keys=self._max_keys, typed=True)
            if self._found is not None:
                learn(self.index, self._found)

    def prune(self, held: HeldItems) -> None:
        """Forget keys that are not public and of which nothing is held, where they are most."""
        index, before = self.index, 0 if self._found is None else len(self._found)
        if self.discovery is None or index.size <= 2 * max(held.size, 1 << 16):
            return
        kept = np.union1d(np.arange(before), held.column("groups"))
        here = np.full(index.size, UNDECLARED, dtype=np.int32)
        here[kept] = np.arange(kept.size, dtype=np.int32)
        self.index = KeyIndex(max_keys=self._max_keys, typed=True)
        learn(self.index, index.keys.take(kept))
        held.relabel("groups", here)

    def parameters(self) -> dict[str, Any]:
        """As a checkpoint records them; of declared keys a digest."""
        cost = None if self.discovery is None else self.discovery.cost.to_record()
        digest = hashlib.sha256(saved_keys(self.index).tobytes()).hexdigest() if cost is None else None
        return {"keys": digest, "discover_keys": cost, "other": self.other, "max_keys": self._max_keys}

    def saved(self) -> tuple[NDArray[Any], int]:
        """The keys of the open window, the public ones first, and how many are public where they were discovered."""
        return saved_keys(self.index), 0 if self._found is None else len(self._found)

    def restore(self, keys: Any, public: Any) -> None:
        """Continue with what was saved of discovered keys."""
        if self.discovery is not None:
            number = json_values.integer_of(public, 0, len(keys))
            self._found = keys[:number] if number else None
            learn(self.index, keys)

    def adopt(self, saved: NDArray[Any], held: HeldItems) -> None:
        """Give rows of another window, whose keys were saved, the codes that their keys have here."""
        if self.discovery is not None:
            keys = arrow_keys(saved)
            check_groups(held, len(keys))
            if len(keys):
                held.relabel("groups", self.index.codes(keys))
        check_groups(held, self.groups)


def check_groups(held: HeldItems, groups: int) -> None:
    """Rows that are held are of these groups."""
    if held.column("groups").max(initial=-1) >= groups:
        raise ValueError("not the keys of these rows")


def null_keys_of(lookup: KeyLookup) -> NDArray[np.bool_]:
    """Which keys of a batch are null: they are dropped, and are none of the others."""
    masks = []
    for part in lookup.parts:
        null = np.array([*map(is_null, part)], dtype=np.bool_) if isinstance(part, list) else null_rows(part)
        masks.append(np.zeros(len(part), dtype=np.bool_) if null is None else null)
    return np.concatenate([np.zeros(0, dtype=np.bool_), *masks])


def _code_of(index: KeyIndex, key: Any) -> int:
    """The code of one key, or -1; nothing is added."""
    import pyarrow.compute as pc

    same = pc.equal(index.keys, typed(key, index.keys.type)[0]).fill_null(False).to_numpy(zero_copy_only=False)
    return int(np.flatnonzero(same)[0]) if same.any() else UNDECLARED
