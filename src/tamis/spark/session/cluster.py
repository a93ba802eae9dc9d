"""How many tasks a cluster runs at once, and which partition a row goes to."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def cores(spark: "SparkSession") -> int:
    """How many tasks run at once; found in a way that Spark Connect knows, too."""
    from pyspark.sql import functions as f

    numbers = spark.range(4096).select(f.spark_partition_id().alias("n"))
    return int(numbers.agg(f.max("n")).collect()[0][0]) + 1


def cores_of_executor(spark: "SparkSession", total: int) -> int:
    """How many of the tasks that run at once are in the same executor."""
    master = spark.conf.get("spark.master", "") or ""
    if master == "local" or master.startswith("local["):
        return total
    return max(1, int(spark.conf.get("spark.executor.cores", "1") or 1))


def partitioned_by(frame: "DataFrame", partitions: int, column: str) -> "DataFrame":
    """Rows with the same number in one partition; if Spark can do it, with no other rows."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(partitions, column)
    return frame.repartition(partitions, column)
