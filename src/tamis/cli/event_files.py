"""Batches of events for `tamis publish`: out of files, and out of standard input as it comes.

Lines of JSON go to the broker as they are; other files are read as tables, with the types of the
topic's attributes for what is text.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from tamis.broker.records import Refusal
from tamis.errors import FileError

PIECE = 1 << 20  # bytes that are read at once
BOM = b"\xef\xbb\xbf"


class InputBatch(NamedTuple):
    """Events, the number of each in the input, and rows that cannot be read."""

    events: Any
    rows: Sequence[int]
    unreadable: Sequence[Refusal] = ()


def batches_of(path: str, schema: Mapping[str, str]) -> Iterator[InputBatch]:
    """The events of a file or a folder; `schema` is that of the topic."""
    if Path(path).suffix.lower() != ".jsonl" or not Path(path).is_file():
        yield from _of_table(path, schema)
        return
    try:
        with Path(path).open("rb") as file:
            yield from _of_lines(iter(lambda: file.read(PIECE), b""))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None


def batches_of_input(file: IO[bytes]) -> Iterator[InputBatch]:
    """The lines of a stream; what has come is a batch, and does not wait for more."""
    number = file.fileno()
    yield from _of_lines(iter(lambda: os.read(number, PIECE), b""))


def _of_lines(pieces: Iterator[bytes]) -> Iterator[InputBatch]:
    rest: list[bytes] = []  # of a line that has not ended
    seen = 0
    for piece in pieces:
        end = piece.rfind(b"\n")
        if end < 0:
            rest.append(piece)
            continue
        lines = (b"".join(rest) + piece[:end]).split(b"\n")
        rest = [piece[end + 1 :]]
        yield from _of_texts(lines, seen)
        seen += len(lines)
    yield from _of_texts([b"".join(rest)], seen)


def _of_texts(lines: Sequence[bytes], first: int) -> Iterator[InputBatch]:
    """The batch of these lines, if one of them is not empty."""
    events, rows = [], []
    for row, line in enumerate(lines, first):
        if text := (line if row else line.removeprefix(BOM)).strip():
            events.append(text)
            rows.append(row)
    if events:
        yield InputBatch(events, rows)


def _of_table(path: str, schema: Mapping[str, str]) -> Iterator[InputBatch]:
    import numpy as np
    import pyarrow as pa

    from tamis.file_tables.file_table import FileTable
    from tamis.file_tables.input_files import CORRUPT
    from tamis.file_tables.unreadable_rows import RowFormat
    from tamis.local_job.event_columns import with_types
    from tamis.schema import Schema

    wanted = Schema(schema)
    table = FileTable(
        path, row_tag="event", typed=lambda found, _: with_types(found, wanted), is_inferred=False
    )
    reader = RowFormat(table.files.format, table.inner, is_inferred=False)
    first = 0
    for batch in table.batches():
        rows = np.arange(first, first + batch.num_rows)
        first += batch.num_rows
        if not table.is_text:
            yield InputBatch(pa.Table.from_batches([batch]), rows.tolist())
            continue
        texts = batch.column(CORRUPT)
        is_good = texts.is_null()
        bad = texts.drop_null().to_pylist()
        places = rows[~is_good.to_numpy(zero_copy_only=False)].tolist()
        yield InputBatch(
            pa.Table.from_batches([batch]).drop_columns([CORRUPT]).filter(is_good),
            rows[is_good.to_numpy(zero_copy_only=False)].tolist(),
            [Refusal(row, why) for row, why in zip(places, reader.reasons(bad), strict=True)],
        )
