"""Apache Spark: the same estimators with the same guarantees, where one machine is not enough.

``private_quantiles`` and ``stream_private_quantiles`` count between the edges that ``PrivateQuantile`` asks for;
``quantiles_by`` and ``stream_quantiles_by`` walk as ``KeyedDPFrugal1U`` does, beside the data.
"""

from dpfrugal.engines import missing

try:
    import pyspark.sql  # noqa: F401 - whether it is there
except ModuleNotFoundError:
    raise missing("spark") from None

from dpfrugal.engines.spark.find_java import provide as provide_java
from dpfrugal.engines.spark.session import local_session
from dpfrugal.engines.spark.stream import stream_private_quantiles
from dpfrugal.engines.spark.stream_by_key import stream_quantiles_by
from dpfrugal.engines.spark.table import private_quantiles
from dpfrugal.engines.spark.table_by_key import quantiles_by

__all__ = [
    "local_session",
    "private_quantiles",
    "provide_java",
    "quantiles_by",
    "stream_private_quantiles",
    "stream_quantiles_by",
]
