"""How the state of many keys is stored in a checkpoint.

Every estimate, step and anchor, and the keys in the order of their codes. A checkpoint is raw: it holds estimates that
rows have moved since the last release, and who has had rows. Keys are stored as Arrow, so those that Arrow cannot hold
cannot be saved. After a restore it is decided anew which further rows of a person are taken: that was random before,
too.
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
from dpfrugal.keys.person_limits import PersonLimits
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee
from dpfrugal.storage import json_values
from dpfrugal.storage.checkpoint_file import Contents

Bytes = NDArray[np.uint8]


def contents_of(estimator: Any) -> Contents:
    """All parameters and all state."""
    state, index, people = estimator._state, estimator._index, estimator._person_limits
    discovery = estimator._discovery
    arrays: dict[str, NDArray[Any]] = {"keys": saved_keys(index)} | arrays_of(state)
    if discovery is not None:
        arrays |= {"counts": discovery.counts(), "public": discovery.shown()}
    if people is not None:
        arrays |= {"people": saved_keys(people.people)} | people.taken_so_far()
    if estimator._last is not None:
        arrays["release"] = arrow_bytes(estimator._last)
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
    raw = numbers_of(state) | {"set_aside": estimator.set_aside}
    return Contents(type(estimator).__name__, parameters, raw, arrays=arrays)


def estimator_of(kind: Any, contents: Contents) -> Any:
    """The estimator whose ``contents_of`` these are."""
    parameters, raw, arrays = contents.parameters, contents.state, contents.arrays
    same = ("decimals", "max_items_per_person", "max_keys_per_person", "adaptive_steps", "nan_policy", "null_keys")
    discovery = parameters["discover_keys"] and ApproxDP.of_record(parameters["discover_keys"])
    keys = arrow_keys(arrays["keys"])
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
        learn(estimator._index, keys)
        estimator._discovery.restore(arrays["counts"], arrays["public"])
    estimator._state = state_of(estimator._state, estimator._index.size, raw, arrays)
    if "people" in arrays:
        people = PersonLimits(estimator._max_items_per_person, estimator._max_keys_per_person)
        learn(people.people, arrow_keys(arrays["people"]))
        people.restore(arrays, json_values.integer_of(raw["set_aside"]))
        estimator._person_limits = people
    if "release" in arrays:
        estimator._last = arrow_table(arrays["release"])
    return estimator


def numbers_of(state: KeyedState) -> dict[str, int]:
    """The numbers of a state."""
    return {
        "key": state.path.key,
        "position": state.items,
        "released_at": state.released_at,
        "farthest": state.farthest,
        "widest": state.widest,
    }


def arrays_of(state: KeyedState) -> dict[str, NDArray[Any]]:
    """The arrays of a state; there are no steps where they do not adapt."""
    arrays: dict[str, NDArray[Any]] = {"estimates": state.estimates, "anchors": state.anchors}
    return arrays if state.steps is None else arrays | {"steps": state.steps}


def state_of(blank: KeyedState, keys: int, raw: dict[str, Any], arrays: Any) -> KeyedState:
    """The state that ``numbers_of`` and ``arrays_of`` were taken of; ``blank`` has the same parameters."""
    estimates, anchors, steps = arrays["estimates"], arrays["anchors"], arrays.get("steps")
    shape = (len(estimates), len(blank.path.quantiles))
    same = [estimates.dtype == np.int64, anchors.dtype == np.float64, steps is None or steps.dtype == np.uint8]
    same += [part.shape == shape for part in (estimates, anchors, steps) if part is not None]
    if not all(same) or len(estimates) < keys or (steps is None) != (blank.steps is None):
        raise ValueError("not the estimates of these keys")
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
    """Every estimate at its last public value, as if no row had come since."""
    scale = state.path.grid.scale
    points = np.clip(np.rint(state.anchors * scale), -LARGEST_ESTIMATE, LARGEST_ESTIMATE).astype(np.int64)
    return replace(
        state,
        estimates=np.clip(points, -LARGEST_ESTIMATE, LARGEST_ESTIMATE),
        clock=np.array([state.released_at], dtype=np.int64),
    )


def saved_keys(index: KeyIndex) -> Bytes:
    """Keys in the order of their codes, unless Arrow cannot hold them."""
    if index.kind == "objects":
        raise CheckpointError("Keys or persons that are neither numbers, strings, bytes nor dates cannot be saved.")
    return key_bytes(index.keys)


def key_bytes(keys: Any) -> Bytes:
    """An Arrow array of keys as bytes."""
    import pyarrow as pa

    return arrow_bytes(pa.table({"key": keys}))


def arrow_keys(blob: Bytes) -> Any:
    """The keys that ``key_bytes`` wrote."""
    return arrow_table(blob)["key"].combine_chunks()


def learn(index: KeyIndex, keys: Any) -> None:
    """Let an index that learns its keys learn these, in this order."""
    if len(keys) and index.codes(keys).tolist() != list(range(len(keys))):
        raise ValueError("a key occurs twice")


def arrow_bytes(table: Any) -> Bytes:
    """A table as an Arrow stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def arrow_table(blob: Bytes) -> Any:
    """The table that ``arrow_bytes`` wrote."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(blob)) as stream:
        return stream.read_all()
