"""Limits per person: at most so many rows of one person count, or so many in each of so many keys.

Which rows of a person count depends on that person's rows and on chance only, never on anybody else's. So replacing one
person's rows, however many they are, changes no more rows that count, in either stream, than the limits say, and
Theorem 10 of docs/proofs.md applies. The other rows are set aside; each keeps its position and its coin.

Of a table that is at hand each row has a random priority, and the rows of a person with the smallest ones count
(``chosen_rows``). Neither the order of rows nor how a reader cuts them into batches can matter. Memory: 28 bytes per
row while they are chosen.

Of a stream (``PersonLimits``) a person's rows are taken in random order within one ``update_many``. Earlier batches
take precedence over later ones: a row that has moved an estimate cannot be taken back. Memory: about 60 bytes per
person, and 8 for each key a person may have, for as long as the estimator lives. Where batches end must be public.
"""

import secrets
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.kernels.compiler import loading
from dpfrugal.kernels.threads import WORTH_A_THREAD, at_once, available
from dpfrugal.keys.index import LARGEST_CODE, UNDECLARED, Codes, KeyIndex

FEWEST: Final = 1024
Priorities = NDArray[np.uint64]


class RowPriorities:
    """A random priority for each row of a table, by its position: the same ones however the table is cut."""

    def __init__(self) -> None:
        self._words = np.random.PCG64(secrets.randbits(128))

    def next(self, rows: int) -> Priorities:
        """The priorities of the next rows."""
        words: Priorities = self._words.random_raw(rows)
        return words


def chosen_rows(
    priorities: Priorities,
    person: Codes,
    keys: Codes | None = None,
    *,
    max_items_per_person: int,
    max_keys_per_person: int | None = None,
) -> NDArray[np.bool_]:
    """Which rows of a table count: of each person those with the smallest priorities.

    ``person`` and ``keys`` are codes. Without ``max_keys_per_person`` at most ``max_items_per_person`` rows of a person
    count, in whatever keys. With it a person has the first so many distinct keys in order of priority, and in each at
    most ``max_items_per_person`` rows. Rows with a negative key do not count, and take nobody's place: whether a row
    is one of those is a matter of that row alone.

    >>> priorities = np.array([5, 3, 9, 1], dtype=np.uint64)
    >>> chosen_rows(priorities, np.array([0, 0, 1, 0], dtype=np.int32), max_items_per_person=2).tolist()
    [False, True, True, True]
    """
    from dpfrugal.kernels.sort_groups import choose_rows, count_rows, place_rows

    if keys is None or max_keys_per_person is None:  # all rows that count have one key
        keys = np.zeros(person.size, dtype=np.int32) if keys is None else np.minimum(keys, np.int32(0))
    people = int(person.max(initial=-1)) + 1
    same, counts = np.arange(people, dtype=np.int32), np.zeros(people, dtype=np.int64)
    rows, chosen = np.empty(person.size, dtype=np.int64), np.zeros(person.size, dtype=np.bool_)
    most = max_items_per_person, max_keys_per_person or 1
    with loading("chosen rows"):
        count_rows(person, same, counts)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        place_rows(person, same, np.arange(person.size), starts[:-1].copy(), rows)
        keys_there, threads = int(keys.max(initial=-1)) + 1, available() if person.size >= WORTH_A_THREAD else 1
        ends = np.searchsorted(starts, np.linspace(0, person.size, threads + 1)[1:-1])
        cuts = [0, *ends.tolist(), people]

        def choose(share: int) -> None:  # persons have no row in common
            own = starts[cuts[share] : cuts[share + 1] + 1]
            choose_rows(rows, own, priorities, keys, keys_there, *most, chosen)

        at_once(choose, threads)
    return chosen


class People:
    """Who is who: a code for each person's id, in the order in which they come."""

    index: KeyIndex

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self.index = KeyIndex(max_keys=LARGEST_CODE, threads=threads)

    def codes(self, person: Any) -> Codes:
        """The code of every row's person; no id may be null."""
        problem: ItemError | ItemTypeError
        try:
            return self.index.codes(person)
        except (ItemError, ItemTypeError) as error:
            said = "null ids; clean the data" if "null" in str(error) else f"ids that cannot be used: {error}"
            problem = type(error)(f"person has {said}".rstrip(".") + ".")
        raise problem

    def only(self, used: Codes) -> tuple["People", Codes]:
        """Those persons alone, and the code that each of all has among them: negative where there is none."""
        people, codes = People(self._threads), np.full(self.index.size, UNDECLARED, dtype=np.int32)
        codes[used] = people.codes(self.index.keys.take(used))
        return people, codes


class PersonLimits:
    """Who has had how many rows taken, of which keys. Raw state: never shown.

    >>> people, codes = PersonLimits(max_items_per_person=1), np.zeros(3, dtype=np.int32)
    >>> sorted(people.taken(["ann", "bob", "ann"], codes).tolist())
    [-1, 0, 0]
    >>> people.settle(codes)
    >>> people.set_aside
    1
    """

    set_aside: int

    def __init__(self, max_items_per_person: int, max_keys_per_person: int | None = None) -> None:
        self._most_items = max_items_per_person
        self._who = People()
        # Rows taken of each person; where keys are limited, of each key the person has.
        self._tallies = np.zeros((FEWEST, max_keys_per_person or 1), dtype=np.int32)
        self._keys = np.full((FEWEST, max_keys_per_person or 0), UNDECLARED, dtype=np.int32)
        self._order = np.random.default_rng(secrets.randbits(128))
        self._batch: tuple[int, Codes, Codes] | None = None  # what undo needs
        self.set_aside = 0

    @property
    def people(self) -> KeyIndex:
        """The ids of all who have come."""
        return self._who.index

    def begin(self) -> None:
        """Before each batch: rows of a last one that an interrupt left neither accepted nor refused stay counted."""
        self._batch = None

    def taken(self, person: Any, codes: Codes) -> Codes:
        """The codes of the rows that count, -1 for those set aside; ``settle`` or ``undo`` must follow."""
        from dpfrugal.kernels.limit_people import take_rows

        known, who = self.people.size, self._who.codes(person)
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

    def settle(self, codes: Codes) -> None:
        """The batch was accepted: count what was set aside of it. ``codes`` are those ``taken`` was given."""
        batch, self._batch = self._batch, None
        if batch is not None:
            self.set_aside += int((codes >= 0).sum()) - int((batch[2] >= 0).sum())

    def undo(self) -> None:
        """The batch was refused: nobody has had a row of it taken."""
        from dpfrugal.kernels.limit_people import return_rows

        batch, self._batch = self._batch, None  # first: rows that an interrupt lets be returned twice would be too many
        if batch is not None:
            known, who, kept = batch
            return_rows(who, kept, self._tallies, self._keys)
            self.people.forget(known)
