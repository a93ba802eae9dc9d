"""The columns of matches: the id of the event, what it matched, and the columns to keep.

============  ====================================  ===============
output        column                                rows
============  ====================================  ===============
``pairs``     ``subscription``                      one per match
``lists``     ``subscriptions``, in ascending order  one per event
``counts``    ``count``                             one per event
============  ====================================  ===============
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from tamis.spark.tables.event_table import EventTable

FOUND = {"pairs": "subscription", "lists": "subscriptions", "counts": "count"}
ID_TYPES = {"bigint": pa.int64(), "string": pa.string()}  # of subscriptions: Spark's and Arrow's


def check_match_names(
    id_name: str, output: str, keep: Sequence[str], keep_rules: Sequence[str]
) -> None:
    """Refuse columns to keep that matches have already, or that do not go with the output."""
    if keep_rules and output != "pairs":
        raise OptionError(
            f"keep_rules: with output {output!r} a row has several subscriptions; use 'pairs'"
        )
    if id_name.lower() in FOUND.values():
        raise OptionError(
            f"the column {id_name!r} of the ids cannot keep its name: matches have such a column"
        )
    refuse_names_of_matches("keep_rules", keep_rules)
    taken = [id_name, *keep, *keep_rules]
    for name in taken:
        if [other.lower() for other in taken].count(name.lower()) > 1:
            raise OptionError(f"matches would have two columns named {name!r}; keep one of them")


def refuse_names_of_matches(what: str, names: Iterable[str]) -> None:
    """Refuse columns to keep that have the name of a column of the matches."""
    for name in names:
        if name.lower() in {"event_id", *FOUND.values()}:
            raise OptionError(
                f"{what}: the column {name!r} has the name of a column of the matches; "
                "rename it first"
            )


def spark_schema(
    events: "EventTable", output: str, id_type: str,
    kept: "Iterable[tuple[str, DataType]] | None" = None, id_name: str = "event_id",
) -> "StructType":  # fmt: skip
    """The columns of matches for Spark; `kept` are names and types instead of those of `events`."""
    from pyspark.sql.types import StructType

    schema = StructType().add(id_name, events.id_type).add(FOUND[output], _type(output, id_type))
    for name, of in events.kept_fields() if kept is None else kept:
        schema.add(name, of)
    return schema


def _type(output: str, id_type: str) -> "DataType":
    from pyspark.sql.types import ArrayType, LongType, StringType

    if output == "counts":
        return LongType()
    kind = StringType() if id_type == "string" else LongType()
    return ArrayType(kind) if output == "lists" else kind


def arrow_type(output: str, id_type: str) -> pa.DataType:
    """The type of the column of what was found, for Arrow."""
    if output == "counts":
        return pa.int64()
    kind = ID_TYPES[id_type]
    return pa.list_(kind) if output == "lists" else kind


def matches_per_row(output: str) -> "Column":
    """How many matches a row of matches stands for."""
    from pyspark.sql import functions as f

    if output == "pairs":
        return f.lit(1)
    return f.col("count") if output == "counts" else f.size("subscriptions")


def with_sorted_lists(matches: "DataFrame", output: str) -> "DataFrame":
    """Lists in ascending order, put together from those of several shards."""
    if output != "lists":
        return matches
    from pyspark.sql import functions as f

    return matches.withColumn("subscriptions", f.array_sort("subscriptions"))
