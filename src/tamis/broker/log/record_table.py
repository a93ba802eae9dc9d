"""Records as a table with all columns of a log."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from tamis.broker.log.columns import MOMENT, arrow_schema, own_names
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.records import Record


class RecordTable(NamedTuple):
    """A table, and the records that are its rows."""

    table: pa.Table
    records: Sequence[Record]


def record_table(given: Sequence[Record], decoder: EventDecoder) -> RecordTable:
    """The table of some records; those that do not fit the schema are left out."""
    bodies = [record.body for record in given]
    decoded = decoder.decode(b",".join(bodies), len(given), lambda: bodies)
    bad = set(decoded.bad)
    records = [record for row, record in enumerate(given) if row not in bad]
    names = own_names(decoder.schema)
    own = {
        names.offset: pa.array([record.offset for record in records], pa.int64()),
        names.time: pa.array([record.time for record in records], pa.int64()).cast(MOMENT),
        names.id: pa.array([record.id for record in records], pa.large_string()),
        names.headers: _texts([record.headers for record in records]),
        names.body: _texts([record.body for record in records]),
    }
    columns = {**own, **decoded.columns}
    return RecordTable(pa.table(columns, schema=arrow_schema(decoder.schema)), records)


def _texts(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.large_binary()).cast(pa.large_string())
