"""What a checkpoint of many walks holds: every estimate, the keys in the order of their codes, and who has had rows.

Keys are kept as Arrow, so those that Arrow cannot hold cannot be saved. Which rows of a person are taken is decided
anew after a restore: that was chance before, too.
"""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import CheckpointError
from dpfrugal.estimators.grid import LARGEST_ESTIMATE
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.kernels import coins
from dpfrugal.keys.index import KeyIndex
from dpfrugal.keys.person_limits import Contributions
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee
from dpfrugal.storage import json_values
from dpfrugal.storage.checkpoint_file import Contents

Bytes = NDArray[np.uint8]


def contents_of(estimator: Any) -> Contents:
    """All parameters and all state."""
    state, index, people = estimator._state, estimator._index, estimator._contributions
    discovery = estimator._discovery
    arrays: dict[str, NDArray[Any]] = {"keys": of_keys(index), "estimates": state.estimates, "anchors": state.anchors}
    if state.steps is not None:
        arrays["steps"] = state.steps
    if discovery is not None:
        arrays |= {"counts": discovery.counts(), "public": discovery.shown()}
    if people is not None:
        arrays |= {"people": of_keys(people.people)} | people.taken_so_far()
    if estimator._last is not None:
        arrays["release"] = of_table(estimator._last)
    parameters = {
        "quantiles": json_values.packed(estimator.quantiles),
        "guarantee": estimator.guarantee.to_record(),
        "discover_keys": None if discovery is None else discovery.cost.to_record(),
        "keys": None if discovery is not None else hashlib.sha256(arrays["keys"].tobytes()).hexdigest(),
        "max_keys": index.max_keys,
        "decimals": state.path.grid.decimals,
        "start": estimator._first_start,
        "max_items_per_person": estimator._max_items_per_person,
        "max_keys_per_person": estimator._max_keys_per_person,
        "adaptive_steps": state.steps is not None,
        "nan_policy": estimator._nan_policy,
        "null_keys": estimator._null_keys,
        "threads": estimator._threads,
    }
    raw = {
        "key": state.path.key,
        "position": state.items,
        "released_at": state.released_at,
        "farthest": state.farthest,
        "widest": state.widest,
        "set_aside": estimator.set_aside,
    }
    return Contents(type(estimator).__name__, parameters, raw, arrays=arrays)


def estimator_of(kind: Any, contents: Contents) -> Any:
    """The estimator that ``contents_of`` was taken of."""
    parameters, raw, arrays = contents.parameters, contents.state, contents.arrays
    same = ("decimals", "max_items_per_person", "max_keys_per_person", "adaptive_steps", "nan_policy", "null_keys")
    discovery = parameters["discover_keys"] and ApproxDP.of_record(parameters["discover_keys"])
    keys = keys_of(arrays["keys"])
    estimator = kind(
        json_values.floats_of(parameters["quantiles"]).tolist(),
        Guarantee.of_record(parameters["guarantee"]),
        keys=None if discovery else keys,
        discover_keys=discovery,
        max_keys=parameters["max_keys"],
        threads=parameters["threads"],
        coin_seed=0,
        **{name: parameters[name] for name in same},
    )
    estimator._first_start = json_values.integer_of(parameters["start"], -LARGEST_ESTIMATE, LARGEST_ESTIMATE)
    if estimator._discovery is not None:
        known(estimator._index, keys)
        estimator._discovery.restore(arrays["counts"], arrays["public"])
    estimator._state = state_of(estimator._state, estimator._index.size, raw, arrays)
    if "people" in arrays:
        people = Contributions(estimator._max_items_per_person, estimator._max_keys_per_person)
        known(people.people, keys_of(arrays["people"]))
        people.restore(arrays, json_values.integer_of(raw["set_aside"]))
        estimator._contributions = people
    if "release" in arrays:
        estimator._last = table_of(arrays["release"])
    return estimator


def state_of(blank: KeyedState, keys: int, raw: dict[str, Any], arrays: Any) -> KeyedState:
    """The walks where they were."""
    estimates, anchors, steps = arrays["estimates"], arrays["anchors"], arrays.get("steps")
    shape = (len(estimates), len(blank.path.quantiles))
    same = [estimates.dtype == np.int64, anchors.dtype == np.float64, steps is None or steps.dtype == np.uint8]
    same += [part.shape == shape for part in (estimates, anchors, steps) if part is not None]
    if not all(same) or len(estimates) < keys or (steps is None) != (blank.steps is None):
        raise ValueError("not the walks of these keys")
    position = json_values.integer_of(raw["position"])
    return KeyedState(
        path=replace(blank.path, key=json_values.integer_of(raw["key"], 0, coins.WORD_MASK)),
        estimates=estimates,
        steps=steps,
        anchors=anchors,
        clock=np.array([position], dtype=np.int64),
        released_at=json_values.integer_of(raw["released_at"], 0, position),
        farthest=json_values.integer_of(raw["farthest"], 0, LARGEST_ESTIMATE),
        widest=json_values.integer_of(raw["widest"], 1, LARGEST_ESTIMATE),
    )


def forgotten(state: KeyedState) -> KeyedState:
    """Every walk at its last public value, as if no row had come since."""
    scale = state.path.grid.scale
    points = np.clip(np.rint(state.anchors * scale), -LARGEST_ESTIMATE, LARGEST_ESTIMATE).astype(np.int64)
    return replace(
        state,
        estimates=np.clip(points, -LARGEST_ESTIMATE, LARGEST_ESTIMATE),
        clock=np.array([state.released_at], dtype=np.int64),
    )


def of_keys(index: KeyIndex) -> Bytes:
    """Keys in the order of their codes."""
    import pyarrow as pa

    if index.kind == "objects":
        raise CheckpointError("Keys or persons that are neither numbers, strings, bytes nor dates cannot be saved.")
    return of_table(pa.table({"key": index.keys}))


def keys_of(blob: Bytes) -> Any:
    """The keys that ``of_keys`` wrote."""
    return table_of(blob)["key"].combine_chunks()


def known(index: KeyIndex, keys: Any) -> None:
    """Let an index that learns its keys learn these, in this order."""
    if len(keys) and index.codes(keys).tolist() != list(range(len(keys))):
        raise ValueError("a key occurs twice")


def of_table(table: Any) -> Bytes:
    """A table as an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def table_of(blob: Bytes) -> Any:
    """The table that ``of_table`` wrote."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(blob)) as stream:
        return stream.read_all()
