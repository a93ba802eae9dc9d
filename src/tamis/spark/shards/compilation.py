"""Planning and compiling shards, on the driver."""

from typing import TYPE_CHECKING, Any

from tamis.engines.required_values import RequiredValues
from tamis.errors import ExpressionError, SubscriptionError
from tamis.language.shape_cache import ShapeCache
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.task_reports import REPORT
from tamis.spark.session.cluster import cores, cores_of_executor, partitioned_by
from tamis.spark.shards.budget import Sharding
from tamis.spark.shards.plan import MOST_VALUES, ShardPlan, plan_shards
from tamis.spark.shards.worker import PLACED, BuildShardsTask, PlaceFiltersTask
from tamis.spark.tables.subscription_table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAMPLE = 10_000  # filters that the plan is made from
MOST_SHARDS = 4096  # however small the budget
FEWEST_FILTERS = 64  # of a shard, on average
MARGIN = 1.25  # shards are not equally large


def planned(
    subscriptions: SubscriptionTable, settings: MatcherSettings, sharding: Sharding
) -> ShardPlan:
    """A plan, made from a sample of the filters.

    If no number of shards is given, those that an executor works on at once fit into the budget.
    """
    sample = _required_values(subscriptions, settings)
    shards = sharding.shards or _needed(subscriptions, sharding.budget)
    return plan_shards(sample, settings.schema, shards)


def _needed(subscriptions: SubscriptionTable, budget: int) -> int:
    spark = subscriptions.frame.sparkSession
    room = budget / cores_of_executor(spark, cores(spark))
    size = subscriptions.size
    most = max(2, min(MOST_SHARDS, size.rows // FEWEST_FILTERS))
    return min(most, max(2, -int(-MARGIN * size.compiled // room)))


def _required_values(
    subscriptions: SubscriptionTable, settings: MatcherSettings
) -> list[dict[int, tuple[Any, ...]]]:
    """The values that some filters require."""
    shapes, required = ShapeCache(settings.schema), RequiredValues(settings.meaning())
    found = []
    for text in subscriptions.sample(SAMPLE):
        try:
            found.append(required.of(shapes.parse(text), MOST_VALUES))
        except (ExpressionError, SubscriptionError):
            continue  # a dead letter will say why
    return found


def compiled_shards(
    subscriptions: SubscriptionTable, settings: MatcherSettings, duplicates: str, plan: ShardPlan
) -> "DataFrame":
    """The compiled shards and the reports of the tasks, each time that Spark computes them."""
    id_type = subscriptions.id_type
    placed = subscriptions.spread().mapInArrow(
        PlaceFiltersTask(settings, duplicates, plan, id_type), PLACED.format(id_type=id_type)
    )
    # One more shard, after the last one, has the reports of the tasks.
    together = partitioned_by(placed, plan.total + 1, "shard").sortWithinPartitions("shard")
    return together.mapInArrow(BuildShardsTask(settings), REPORT)
