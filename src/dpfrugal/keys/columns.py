"""Key columns: one column or several that are the key of a row together, as one code.

>>> import pyarrow as pa
>>> keys = KeyColumns(["country", "device"], [("de", "phone"), ("at", "phone")])
>>> keys.codes([pa.array(["at", "de", "de"]), pa.array(["phone", "phone", "tablet"])]).tolist()
[1, 0, -1]
>>> {name: column.to_pylist() for name, column in keys.columns().items()}
{'country': ['de', 'at'], 'device': ['phone', 'phone']}

Each column has an index of its own. The codes of the first two columns make an integer, which a third index gives a
code; that and the third column's code make the next integer, and so on. A row has a null key if any of its columns is
null.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.keys.arrays import null_rows
from dpfrugal.keys.index import MOST_KEYS, NULLS, TWICE, UNDECLARED, Codes, KeyIndex
from dpfrugal.parameters import NullKeys

NULL: Final = -2  # the code of a null key
GROWING: Final = 1 << 32  # more than any code, where it is not known yet how many there will be


class KeyColumns:
    """Keys of one column or several, and their codes; ``keys`` declares them, without it they are added as they come.

    ``keys`` is a batch of keys for one column, a list of tuples for several, or a table that has the columns. With
    ``typed`` keys whose type would have to be guessed are refused, as some will be shown and others not.
    """

    names: list[str]

    def __init__(
        self,
        names: Sequence[str],
        keys: Any = None,
        *,
        max_keys: int = MOST_KEYS,
        typed: bool = False,
        threads: int = 1,
    ) -> None:
        self.names = list(names)
        self._options: dict[str, Any] = {"max_keys": max_keys, "threads": threads}
        self._typed = typed
        self._strides: list[int] = []
        if keys is not None and len(self.names) == 1:
            self._indices, self._pairs = [KeyIndex(_of_table(keys, self.names)[0], **self._options)], []
            return
        self._indices = [KeyIndex(**self._options, typed=typed) for _ in self.names]
        self._pairs = [KeyIndex(**self._options) for _ in self.names[1:]]
        self._strides = [GROWING for _ in self.names[1:]]
        if keys is not None:
            self._declare(keys)

    @property
    def _last(self) -> KeyIndex:
        return self._pairs[-1] if self._pairs else self._indices[0]

    @property
    def size(self) -> int:
        """How many keys there are."""
        return self._last.size

    def _declare(self, keys: Any) -> None:
        columns, problem = _of_table(keys, self.names), ""
        try:
            several = [index.codes(column) for index, column in zip(self._indices, columns, strict=True)]
            # Fewer numbers than codes of 32 bits could make: a dense range is looked up without hashing.
            self._strides = [index.size for index in self._indices[1:]]
            codes = self._combined(several)
        except ItemTypeError as error:
            raise ParameterTypeError(str(error)) from None
        except ItemError as error:
            problem = "keys must not hold nulls." if str(error) == NULLS else str(error)
        if problem:
            raise ParameterError(problem)
        if self.size < codes.size:
            raise ParameterError(TWICE)
        if not codes.size:
            raise ParameterError("keys must declare at least one key; it is empty.")
        self.settle()

    def settle(self) -> None:
        """No key will be added any more: those that are unknown from now on are undeclared."""
        for index in (*self._indices, *self._pairs):
            index.settle()

    def codes(self, columns: Sequence[Any], null_keys: NullKeys = "raise") -> Codes:
        """The code of every row of some Arrow arrays; -1 for a key that is not declared, -2 for a null one."""
        several = [index.codes(column, null_keys) for index, column in zip(self._indices, columns, strict=True)]
        codes = self._combined(several)
        for column in columns if null_keys == "drop" else []:
            null = null_rows(column)
            if null is not None:
                codes = np.where(null, np.int32(NULL), codes)
        return codes

    def code(self, key: tuple[Any, ...]) -> int:
        """The code of one key; -1 if it is none of them. Nothing is added."""
        import pyarrow.compute as pc

        same = np.ones(self.size, dtype=np.bool_)
        for column, part in zip(self.columns().values(), key, strict=True):
            same &= pc.equal(column, typed(part, column.type)[0]).fill_null(False).to_numpy(zero_copy_only=False)
        return int(np.flatnonzero(same)[0]) if same.any() else UNDECLARED

    def _combined(self, several: list[Codes]) -> Codes:
        codes = several[0]
        for index, stride, more in zip(self._pairs, self._strides, several[1:], strict=True):
            known = (codes >= 0) & (more >= 0)
            numbers = codes.astype(np.int64) * stride + more
            if known.all():
                codes = index.codes(numbers)
            else:  # what is unknown in one column must not become a key
                codes = np.full(codes.size, UNDECLARED, dtype=np.int32)
                codes[known] = index.codes(numbers[known])
        return codes

    def columns(self, codes: NDArray[np.int64] | None = None) -> dict[str, Any]:
        """The keys of some codes, or all in the order of their codes: an Arrow array for each column."""
        import pyarrow as pa

        codes = np.arange(self.size, dtype=np.int64) if codes is None else codes
        several: list[NDArray[np.int64]] = []
        for index, stride in zip(reversed(self._pairs), reversed(self._strides), strict=True):
            numbers = index.keys.to_numpy()[codes] if codes.size else codes
            codes, column = np.divmod(numbers, stride)
            several.append(column)
        taken = zip(self.names, self._indices, [codes, *reversed(several)], strict=True)
        return {name: index.keys.take(pa.array(column, pa.int64())) for name, index, column in taken}


def typed(part: Any, arrow_type: Any) -> Any:
    """One part of a key as an Arrow array of a column's type; of its own type where the column has none yet."""
    import pyarrow as pa

    try:
        if isinstance(part, bool) == pa.types.is_boolean(arrow_type) or pa.types.is_null(arrow_type):
            return pa.array([part], None if pa.types.is_null(arrow_type) else arrow_type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise ParameterTypeError(f"other must be a key of the type of the keys, which is {arrow_type}.")


def _of_table(keys: Any, names: list[str]) -> list[Any]:
    """One batch of keys for each column, from a table of keys or a list of tuples; a single column is one already."""
    found = getattr(keys, "column_names", getattr(keys, "columns", None))
    if isinstance(keys, Mapping):
        found = keys.keys()
    if found is not None:
        missing = [name for name in names if name not in list(found)]
        if missing:
            raise ParameterError(
                f"keys must have the columns of by; {', '.join(map(repr, missing))} is not among them."
            )
        return [keys[name] for name in names]
    if len(names) == 1:
        return [keys]
    rows = list(keys) if isinstance(keys, Iterable) and not isinstance(keys, str | bytes) else None
    if rows is None or not all(isinstance(row, tuple | list) and len(row) == len(names) for row in rows):
        raise ParameterTypeError(
            f"keys must be a table with the columns of by, or a list of tuples of {len(names)}, one for each column."
        )
    return [[row[place] for row in rows] for place in range(len(names))]
