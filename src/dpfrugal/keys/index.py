"""The key index: which key a row belongs to, as a code: the key's position in the order it was declared.

>>> index = KeyIndex(["/home", "/search", "/pay"])
>>> index.codes(["/pay", "/home", "/else"]).tolist()
[2, 0, -1]

Integers in a dense range are looked up directly, other integers and strings in hash tables of our own, compiled: about
32 bytes per key. Of dictionary-encoded keys only the dictionary is hashed. Keys are equal if all of their bytes are,
and the hash is keyed with a secret: keys that were made to collide do not.
"""

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dpfrugal import parameters
from dpfrugal.errors import ItemError, ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.kernels.bit_layout import LONGEST_KEY
from dpfrugal.keys.arrays import (
    ALLOWED,
    Kind,
    attempted,
    has_type,
    in_order,
    is_null,
    kind_of,
    parts,
    strings_of,
    views_of,
    without_views,
)
from dpfrugal.keys.integers import arrow_of, home_type, integers_of

NullKeys = Literal["raise", "drop"]
Codes = NDArray[np.int32]
UNDECLARED: Final = -1
# How many keys memory is meant for where the caller does not say.
MOST_KEYS: Final = 10_000_000
BYTES_PER_KEY: Final = 48
LARGEST_CODE: Final = 2**31 - 2
UNTYPED: Final = (
    "keys to be discovered must be strings, bytes, dates or integers of 64 bits, all of one kind: their type is shown."
)
TWICE: Final = "keys must not declare the same key twice."
NULLS: Final = 'The batch has null keys; clean the data, or use null_keys="drop".'


