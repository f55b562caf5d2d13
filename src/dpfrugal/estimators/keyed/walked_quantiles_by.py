"""A private quantile per group of a data frame by the walk: one integer per key.

>>> import dpfrugal as dpf, pyarrow as pa
>>> flights = pa.table({"carrier": ["AA", "UA"] * 5_000, "delay": [10, 20] * 5_000})
>>> table = walked_quantiles_by(flights, "delay", 0.9, dpf.PureDP(epsilon=1.0), by="carrier", keys=["AA", "UA", "DL"])
>>> table.column_names, table["key"].to_pylist()
(['key', 'quantile', 'value', 'alpha'], ['AA', 'UA', 'DL'])
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dpfrugal import parameters
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.keyed.coded_rows import ROWS_AT_ONCE, LookedUpCodes, coded_rows
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.inputs.dataframes import batches
from dpfrugal.keys.index import KeyIndex
from dpfrugal.keys.object_columns import typed_frame
from dpfrugal.keys.person_limits import People, RowPriorities, chosen_rows
from dpfrugal.privacy.guarantees import Guarantee

KEYS_AND_VALUES: Final = ("key", "value")


def walked_quantiles_by(
    data: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    by: str,
    person: str | None = None,
    rounds: int = 1,
    **options: Any,
) -> Any:
    """A private quantile of ``column`` for each key of the column ``by``: a table of key, quantile, value and alpha.

    ``options`` are those of ``KeyedDPFrugal1U``: ``keys`` or ``discover_keys`` must be among them, and ``decimals``,
    ``start`` and ``max_items_per_person`` often are. ``person`` names a column of ids, by which the bounds per person
    are enforced: each row has a random priority, and of each person those with the smallest ones count; the table is
    then held as a whole. Otherwise it is read in batches, as Arrow. The order of rows must not carry a trend.
    ``rounds`` is how many releases there are, after equal numbers of rows, of which the last is returned: steps adapt
    where quantiles are far from the start. All of them cost the one guarantee.
    """
    rounds = parameters.integer("rounds", rounds, 1)
    estimator = KeyedDPFrugal1U(quantiles, guarantee, **options)
    names = {"column": column, "by": by} | ({} if person is None else {"person": person})
    for parameter, name in names.items():
        parameters.column(parameter, name)
    estimator.account.also_asked(column=column, by=by, source=type(data).__name__)
    if rounds > 1 and options.get("ledger") is not None:  # what the data will be refused for is found before the spend
        free = options | {"ledger": None, "dataset": None}
        walked_quantiles_by(data, column, quantiles, guarantee, by=by, person=person, **free)
    rows = _rows(data) if rounds > 1 else 0
    ends = [rows * done // rounds for done in range(1, rounds)]
    data = data if estimator.discover_keys is None else typed_frame(data, [by])
    read = batches(data, list(dict.fromkeys(names.values())))
    columns = ([batch.column(name) for name in (by, column, *([] if person is None else [person]))] for batch in read)
    walk_rows(estimator, columns, ends)
    return estimator.release()


def walk_rows(estimator: KeyedDPFrugal1U, columns: Iterable[Sequence[Any]], ends: Sequence[int] = ()) -> None:
    """Update with batches of keys and values, and with a release after each of so many rows.

    With persons as a third column all rows are held, and of each person those with the smallest priorities count.
    """
    from dpfrugal.inputs.batches import regrouped

    parts = ((_batch(*part), 0) for part in _chosen(estimator, columns))
    # When to release must not depend on what other rows hold.
    for batch, _ in regrouped(parts, ROWS_AT_ONCE, ends) if ends else parts:
        if batch.num_columns == len(KEYS_AND_VALUES):
            estimator.update_many(batch.column("key"), batch.column("value"))
        else:
            estimator._update_chosen(batch.column("key"), batch.column("value"), np.asarray(batch.column("chosen")))
        if estimator.items in ends:
            estimator.release()


def _chosen(estimator: KeyedDPFrugal1U, columns: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, Any, Any]]:
    """Keys, values, and which rows count: None where all of them do, as no persons are given."""
    with_persons = []
    for batch in columns:
        if len(batch) == len(KEYS_AND_VALUES):
            yield batch[0], batch[1], None
        else:
            with_persons.append(batch)
    if with_persons:
        yield from _by_priority(estimator, with_persons)


def _by_priority(estimator: KeyedDPFrugal1U, held: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any, Any]]:
    """All batches, with the rows that count: by priorities over the whole table, so that no cut can matter."""
    people, priorities = People(), RowPriorities()
    # Keys that are to be discovered are for the estimator to learn, batch by batch.
    index = KeyIndex(max_keys=estimator._index.max_keys) if estimator.discover_keys else estimator._index
    who, codes = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=np.int32)]
    for keys, values, persons in held:
        who.append(people.codes(persons))
        looked_up = LookedUpCodes(index.codes(keys, estimator.null_keys))
        codes.extend(rows.codes for rows in coded_rows(looked_up, values, estimator.nan_policy))
    rows = chosen_rows(
        priorities.next(sum(map(len, who))),
        np.concatenate(who),
        np.concatenate(codes),
        max_items_per_person=estimator.max_items_per_person,
        max_keys_per_person=estimator.max_keys_per_person,
    )
    first = 0
    for keys, values, _ in held:
        yield keys, values, rows[first : first + len(keys)]
        first += len(keys)


def _batch(keys: Any, values: Any, chosen: Any) -> Any:
    import pyarrow as pa

    columns = dict(zip(KEYS_AND_VALUES, (keys, values), strict=True)) | (
        {} if chosen is None else {"chosen": pa.array(chosen)}
    )
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _rows(data: Any) -> int:
    """How many rows there are, if that is known beforehand: when to release must not depend on when they come."""
    try:
        return len(data)
    except TypeError:
        pass
    raise ParameterError("rounds is for data that say how many rows they have; collect them first.")
