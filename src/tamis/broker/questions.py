"""Questions to a topic: what is in the log, is a filter right, why did an event match or not."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.broker.log_matcher import LogMatcher
from tamis.broker.records import CheckAnswer, Record
from tamis.broker.topic import Topic
from tamis.broker.workers import MATCH
from tamis.errors import OptionError
from tamis.explanation import Explanation, explain_match
from tamis.language.arrival import arriving
from tamis.language.expression import Expression, parse

if TYPE_CHECKING:
    from tamis.broker.log.topic_log import TopicLog

CHUNK, CHUNK_BYTES = 8192, 16_000_000
MOST_BYTES = 64_000_000  # of the records of one answer


async def read_log(topic: Topic, wanted: Expression, start: int, most: int) -> list[Record]:
    """The first records from an offset on that match a filter."""
    matcher = LogMatcher(topic.new_matcher)
    matcher.subscribe(0, wanted)
    found: list[Record] = []
    size = 0
    while start < topic.log.synced_offset and len(found) < most and size < MOST_BYTES:
        stop = min(start + CHUNK, topic.log.synced_offset)
        some, start = await topic.host.workers.run(
            MATCH, _read_chunk, topic.log, matcher, start, stop, most - len(found)
        )
        found += some
        size += sum(len(record.body) for record in some)
    return found


def _read_chunk(
    log: "TopicLog", matcher: LogMatcher, start: int, stop: int, most: int
) -> tuple[list[Record], int]:
    chunk = log.read(start, stop - start, CHUNK_BYTES)
    within = int(np.searchsorted(chunk.offsets, stop))
    rows = matcher.match(chunk, within).events.tolist()[:most]
    return [record.named() for record in chunk.take(rows)], max(chunk.next_offset, start + 1)


def check(text: str, narrowed: Expression) -> CheckAnswer:
    """How a filter is understood, and what grants make of it."""
    schema = narrowed.schema
    asked = parse(text, schema)
    names = sorted(schema.attributes[schema.positions[path]].name for path in asked.attributes)
    wider = narrowed.tree != asked.tree
    return CheckAnswer(str(asked), names, str(narrowed) if wider else None)


async def why(
    topic: Topic, name: str, wanted: Expression, event: Mapping[str, Any] | str | bytes | int,
    visible: Expression,
) -> Explanation:  # fmt: skip
    """Why an event, or the event at an offset, does or does not match a filter.

    For events of the log that do not match `visible`, it is as if they were not there. An event
    that is given would be stored now.
    """
    time = int(topic.host.clock() * 1_000_000)
    if isinstance(event, int):
        record = await _record_at(topic, event, visible)
        if record is None:
            raise OptionError(
                f"there is no event with offset {event} in topic {topic.name!r}: it has "
                f"{topic.log.first_offset} to {topic.log.synced_offset - 1}, as far as they are "
                "kept"
            )
        event, time = record.body, record.time
    given, row = topic.live.reader.read(event, beside=())
    meaning = topic.live.meaning
    return await topic.host.workers.run(MATCH, _explained, time, name, wanted, meaning, row, given)


def _explained(time: int, *asked: Any) -> Explanation:
    with arriving(time):
        return explain_match(*asked)


async def _record_at(topic: Topic, offset: int, visible: Expression) -> Record | None:
    """The record at an offset, if there is one and it matches `visible`."""
    if not 0 <= offset < topic.log.synced_offset:
        return None
    matcher = LogMatcher(topic.new_matcher)
    matcher.subscribe(0, visible)
    found, _ = await topic.host.workers.run(
        MATCH, _read_chunk, topic.log, matcher, offset, offset + 1, 1
    )
    return found[0] if found else None
