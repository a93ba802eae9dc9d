"""The profile of a DataFrame of events, in one query that reads them once."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tamis.errors import OptionError
from tamis.schema import Attribute, Schema, as_schema
from tamis.spark.session.given_session import prepare
from tamis.spark.tables.arrow_batches import task_number
from tamis.spark.tables.event_table import column_at

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from tamis.profiles import Profile

Work = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def profile(
    events: "DataFrame", *, schema: Any = None, top: int = 100, sample: int = 1 << 14, seed: int = 1
) -> "Profile":
    """The profile of the events of a DataFrame; see `tamis.Profile`.

    Without a schema it covers all columns that filters can use. Each task makes a profile of
    its events, and one more task merges these, so that the driver gets one small row however many
    partitions there are. For the same partitions the result is the same.
    """
    from pyspark.sql import functions

    from tamis.profiles import Profile, ProfileLimits

    if events.isStreaming:
        raise OptionError("profile takes a table of events, not a stream")
    prepare(events.sparkSession)
    if schema is None:
        schema = Schema.from_spark(events.schema, unsupported="skip")
    known = as_schema(schema)
    # Tasks know attributes by number: a name may have dots, and only parts of a record are read.
    numbered = Schema.of_attributes(
        Attribute((str(n),), a.type, a.domain) for n, a in enumerate(known.attributes)
    )
    empty = Profile.empty(numbered, ProfileLimits(top, sample, seed))
    columns = _columns(events, known) or [functions.lit(None).cast("boolean").alias("nothing")]
    merged = (
        events.select(*columns)
        .mapInArrow(_summarise(empty), "part int, profile binary")
        .repartition(1)
        .sortWithinPartitions("part")
        .mapInArrow(_merge(empty), "profile binary")
    )
    for (packed,) in merged.collect():
        empty = empty.with_bytes(packed)
    return replace(empty, schema=known)


def _columns(events: "DataFrame", schema: Schema) -> "list[Column]":
    """The columns of the attributes that the events have, each named by its number."""
    from pyspark.sql.types import StructType

    found = []
    for number, attribute in enumerate(schema.attributes):
        fields: Any = events.schema
        flat = ".".join(attribute.path)
        path = attribute.path if attribute.path[0] in fields.names else (flat,)
        for part in path:
            is_record = isinstance(fields, StructType) and part in fields.names
            fields = fields[part].dataType if is_record else None
        if fields is not None:
            found.append(column_at(path).alias(str(number)))
    return found


def _summarise(empty: "Profile") -> Work:
    """The work of a worker: the profile of the events of its task."""

    def work(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        part = task_number()
        made = empty.grown((pa.Table.from_batches([batch]) for batch in batches), part)
        yield pa.record_batch(
            {"part": pa.array([part], pa.int32()), "profile": pa.array([made.to_bytes()])}
        )

    return work


def _merge(empty: "Profile") -> Work:
    """The work of one more worker: the profiles of all tasks, merged."""

    def work(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        merged = empty
        for batch in batches:
            for packed in batch.column("profile"):
                merged = merged.with_bytes(packed.as_py())
        yield pa.record_batch({"profile": pa.array([merged.to_bytes()])})

    return work
