"""Arrow streams as events, from strangers: checked, and bounded in memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.broker.arrow_events import event_text
from tamis.broker.protocols.event_bodies import EventBatch
from tamis.broker.records import NewEvent, Refusal
from tamis.errors import EventError

MOST_BYTES = 256_000_000  # of a table, which may be sent compressed


def events_of_stream(body: bytes, key: str | None) -> EventBatch:
    """The rows of a stream as events; with a key, each one has the key and its row as id."""
    events: list[NewEvent] = []
    refused: list[Refusal] = []
    for row, record in enumerate(_records(body)):
        try:
            text = event_text(record)
        except EventError as error:
            refused.append(Refusal(row, error.problem))
        else:
            events.append(NewEvent(text, None if key is None else f"{key}-{row}"))
    return EventBatch(events, refused)


def _records(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The rows of all batches; an `EventError` if the body is not a stream of Arrow."""
    import pyarrow as pa

    size = 0
    try:
        with pa.ipc.open_stream(body) as stream:
            for batch in stream:
                batch.validate(full=True)
                size += batch.nbytes
                if size > MOST_BYTES:
                    raise EventError(f"the table takes more than {MOST_BYTES:,} bytes")
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise EventError(f"the body is not an Arrow stream: {error}") from None
