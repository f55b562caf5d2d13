"""Apache Spark: the same estimators with the same guarantees, where one machine is not enough.

``private_quantiles`` and ``stream_private_quantiles`` count between the edges that ``PrivateQuantile`` asks for.
"""

from dpfrugal.engines.java import provide as provide_java
from dpfrugal.engines.spark_batch import private_quantiles
from dpfrugal.engines.spark_stream import stream_private_quantiles

__all__ = ["private_quantiles", "provide_java", "stream_private_quantiles"]
