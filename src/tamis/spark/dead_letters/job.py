"""The dead letters of tables, on the driver."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tamis.dead_letters import SCHEMA, DeadLetter
from tamis.matcher_settings import MatcherSettings
from tamis.spark.dead_letters.worker import EventCheckTask, FilterCheckTask
from tamis.spark.tables.event_table import EventTable
from tamis.spark.tables.subscription_table import SubscriptionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def bad_filters(subscriptions: SubscriptionTable, settings: MatcherSettings) -> "DataFrame":
    """The letters about subscriptions."""
    return subscriptions.spread().mapInArrow(FilterCheckTask(settings), SCHEMA)


def bad_events(
    events: EventTable, settings: MatcherSettings, attributes: Iterable[str]
) -> "DataFrame":
    """The letters about events; a column that no filter tests does not make an event bad."""
    names = set(attributes)
    check = EventCheckTask(settings, events.layout(names)._replace(kept=("row",)))
    return events.numbered(names).mapInArrow(check, SCHEMA)


def letters_frame(spark: "SparkSession", letters: tuple[DeadLetter, ...]) -> "DataFrame":
    """Letters that the driver knows, as a DataFrame."""
    return spark.createDataFrame([tuple(letter) for letter in letters], SCHEMA)


def first_letters(frame: "DataFrame", number: int) -> list[DeadLetter]:
    """Some letters of a DataFrame, read on the driver."""
    rows = [row.asDict() for row in frame.limit(number).collect()]
    return [DeadLetter(*(row.get(name) for name in DeadLetter._fields)) for row in rows]  # type: ignore[arg-type]  # as they were written
