"""From the matches of a compacted table of subscriptions back to those of the originals."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tamis.errors import OptionError
from tamis.spark.batch.job import MatchJob
from tamis.spark.tables.event_table import column_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BROADCAST = 1_000_000  # originals; a table of more of them is not sent whole to every executor
MET = "tamis met"  # a name that no column of events has


def restore(
    matches: "DataFrame", events: "DataFrame", mapping: "DataFrame", event_id: str = "id",
    **settings: Any,
) -> "DataFrame":  # fmt: skip
    """The matches of the originals: a DataFrame ``(event_id, subscription)``.

    `matches` are those of `match` of the same events with a compacted table, `mapping` is the
    one that `compact` has made with it. An original that is not exact is evaluated again, for the
    events that its representative matched. `settings` are those of `MatchJob`, such as `semantics`
    and `schema`, and must be those of the compaction.
    """
    from pyspark.sql import functions as f

    row = mapping.agg(f.count(f.lit(1)), f.count_if(~f.col("exact"))).collect()[0]
    whole = joining(row[0])
    return restored(matches, events, mapping, event_id, settings, whole, has_inexact=row[1] > 0)


def joining(originals: int) -> "Callable[[DataFrame], DataFrame]":
    """A function that marks how Spark joins a table of this many originals with matches.

    Spark assumes that there are not more matches than events, and left alone would rather send the
    matches to every executor.
    """
    from pyspark.sql import functions as f

    return f.broadcast if originals <= BROADCAST else lambda frame: frame.hint("merge")


def restored(
    matches: "DataFrame", events: "DataFrame", mapping: "DataFrame", event_id: str,
    settings: dict[str, Any], whole: "Callable[[DataFrame], DataFrame]", *, has_inexact: bool,
) -> "DataFrame":  # fmt: skip
    """`restore` with a known way to join (`whole`), and whether any mapping is inexact."""
    from pyspark.sql import functions as f

    for name in ("event_id", "subscription"):
        if name not in matches.columns:
            raise OptionError(
                "restore takes matches as pairs, with the columns event_id and subscription, not "
                f"{', '.join(matches.columns) or 'an empty table'}"
            )
    pairs = matches.select("event_id", "subscription")
    exact = originals_of(pairs, whole(mapping.where("exact").select("subscription", "original")))
    again = mapping.where("NOT exact")
    if not has_inexact:
        return exact
    watched = again.select("subscription").distinct()
    met = pairs.join(whole(watched), "subscription", "left_semi")
    met = met.select(f.col("event_id").alias(MET)).distinct().hint("merge")
    same = column_at((event_id,)) == f.col(f"`{MET}`")
    forms = again.groupBy("filter").agg(f.min("original").alias("id"))
    job = MatchJob(events.join(met, same, "left_semi"), forms, event_id, **settings)
    copies = again.select("filter", "original").join(forms, "filter")
    copies = copies.select(f.col("id").alias("subscription"), "original")
    return exact.unionByName(originals_of(job.matches, whole(copies)))


def originals_of(matches: "DataFrame", stands: "DataFrame") -> "DataFrame":
    """(event_id, subscription), with originals instead of the subscriptions that represent them."""
    from pyspark.sql import functions as f

    joined = matches.join(stands, "subscription")
    return joined.select("event_id", f.col("original").alias("subscription"))
