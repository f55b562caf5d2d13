"""The store of releases: a window is spent once, and what was released is read as it was written."""

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dpfrugal.errors import LedgerError, ReplayError
from dpfrugal.serve.store import Store

ABOUT = {"quantiles": [0.5, 0.9], "base_name": "latency_seconds"}
TERMS = "some terms"


def numbers(keys: int) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    return np.arange(3.0 * keys * 2).reshape(3, keys, 2)


def released(store: Store, ends: float, metric: str = "latency", keys: tuple[str, ...] = ("/a", "/ü")) -> int:
    store.spend(metric, ends - 60.0, ends, "2027-01-15", TERMS)
    return store.publish(metric, ends, ends + 0.5, ABOUT, keys, numbers(len(keys))).id


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "releases.db")


def test_store__a_release_is_read_as_it_was_written_also_by_the_next_server(store: Store) -> None:
    released(store, 120.0)
    store.close()
    (found,) = Store(store.path).releases().releases
    assert (found.metric, found.began, found.ends, found.released) == ("latency", 60.0, 120.0, 120.5)
    assert (found.about, found.keys) == (ABOUT, ("/a", "/ü"))
    assert np.array_equal(found.numbers, numbers(2))


def test_store__a_window_is_spent_and_published_once(store: Store) -> None:
    with pytest.raises(ReplayError):
        store.publish("latency", 120.0, 120.5, ABOUT, ["/a"], numbers(1))
    released(store, 120.0)
    with pytest.raises(ReplayError):
        store.spend("latency", 60.0, 120.0, "2027-01-15", TERMS)
    with pytest.raises(ReplayError):
        store.publish("latency", 120.0, 121.0, ABOUT, ["/a"], numbers(1))
    store.spend("size", 60.0, 120.0, "2027-01-15", TERMS)
    assert [store.spent_on(name, "2027-01-15") for name in ("latency", "size")] == [{TERMS: 1}] * 2
    assert store.spent_on("latency", "2027-01-16") == {}


def test_store__releases_are_found_by_metric_time_and_number(store: Store) -> None:
    ids = [released(store, 60.0 * place, metric) for place in range(2, 6) for metric in ("latency", "size")]
    store.spend("latency", 300.0, 360.0, "2027-01-15", TERMS)  # a gap: spent, and never released

    def found(**asked: object) -> list[int]:
        return [each.id for each in store.releases(**asked).releases]  # type: ignore[arg-type]

    assert found() == ids
    assert found(metric="size") == ids[1::2]
    assert found(since=240.0) == ids[4:]
    assert found(after=ids[5]) == ids[6:]
    assert found(limit=3) == ids[:3]
    assert found(last=True, limit=3) == ids[-3:]
    assert found(most_numbers=1) == ids[:1]  # at least one
    assert store.releases(most_numbers=1).more
    assert not store.releases().more


def test_store__what_is_forgotten_stays_spent(store: Store) -> None:
    released(store, 120.0, keys=("/old",))
    newer = released(store, 180.0)
    store.forget(before=150.0)
    assert [each.id for each in store.releases().releases] == [newer]
    assert store.spent_on("latency", "2027-01-15") == {TERMS: 2}
    with pytest.raises(ReplayError):
        store.spend("latency", 60.0, 120.0, "2027-01-15", TERMS)
    assert b"/old" not in b"".join(str(row).encode() for row in sqlite3.connect(store.path).iterdump())


def test_store__grants_of_a_day_add_up_by_their_terms(store: Store) -> None:
    for terms, windows in ((TERMS, 3), ("others", 5), (TERMS, 4)):
        store.grant("latency", "2027-01-15", terms, windows)
    assert [store.granted("latency", "2027-01-15", terms) for terms in (TERMS, "others", "none")] == [7, 5, 0]
    assert store.granted("latency", "2027-01-16", TERMS) == store.granted("size", "2027-01-15", TERMS) == 0


def test_store__is_for_its_owner_alone(store: Store) -> None:
    assert os.stat(store.path).st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"no database", b"\0" * 4096])
def test_store__another_file_is_refused_and_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "another"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="cannot be used"):
        Store(path)
    assert path.read_bytes() == content


def test_store__the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "another.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE windows (id INTEGER)")
    connection.close()
    with pytest.raises(LedgerError, match="cannot be used"):
        Store(path)
