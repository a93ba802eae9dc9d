"""Files that a command reads by itself, without Spark."""

from collections.abc import Iterable
from typing import Any

from tamis.errors import BulkError, EventError, FileError, SchemaError
from tamis.files import Record, read_records
from tamis.guessing import schema_of_records
from tamis.matcher import Matcher
from tamis.schema import Schema


def found_schema(records: Iterable[Record], path: str) -> Schema:
    """The schema of events."""

    def readable() -> Iterable[tuple[Any, bool]]:
        for record in records:
            try:
                yield record.mapping(), record.is_text
            except EventError:
                continue

    schema = schema_of_records(readable())
    if not len(schema):
        raise SchemaError(f"{path} has no readable event to find a schema in; give --schema")
    return schema


def subscribe_file(matcher: Matcher, path: str) -> int:
    """Subscribe what a file holds; the number of rows that cannot be used."""
    rows: list[tuple[Any, Any]] = []
    unusable = 0
    for record in read_records(path):
        try:
            mapping = record.mapping()
        except EventError:
            unusable += 1
            continue
        rows.append((mapping.get("id"), mapping.get("filter")))
    if not rows:
        raise FileError(f"{path} has no subscriptions that can be read")
    while rows:
        try:
            matcher.subscribe_many(rows)
            break
        except BulkError as error:
            bad = {place for place, _, _ in error.failures}
            if len(bad) == len(rows):
                raise FileError(f"{path} has no usable subscription: {error}") from None
            unusable += len(bad)
            rows = [row for place, row in enumerate(rows) if place not in bad]
    return unusable