class KeyIndex:
    """Keys and their codes. ``keys`` declares them; without it, keys are added as they come (``grow``).

    ``typed`` refuses keys whose type would have to be guessed from all of them: where some will be shown and others
    not, the type that is shown must not depend on the others. ``threads`` share the search of large batches.
    """

    max_keys: int

    def __init__(self, keys: Any = None, *, max_keys: int = MOST_KEYS, typed: bool = False, threads: int = 1) -> None:
        self.max_keys = parameters.integer("max_keys", max_keys, 1, LARGEST_CODE)
        self._typed, self._threads = typed, threads
        self.kind: Kind | None = None
        self._home: Any = None  # the Arrow type that keys are shown in
        self._types: set[type] = set()  # of other hashable objects
        self._table: Any = None
        self._last: tuple[Any, Codes] | None = None  # a dictionary and its codes
        self._seen: Any = None  # the dictionary of the last part
        self._growing = keys is None
        if keys is not None:
            self._declare(keys)

    def _declare(self, keys: Any) -> None:
        problem: str | None = None
        try:
            declared = list(parts(keys))
            total = sum(len(part) for part in declared)
            if total > self.max_keys:
                problem = f"keys declares {total:,} keys, more than max_keys={self.max_keys:,} allows memory for."
            elif not total:
                problem = "keys must declare at least one key; it is empty."
            elif any(_null_count(part) for part in declared):
                problem = "keys must not hold nulls."
            else:
                self._growing = True
                for part in declared:
                    self._part_codes(in_order(part), "raise")
                self.settle()
        except ItemTypeError as error:
            raise ParameterTypeError(str(error)) from None
        except ItemError as error:
            problem = str(error)
        except MemoryError:
            problem = f"keys declares more keys than there is memory for: about {BYTES_PER_KEY} bytes per key."
        if problem:
            raise ParameterError(problem)
        if self.size < total:
            raise ParameterError(TWICE)

    def settle(self) -> None:
        """No key will be added any more: those that are unknown from now on are undeclared."""
        self._growing, self._last = False, None
        if self._table is not None:
            self._table.settle()

    @property
    def size(self) -> int:
        """How many keys there are."""
        return 0 if self._table is None else int(self._table.size)

    @property
    def nbytes(self) -> int:
        """The memory of the tables."""
        return 0 if self._table is None else int(self._table.nbytes)

    @property
    def keys(self) -> Any:
        """The keys in the order of their codes, as a pyarrow.Array."""
        import pyarrow as pa

        if self._table is None:
            return pa.nulls(0)
        content = self._table.content
        if self.kind in ("strings", "bytes"):
            ends, data = content
            return pa.Array.from_buffers(self._home, self.size, [None, pa.py_buffer(ends), pa.py_buffer(data)])
        if self.kind == "objects":
            return _shown(content)
        return arrow_of(content, self._home)

    def codes(self, batch: Any, null_keys: NullKeys = "raise") -> Codes:
        """The code of every row; -1 for a key that is not declared, and for a null where those are dropped."""
        found = [self._part_codes(part, null_keys) for part in parts(batch)]
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype=np.int32), *found])

    def parts(self, batch: Any) -> list[Any]:
        """The batch as Arrow arrays or lists. Python's integers must fit int64: that one is larger must not show."""
        found = list(parts(batch))
        guessed = self._typed and not has_type(batch)
        if guessed and any(not isinstance(part, list) and _needs_unsigned(part) for part in found):
            raise ItemTypeError(UNTYPED)
        return found

    def is_settled_for(self, part: Any) -> bool:
        """Whether several threads may look the part up at once: no key is added, and its dictionary is known."""
        if self._growing or isinstance(part, list) or self.kind == "objects":
            return False
        dictionary = getattr(part, "dictionary", None)
        return dictionary is None or self._knows(dictionary)

    def _knows(self, dictionary: Any) -> bool:
        return self._last is not None and _same_memory(self._last[0], dictionary)

    def forget(self, size: int) -> None:
        """Keep the first keys only: what a refused batch has added is taken back."""
        if self._growing and size == 0:
            self.kind, self._table = None, None  # of which kind keys are is for the first accepted batch to say
        elif self._table is not None and size <= self.size:
            self._table.forget(size)
        self._last = None

    def _part_codes(self, part: Any, null_keys: NullKeys) -> Codes:
        nulls = _null_count(part)
        if nulls and null_keys == "raise":
            raise ItemError(NULLS)
        if isinstance(part, list):
            return self._of_objects(part, nulls)
        kind = kind_of(part.type)
        if kind is None:
            return np.full(len(part), UNDECLARED, dtype=np.int32)
        if nulls:
            codes = np.full(len(part), UNDECLARED, dtype=np.int32)
            # Of a dictionary's rows only the indices: an entry that is null is a matter of the dictionary.
            valid = getattr(part, "indices", part).is_valid().to_numpy(zero_copy_only=False)
            codes[valid] = self._part_codes(without_views(part).drop_null(), null_keys)
            return codes
        if self.kind == "objects":
            return self._of_objects(part.to_pylist(), 0)
        import pyarrow as pa

        if pa.types.is_dictionary(part.type):
            return self._of_dictionary(part, null_keys)
        self._accept(kind, part)
        if self.kind in ("strings", "bytes"):
            views = None if self._growing else views_of(part)
            return self._looked_up(strings_of(part) if views is None else views)
        values, outside = integers_of(part, self._home)
        if outside is not None and self._growing:
            raise ItemTypeError(f"keys must be {self._home}, as in the first batch; these are {part.type}.")
        codes = self._looked_up(values)
        if outside is not None:
            codes[outside] = UNDECLARED
        return codes

    def _looked_up(self, part: Any) -> Codes:
        known = self.size
        codes: Codes = self._table.codes(part, grow=self._growing, threads=self._threads)
        if not self._growing:
            return codes
        problem = f"there are more keys than max_keys={self.max_keys:,} allows memory for; raise max_keys."
        if self.size <= self.max_keys:
            if codes.min(initial=0) >= 0:
                return codes
            problem = f"a key is longer than {LONGEST_KEY:,} bytes; use a digest of it."
        self._table.forget(known)
        raise ItemError(f"keys were refused: {problem}")

    def _accept(self, kind: Kind, part: Any) -> None:
        """Refuse another kind of key; the first keys decide which."""
        if self.kind is None:
            import pyarrow as pa

            from dpfrugal.keys.hash_tables import IntegerTable, StringTable

            if kind == "strings" or kind == "bytes":
                self._home = pa.large_string() if kind == "strings" else pa.large_binary()
                self._table = StringTable()
            else:
                self._home = home_type(kind, part.type, unsigned=_needs_unsigned(part))
                self._table = IntegerTable()
            self.kind = kind
        if kind != self.kind:
            raise ItemTypeError(f"keys must be {self.kind}, as declared; these are {kind}.")

    def _of_dictionary(self, part: Any, null_keys: NullKeys) -> Codes:
        """The codes of dictionary-encoded rows: each entry that is used is looked up once."""
        import pyarrow as pa

        dictionary = part.dictionary
        indices: NDArray[np.integer[Any]] = part.indices.to_numpy()
        if self._last is not None and self._knows(dictionary):
            return self._last[1].take(indices)
        used = np.zeros(len(dictionary), dtype=np.bool_)
        used[indices] = True
        all_used = bool(used.all())
        again, self._seen = self._seen is not None and _same_memory(self._seen, dictionary), dictionary
        if self._growing or (len(dictionary) > len(part) and not again):
            codes = np.full(len(dictionary), UNDECLARED, dtype=np.int32)
            chosen = dictionary if all_used else without_views(dictionary).filter(pa.array(used))
            codes[used] = self._part_codes(chosen, null_keys)
            return codes.take(indices)
        # All of it, for the parts to come; an entry that is null is a null key of the rows that use it.
        codes = self._part_codes(dictionary, "drop")
        if null_keys == "raise" and dictionary.null_count and used[dictionary.is_null().to_numpy(False)].any():
            raise ItemError(NULLS)
        if not dictionary.null_count:
            self._last = (dictionary, codes)
        return codes.take(indices)

    def _of_objects(self, part: list[Any], nulls: int) -> Codes:
        if self._typed:
            raise ItemTypeError(UNTYPED)
        present = [key for key in part if not is_null(key)] if nulls else part
        types = set(map(type, present))
        if self.kind is None and present:
            from dpfrugal.keys.hash_tables import ObjectTable

            self.kind, self._table, self._types = "objects", ObjectTable(), types
        if self.kind != "objects":
            raise ItemTypeError(f"keys must be {self.kind}, as declared; these are of mixed kinds or other objects.")
        if not types <= self._types:
            names = ", ".join(sorted(kind.__name__ for kind in self._types))
            raise ItemTypeError(f"keys must be of the types that were declared ({names}); some are of another type.")
        unhashable = next((kind.__name__ for kind in types if kind.__hash__ is None), None)
        try:
            found = self._looked_up(present)
        except TypeError:
            unhashable = unhashable or "what one of them holds"
        if unhashable:
            raise ItemTypeError(f"{ALLOWED}; {unhashable} is not hashable.")
        if not nulls:
            return found
        codes = np.full(len(part), UNDECLARED, dtype=np.int32)
        codes[[not is_null(key) for key in part]] = found
        return codes


def _null_count(part: Any) -> int:
    return sum(map(is_null, part)) if isinstance(part, list) else int(part.null_count)


def _needs_unsigned(part: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_uint64(part.type))


def _same_memory(one: Any, other: Any) -> bool:
    """Whether two Arrow arrays are the same piece of memory; what is held cannot have been given to another."""
    if one.type != other.type or len(one) != len(other) or one.offset != other.offset:
        return False
    addresses = ([buffer and buffer.address for buffer in array.buffers()] for array in (one, other))
    return next(addresses) == next(addresses)


def _shown(objects: list[Any]) -> Any:
    """Objects as an Arrow column: of their own type where Arrow has one, otherwise as text."""
    import pyarrow as pa

    try:
        return pa.array(objects)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return attempted(lambda: pa.array([str(key) for key in objects], pa.large_string()))
