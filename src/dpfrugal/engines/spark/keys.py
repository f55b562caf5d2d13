"""Keys of a Spark table: which code each row's key has, and how all rows of a key come together.

The declared keys are numbered on the driver and joined to the rows by Spark. A row keeps its position, for its coin.
"""

from typing import Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from dpfrugal.engines.spark.columns import INTEGERS, field, item, partitions_of, reference
from dpfrugal.engines.spark.unordered_walk.packets import NULL_KEY, UNDECLARED, Packer
from dpfrugal.engines.spark.worker import InWorker
from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.keys.index import KeyIndex
from dpfrugal.parameters import integer


def fetched_keys(keys: Any, by: str) -> Any:
    """The caller's keys as whatever ``KeyedDPFrugal1U`` takes: a DataFrame's are fetched."""
    if hasattr(keys, "isStreaming"):
        if keys.isStreaming:
            raise ParameterTypeError("keys must not be a streaming DataFrame: keys are declared once.")
        if by not in keys.columns and len(keys.columns) > 1:
            raise ParameterError(f"keys has several columns, and none of them is {by!r}; select the one with the keys.")
        name = by if by in keys.columns else keys.columns[0]
        return keys.select(reference(name)).toArrow().column(0)
    return keys


def checked_kind(index: KeyIndex) -> None:
    """Refuse keys that differ here and would be the same in a column, as 404 and "404": a row would be of both."""
    if index.kind == "objects" and len(set(map(repr, index.keys.to_pylist()))) < index.size:
        raise ParameterError("keys must not be the same once they are of one type, as 404 and '404' are; declare one.")


def key_frame(df: Any, by: str, keys: Any) -> Any:
    """The keys with their codes, as a DataFrame of columns ``key`` and ``code``."""
    import pyarrow as pa

    if pa.types.is_large_string(keys.type) or pa.types.is_large_binary(keys.type):
        keys = keys.cast(pa.string() if pa.types.is_large_string(keys.type) else pa.binary())
    if pa.types.is_timestamp(keys.type) and keys.type.unit == "ns":  # Spark would cut them, and might make two keys one
        raise ParameterTypeError("keys are times in nanoseconds, and Spark has microseconds: cast them first.")
    codes = pa.array(range(len(keys)), type=pa.int32())
    frame = df.sparkSession.createDataFrame(pa.table({"key": keys, "code": codes}))
    had, given = field(df, by).dataType, frame.schema["key"].dataType
    if not (had == given or (isinstance(had, INTEGERS) and isinstance(given, INTEGERS))):
        raise ParameterTypeError(
            f"The key column {by!r} holds {had.simpleString()}; it cannot be compared with declared keys of type "
            f"{given.simpleString()}."
        )
    return frame


def coded(df: Any, column: str, by: str, keys: Any, order_by: str | None, person: str | None) -> Any:
    """Rows of key, code, item, row and, where asked for, order and person.

    ``keys`` is what ``key_frame`` gives; None where there are none yet.
    """
    number, _ = item(df, column)
    extra = [] if order_by is None else [reference(field(df, order_by).name).alias("order")]
    if person is not None:
        extra.append(reference(field(df, person).name).alias("person"))
    rows = df.select(
        reference(by).alias("key"), number.alias("item"), F.monotonically_increasing_id().alias("row"), *extra
    )
    none_yet = rows.withColumn("code", F.lit(None).cast("int"))
    found = none_yet if keys is None else rows.join(F.broadcast(keys), "key", "left")
    none = F.when(F.col("key").isNull(), F.lit(NULL_KEY)).otherwise(F.lit(UNDECLARED))
    return found.withColumn("code", F.coalesce("code", none).cast("int"))


def gathered(rows: Any, state: Any, partitions: int, coin_key: int, rounds: int = 1) -> Any:
    """All rows of a key in one partition, in packets, group by group; where keys have a state, it comes first."""
    packer = InWorker(Packer(partitions, coin_key, rounds))
    packets = rows.mapInArrow(packer, PACKETS)
    if state is not None:
        before = state.where(F.col("code") >= 0).select("code", "points")
        packets = packets.unionByName(before.mapInArrow(packer, PACKETS))
    return packets.repartitionById(partitions, "bucket").sortWithinPartitions("turn", "group")


def in_order(rows: Any, state: Any, partitions: int, coin_key: int, rounds: int = 1) -> Any:
    """All rows of a key in one partition, sorted by ``order``; rows that move nothing are spread by their position.

    Ties, and rounds, are chance: a hash with a secret.
    """
    chance = F.xxhash64("row", F.lit(bytes.fromhex(f"{coin_key:016x}")))
    if state is not None:
        rows = rows.withColumn("order", F.struct(F.lit(1).alias("turn"), F.col("order").alias("at")))
        rows = rows.withColumn("points", F.lit(None).cast("array<bigint>"))
        at = F.lit(None).cast(rows.schema["order"].dataType["at"].dataType)
        before = state.where(F.col("code") >= 0).select(
            "code",
            F.lit(None).cast(rows.schema["item"].dataType).alias("item"),
            F.lit(0).cast("bigint").alias("row"),
            F.struct(F.lit(0).alias("turn"), at.alias("at")).alias("order"),
            "points",
        )
        rows = rows.unionByName(before)
    where = F.when(F.col("code") >= 0, F.col("code").cast("bigint")).otherwise(F.col("row"))
    rows = rows.repartition(partitions, where).sortWithinPartitions("order", chance).drop("order")
    return rows if rounds == 1 else rows.withColumn("round", F.pmod(F.xxhash64("row", chance), F.lit(rounds)))


def partitions_for(df: Any, partitions: int | None) -> int:
    """How many partitions the keys are shared among: as given, or no more than rows come from or cores are there."""
    if partitions is None:
        spark = df.sparkSession
        most = int(spark.conf.get("spark.sql.shuffle.partitions"))
        return min(most, max(partitions_of(df), int(spark.sparkContext.defaultParallelism)))
    return integer("partitions", partitions, 1)


PACKETS = "bucket int, round int, group int, turn int, rows binary, seen array<bigint>"
RESULT = T.StructType(
    [
        T.StructField("code", T.IntegerType()),
        T.StructField("points", T.ArrayType(T.LongType())),
        T.StructField("seen", T.ArrayType(T.LongType())),
    ]
)
