"""The rows of a column of which at most so many of each person count, chosen without looking at values.

Each row has a random priority; of each person those with the smallest ones count. So which rows count depends on the
person's own rows and on chance only, whatever order the rows are in and however a source cuts them.
"""

from typing import Any

import numpy as np

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows
from dpfrugal.estimators.table.sources.table_batches import table_batches
from dpfrugal.kernels.threads import available
from dpfrugal.keys.person_limits import People, RowPriorities
from dpfrugal.parameters import NanPolicy


def person_rows(
    data: Any, column: str, person: str, max_items_per_person: int, nan_policy: NanPolicy
) -> tuple[Kind, Codes, int]:
    """The type of the column, the codes of the rows that count, and how many rows the table has."""
    threads = available()
    rows, people, priorities = KeyedRows(nan_policy, threads), People(threads), RowPriorities()
    for batch in table_batches(data, column, [person], []):
        who = people.codes(batch.column(person))
        everyone = np.zeros(batch.num_rows, dtype=np.int32)
        rows.add(batch.column(column), everyone, who, priorities.next(batch.num_rows))
    rows.keep_chosen(max_items_per_person, None)
    kind = rows.kind
    codes, _ = rows.by_group(np.zeros(1, dtype=np.int32), 1, kind)
    return kind, codes, rows.rows
