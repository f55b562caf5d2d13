"""What the record of a stream per key holds: the public state of the estimator, and its last release.

Arrays are bytes: lists of their numbers would be a hundred thousand objects for the collector of garbage.
"""

import base64
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfrugal.engines.spark.key_discovery import keep_public
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.estimators.keyed.release_table import table_of
from dpfrugal.estimators.keyed.state_record import keys_of, of_table

Number = TypeVar("Number", np.int64, np.uint8, np.float64)


def record_of(estimator: KeyedDPFrugal1U) -> dict[str, Any]:
    """The estimator after its last release; of rows since, only how many there were."""
    own = estimator._state
    return {
        "estimates": of_array(own.estimates),
        "steps": None if own.steps is None else of_array(own.steps),
        "anchors": of_array(own.anchors),
        "clock": own.items,
        "released_at": own.released_at,
        "farthest": own.farthest,
        "widest": own.widest,
        "coin_key": own.path.key,
        "public": None if estimator.discover_keys is None else _of_keys(estimator._index.keys),
    }


def restore(estimator: KeyedDPFrugal1U, record: dict[str, Any]) -> None:
    """Bring a new estimator of the same parameters to where the recorded one was."""
    if record["public"] is not None:
        keep_public(estimator, _keys_of(record["public"]))
    own, steps = estimator._state, record["steps"]
    shape = own.estimates.shape
    estimator._state = replace(
        own,
        path=replace(own.path, key=record["coin_key"]),
        estimates=array_of(record["estimates"], np.int64).reshape(shape),
        steps=None if steps is None else array_of(steps, np.uint8).reshape(shape),
        anchors=array_of(record["anchors"], np.float64).reshape(shape),
        clock=np.array([record["clock"]], dtype=np.int64),
        released_at=record["released_at"],
        farthest=record["farthest"],
        widest=record["widest"],
    )


def record_of_release(estimator: KeyedDPFrugal1U, table: Any) -> dict[str, Any]:
    """A release; of declared keys the values alone."""
    keys = table.column("key").combine_chunks()[:: len(estimator.quantiles)]
    values, alphas = (of_array(table.column(name).to_numpy()) for name in ("value", "alpha"))
    return {"keys": None if estimator.discover_keys is None else _of_keys(keys), "values": values, "alphas": alphas}


def release_of_record(estimator: KeyedDPFrugal1U, record: dict[str, Any]) -> Any:
    """The release that ``record_of_release`` wrote."""
    keys = estimator.keys if record["keys"] is None else _keys_of(record["keys"])
    values, alphas = (array_of(record[name], np.float64) for name in ("values", "alphas"))
    return table_of(keys, estimator.quantiles, values, alphas, {})


def of_array(array: NDArray[Any]) -> str:
    """An array as a text."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def array_of(text: str, kind: type[Number]) -> NDArray[Number]:
    """The array that ``of_array`` wrote."""
    return np.frombuffer(base64.b64decode(text), dtype=kind).copy()


def _of_keys(keys: Any) -> str:
    import pyarrow as pa

    return of_array(of_table(pa.table({"key": keys})))


def _keys_of(text: str) -> Any:
    return keys_of(array_of(text, np.uint8))
