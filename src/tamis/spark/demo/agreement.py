"""Whether a stream has found the same matches as batch jobs with the same events.

For every micro-batch, pairs of an event and a subscription are compared as sets: by how many there
are, and by the sum of their hashes. The micro-batch of a pair is found by the id of its event,
which is a row number here.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HASH = (1 << 32) - 1  # bits of the hash of a pair: sums of two billion of them fit into 64 bits


class PairSums(NamedTuple):
    """The number of some pairs, and the sum of their hashes."""

    matches: int = 0
    checksum: int = 0

    def __str__(self) -> str:
        return f"{self.matches:,} matches (checksum {self.checksum:x})"


class MicroBatch(NamedTuple):
    """The events of a micro-batch: rows from `start` to before `end`."""

    number: int
    version: int
    start: int
    end: int


def sums(pairs: "DataFrame", batch: "Column") -> dict[int, PairSums]:
    """By micro-batch, the sums of its pairs; the column `batch` has its number."""
    from pyspark.sql import functions as f

    pair = f.xxhash64(f.col("event_id").cast("bigint"), f.col("subscription").cast("bigint"))
    found = pairs.groupBy(batch.alias("batch")).agg(
        f.count(f.lit(1)), f.sum(pair.bitwiseAND(f.lit(HASH)))
    )
    return {row[0]: PairSums(row[1], row[2]) for row in found.collect()}


def batch_of(batches: Sequence[MicroBatch]) -> "Column":
    """A column with the number of the micro-batch of a pair."""
    from pyspark.sql import functions as f

    number = f.lit(None).cast("int")
    for batch in batches:
        within = (f.col("event_id") >= batch.start) & (f.col("event_id") < batch.end)
        number = f.when(within, batch.number).otherwise(number)
    return number


def differences(
    batches: Sequence[MicroBatch], stream: Mapping[int, PairSums], expected: Mapping[int, PairSums]
) -> list[str]:
    """A sentence for each micro-batch in which a stream and batch jobs disagree."""
    found = []
    known = {batch.number for batch in batches}
    for batch in batches:
        ours, theirs = stream.get(batch.number, PairSums()), expected.get(batch.number, PairSums())
        if ours != theirs:
            found.append(
                f"micro-batch {batch.number}, version {batch.version}: the stream has {ours}, "
                f"a batch job {theirs}"
            )
    found += [
        f"micro-batch {number}: the stream has {stream[number]}, but it was not committed"
        for number in sorted(stream.keys() - known)
    ]
    return found
