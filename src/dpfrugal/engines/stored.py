"""The state of a ``PrivateQuantile`` as JSON, for a stream's checkpoint. It is raw: it holds the open segment's counts.

What is restored goes on exactly as it would have. Only the classes of the state machine are made anew; nothing in the
text can name another.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.conclude import Conclude
from dpfrugal.errors import TableError
from dpfrugal.evidence import Agreement, Evidence, Target
from dpfrugal.locate import Locate
from dpfrugal.noisy_cdf import NoisyCdf
from dpfrugal.quantile import PrivateQuantile
from dpfrugal.refine import Refine
from dpfrugal.search import Atom, Search

CLASSES: Final = {kind.__name__: kind for kind in (Search, Locate, Refine, Atom, Conclude, Evidence, Agreement)}
FROZEN: Final = {kind.__name__: kind for kind in (Target, NoisyCdf)}
MACHINE: Final = ("items", "edges", "segment_length", "_pending", "_before", "_searches")


def raw_state(estimator: PrivateQuantile) -> dict[str, Any]:
    """Everything that a stream has left in an estimator."""
    machine = estimator._machine
    return {
        "machine": {name: encoded(getattr(machine, name)) for name in MACHINE},
        "counts": estimator._counts.tolist(),
        "filled": estimator._filled,
    }


def restore(estimator: PrivateQuantile, state: dict[str, Any]) -> None:
    """Put a state into a new estimator that was made with the same parameters."""
    try:
        machine = {name: decoded(state["machine"][name]) for name in MACHINE}
        counts, filled = np.array(state["counts"], dtype=np.int64), int(state["filled"])
    except (KeyError, TypeError, ValueError):
        raise TableError("The checkpoint is damaged, or of another version.") from None
    vars(estimator._machine).update(machine)
    estimator._counts, estimator._filled = counts, filled


def encoded(value: Any) -> Any:
    """A value of the state machine in terms of JSON."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {"tuple": [encoded(part) for part in value]}
    if isinstance(value, list):
        return [encoded(part) for part in value]
    if (name := type(value).__name__) in CLASSES or name in FROZEN:
        return {"class": name, "holds": {field: encoded(part) for field, part in vars(value).items()}}
    return value


def decoded(value: Any) -> Any:
    """The value that was encoded."""
    if isinstance(value, list):
        return [decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=np.float64)
    if "tuple" in value:
        return tuple(decoded(part) for part in value["tuple"])
    holds = {field: decoded(part) for field, part in value["holds"].items()}
    if value["class"] in FROZEN:
        return FROZEN[value["class"]](**holds)
    made = CLASSES[value["class"]].__new__(CLASSES[value["class"]])
    vars(made).update(holds)
    return made
