"""Apache Spark: private quantiles of DataFrames, whose rows stay in the cluster, and of the windows of streams.

``dpf.private_quantiles`` and ``dpf.quantiles_by`` take a DataFrame as they take any table; here they have names of
their own, and ``quantiles_by`` answers with a DataFrame.
"""

from dpfrugal.engines import missing

try:
    import pyspark.sql  # noqa: F401 - whether it is there
except ModuleNotFoundError:
    raise missing("spark") from None

from dpfrugal.engines.spark.batch import private_quantiles, quantiles_by
from dpfrugal.engines.spark.find_java import provide as provide_java
from dpfrugal.engines.spark.session import local_session
from dpfrugal.engines.spark.stream import stream_private_quantiles, stream_quantiles_by
from dpfrugal.engines.spark.stream_release import StreamRelease

__all__ = [
    "StreamRelease",
    "local_session",
    "private_quantiles",
    "provide_java",
    "quantiles_by",
    "stream_private_quantiles",
    "stream_quantiles_by",
]
