"""The compiled shards of a version whose subscriptions are too many for one executor.

They are in the checkpoint, as tables that Spark writes and reads: the subscriptions themselves,
from which the next base is made, and the compiled shards, which each micro-batch reads. So the
executors have to reach the checkpoint.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.sent_rules import Changes
from tamis.spark.shards.budget import Sharding
from tamis.spark.shards.compilation import compiled_shards, planned
from tamis.spark.shards.job import ShardedRules
from tamis.spark.shards.plan import ShardPlan
from tamis.spark.stream.base_files import BaseFile, subscriptions_of
from tamis.spark.stream.versions import Versions
from tamis.spark.tables.subscription_table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class BaseShards:
    """The compiled shards of a version."""

    version: int
    rules: ShardedRules
    table: SubscriptionTable  # of id and filter

    def __len__(self) -> int:
        return self.rules.counts.good

    @property
    def size(self) -> int:
        """About how many bytes are compiled."""
        return self.table.size.compiled

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that its filters test."""
        return self.rules.attributes

    def held(self, ids: Iterable[str | int]) -> int:
        """How many of the ids are subscribed."""
        rows = [(one,) for one in ids]
        if not rows:
            return 0
        frame = self.table.frame
        some = frame.sparkSession.createDataFrame(rows, f"id {self.table.id_type}")
        return frame.join(some, "id", "left_semi").count()


def open_shards(
    spark: "SparkSession", versions: Versions, number: int, settings: MatcherSettings
) -> BaseShards:
    """The shards of a version that has some."""
    table = SubscriptionTable(spark.read.parquet(versions.table("subscriptions", number)))
    frame = spark.read.parquet(versions.table("shards", number))
    plan = ShardPlan.from_json(versions.read_plan(number))
    return BaseShards(number, ShardedRules(frame, plan, settings, table.id_type), table)


def write_shards(
    versions: Versions, number: int, table: SubscriptionTable, settings: MatcherSettings,
    sharding: Sharding,
) -> None:  # fmt: skip
    """Compile the subscriptions of a version into shards of the checkpoint."""
    plan = planned(table, settings, sharding)
    made = compiled_shards(table, settings, "last", plan)
    made.write.mode("overwrite").parquet(versions.table("shards", number))
    versions.write_plan(number, plan.to_json())


def write_table(
    versions: Versions, number: int, before: "DataFrame | None", changes: Changes,
    news: "DataFrame",
) -> SubscriptionTable:  # fmt: skip
    """Write the table of a version: the subscriptions before, changes of them, and new changes.

    Both kinds of changes are rows of id and filter; a filter of null removes.
    """
    spark, id_type = news.sparkSession, news.schema["id"].dataType.simpleString()
    older = spark.createDataFrame(list(changes.items()), f"id {id_type}, filter string")
    overlay = older.join(news, "id", "left_anti").unionByName(news)
    good = overlay.where("filter is not null")
    whole = good if before is None else before.join(overlay, "id", "left_anti").unionByName(good)
    path = versions.table("subscriptions", number)
    whole.write.mode("overwrite").parquet(path)
    return SubscriptionTable(spark.read.parquet(path))


def subscription_frame(
    spark: "SparkSession", versions: Versions, base: "BaseFile | BaseShards | None"
) -> "DataFrame | None":
    """(id, filter): the subscriptions of a base; those of a file are put into the checkpoint."""
    if base is None or isinstance(base, BaseShards):
        return None if base is None else base.table.frame
    if not len(base):
        return None
    path = base.path.with_suffix(".parquet")
    pq.write_table(subscriptions_of(base), path)
    versions.put_subscriptions(base.version, path)
    path.unlink()
    return spark.read.parquet(versions.table("subscriptions", base.version))
