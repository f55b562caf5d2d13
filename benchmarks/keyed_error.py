"""How far a quantile per key is from the exact one: by rows a key, decimals and rounds, for latencies in milliseconds.

Fifty keys, lognormal with medians from 20 to 200, walked from 0 in random order, as on Spark and in a shuffled file.

    python -m benchmarks.keyed_error [repetitions]
"""

import sys

import numpy as np

import dpfrugal as dpf

KEYS = 50
GUARANTEE = dpf.PureDP(epsilon=1.0)


def errors(rng: np.random.Generator, rows: int, q: float, decimals: int, rounds: int) -> np.ndarray:
    """The relative error of each key."""
    medians = np.geomspace(20, 200, KEYS)
    values = medians * rng.lognormal(0, 0.5, (rows, KEYS))
    estimator = dpf.KeyedDPFrugal1U(q, GUARANTEE, keys=np.arange(KEYS), decimals=decimals)
    for part in np.array_split(values, rounds):
        estimator.update_many(np.tile(np.arange(KEYS), len(part)), part.reshape(-1))
        table = estimator.release()
    exact = np.quantile(values, q, axis=0)
    return np.abs(table["value"].to_numpy() - exact) / exact


def main(repetitions: int) -> None:
    rng = np.random.default_rng(1)
    print("| rows a key | q | `decimals` | `rounds` | median error | worst of ten keys |\n|---|---|---|---|---|---|")
    for rows in (2_000, 20_000, 200_000):
        for q in (0.5, 0.99):
            for decimals, rounds in ((0, 1), (0, 20), (1, 1), (1, 20)):
                found = np.concatenate([errors(rng, rows, q, decimals, rounds) for _ in range(repetitions)])
                worst = np.quantile(found, 0.9)
                print(f"| {rows:,} | {q} | {decimals} | {rounds} | {np.median(found):.1%} | {worst:.1%} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
