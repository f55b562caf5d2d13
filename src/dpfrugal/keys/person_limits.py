"""Limits per person: at most so many rows of one person count, or so many in each of so many keys.

Which rows of a person count depends on that person's rows and on chance only, never on anybody else's. So replacing one
person's rows, however many they are, changes no more rows that count, in either stream, than the limits say, and
Theorem 10 of docs/proofs.md applies. The other rows are set aside; each keeps its position and its coin.

Within one ``update_many`` a person's rows are taken in random order. Earlier batches take precedence over later ones: a
row that has moved an estimate cannot be taken back. Memory: about 60 bytes per person, and 8 for each key a person may
have, for as long as the estimator lives.
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.kernels.compiler import loading
from dpfrugal.keys.index import LARGEST_CODE, UNDECLARED, Codes, KeyIndex

FEWEST: Final = 1024


class PersonLimits:
    """Who has had how many rows taken, of which keys. Raw state: never shown.

    >>> people, codes = PersonLimits(max_items_per_person=1), np.zeros(3, dtype=np.int32)
    >>> sorted(people.taken(["ann", "bob", "ann"], codes).tolist())
    [-1, 0, 0]
    >>> people.settle(codes)
    >>> people.set_aside
    1
    """

    def __init__(self, max_items_per_person: int, max_keys_per_person: int | None = None) -> None:
        self._most_items = max_items_per_person
        self.people = KeyIndex(max_keys=LARGEST_CODE)
        # Rows taken of each person; where keys are limited, of each key the person has.
        self._tallies = np.zeros((FEWEST, max_keys_per_person or 1), dtype=np.int32)
        self._keys = np.full((FEWEST, max_keys_per_person or 0), UNDECLARED, dtype=np.int32)
        self._order = np.random.default_rng(secrets.randbits(128))
        self._batch: tuple[int, Codes, Codes] | None = None  # what undo needs
        self.set_aside = 0

    def begin(self) -> None:
        """Before each batch: rows of a last one that an interrupt left neither accepted nor refused stay counted."""
        self._batch = None

    def taken(self, person: Any, codes: Codes) -> Codes:
        """The codes of the rows that count, -1 for those set aside; ``settle`` or ``undo`` must follow."""
        from dpfrugal.kernels.find_keys import take_rows

        known, who = self.people.size, self._known(person)
        kept = np.full(codes.size, UNDECLARED, dtype=np.int32)
        self._batch = (known, who[:0], kept)
        if who.size != codes.size:
            self.undo()
            raise ItemError(f"person and keys must be of one length; they have {who.size} and {codes.size} rows.")
        while len(self._tallies) < self.people.size:
            self._tallies = np.concatenate([self._tallies, np.zeros_like(self._tallies)])
            self._keys = np.concatenate([self._keys, np.full_like(self._keys, UNDECLARED)])
        self._batch = (known, who, kept)
        order = self._order.permutation(codes.size)
        with loading("contributions"):
            take_rows(order, who, codes, self._tallies, self._keys, self._most_items, kept)
        return kept

    def taken_so_far(self) -> dict[str, Codes]:
        """How many rows each person has had, and of which keys; for a checkpoint."""
        return {"people_rows": self._tallies, "people_keys": self._keys}

    def restore(self, arrays: Mapping[str, Codes], set_aside: int) -> None:
        """Continue from a checkpoint."""
        tallies, keys = arrays["people_rows"], arrays["people_keys"]
        same = tallies.dtype == keys.dtype == np.int32 and len(tallies) >= self.people.size
        if (
            not same
            or tallies.shape[1:] != self._tallies.shape[1:]
            or keys.shape != (len(tallies), *self._keys.shape[1:])
        ):
            raise ValueError("not the rows of these people")
        self._tallies, self._keys, self.set_aside = tallies, keys, set_aside

    def _known(self, person: Any) -> Codes:
        problem: ItemError | ItemTypeError
        try:
            return self.people.codes(person)
        except (ItemError, ItemTypeError) as error:
            said = "null ids; clean the data" if "null" in str(error) else f"ids that cannot be used: {error}"
            problem = type(error)(f"person has {said}".rstrip(".") + ".")
        raise problem

    def settle(self, codes: Codes) -> None:
        """The batch was accepted: count what was set aside of it. ``codes`` are those ``taken`` was given."""
        batch, self._batch = self._batch, None
        if batch is not None:
            self.set_aside += int((codes >= 0).sum()) - int((batch[2] >= 0).sum())

    def undo(self) -> None:
        """The batch was refused: nobody has had a row of it taken."""
        from dpfrugal.kernels.find_keys import return_rows

        batch, self._batch = self._batch, None  # first: rows that an interrupt lets be returned twice would be too many
        if batch is not None:
            known, who, kept = batch
            return_rows(who, kept, self._tallies, self._keys)
            self.people.forget(known)
