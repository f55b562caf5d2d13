"""A day of request logs in Parquet: private p99 per endpoint, and the latency of all requests over the day.

    spark-submit examples/request_logs.py --make 2000000 logs     # writes a day of made-up logs, then does the work
    spark-submit examples/request_logs.py logs                    # for logs that are there: endpoint, ms, hour

``spark-submit`` asks the Python of ``PYSPARK_PYTHON`` where Spark is: in an environment that is not active, set it.

``request_logs.ipynb`` beside this file does the same in a notebook. The whole page costs ε = 2 for each request: 1 for
the table of endpoints and 1 for the curve. A request is in one hour, and which one is taken to be public: the guarantee
of the curve hides how long a request took, not when it came.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dpfrugal as dpf
from dpfrugal.engines import spark as dps

ENDPOINTS = ["/home", "/search", "/pay", "/login", "/help"]  # public: they are in the documentation of the service


def make(spark: Any, requests: int, folder: str) -> None:
    """A day of made-up requests: slower in the evening, and some endpoints slower than others."""
    names = ", ".join(f"'{name}'" for name in ENDPOINTS)
    rows = spark.range(requests, numPartitions=24).selectExpr(
        f"element_at(array({names}), cast(id % {len(ENDPOINTS)} + 1 AS int)) AS endpoint",
        f"cast(id * 24 div {requests} AS int) AS hour",
        "exp(3.5 + 0.2 * (id % 5) + 0.5 * randn(7)) AS base",
    )
    busy = "(1 + 0.8 * exp(-pow(hour - 19, 2) / 8))"
    rows.selectExpr("endpoint", "hour", f"base * {busy} AS ms").write.mode("overwrite").parquet(folder)


def p99_by_endpoint(df: Any, guarantee: dpf.Guarantee) -> Any:
    """A DataFrame of endpoint, quantile, value, the ends of its interval, and a noisy number of rows."""
    return dps.quantiles_by(df, "ms", 0.99, guarantee, by="endpoint", keys=ENDPOINTS)


def latency_over_the_day(
    df: Any, guarantee: dpf.Guarantee, hours: Iterable[int] = range(24)
) -> list[tuple[int, dpf.TableRelease]]:
    """Private p50 and p99 of each hour. A request is in one hour, so all hours together cost one guarantee."""
    return [(hour, dps.private_quantiles(df.where(f"hour = {hour}"), "ms", [0.5, 0.99], guarantee)) for hour in hours]


def draw(hours: list[tuple[int, dpf.TableRelease]], path: Path) -> None:
    """The curve with its intervals."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    at = [hour for hour, _ in hours]
    values = [value for _, release in hours for value in release.values]
    lowest, highest = 0.5 * min(values), 2 * max(values)
    for k, (label, colour) in enumerate((("p50", "tab:blue"), ("p99", "tab:red"))):
        bounds = [release.intervals()[k] for _, release in hours]
        low = [max(lowest, bound) for bound, _ in bounds]  # an interval without an end goes to the end of the picture
        high = [min(highest, bound) for _, bound in bounds]
        axes.fill_between(at, low, high, color=colour, alpha=0.25)
        axes.plot(at, [release.values[k] for _, release in hours], "o-", color=colour, ms=4, label=f"private {label}")
    axes.set(xlabel="hour of the day", ylabel="latency, ms", yscale="log", ylim=(lowest, highest))
    axes.set_title("Latency with 95% intervals, ε = 1")
    axes.set_xticks(range(0, 24, 3))
    for ticks in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        ticks("{x:.0f}")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(description="Private latencies of a day of request logs.")
    parser.add_argument("folder", help="Parquet with the columns endpoint, ms and hour")
    parser.add_argument("--make", type=int, metavar="N", help="first write N made-up requests into the folder")
    parser.add_argument(
        "--picture", type=Path, default=Path("latency.png"), help="where to draw (default: %(default)s)"
    )
    arguments = parser.parse_args()
    spark = dps.local_session(spark_sql_shuffle_partitions="4")
    if arguments.make:
        make(spark, arguments.make, arguments.folder)
    df = spark.read.parquet(arguments.folder)
    table = p99_by_endpoint(df, dpf.PureDP(epsilon=1.0))
    ends = [f"round({name}, 1) AS {name}" for name in ("value", "lower", "upper")]
    table.selectExpr("endpoint", "quantile", *ends, "rows").show(truncate=False)
    draw(latency_over_the_day(df, dpf.PureDP(epsilon=1.0)), arguments.picture)
    print(f"drawn: {arguments.picture}")  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
