"""Files of events and subscriptions, by extension: .parquet .json .jsonl .csv .xml.

A file gives records one by one; a record that cannot be read is still a record, so that its row
number and its reason can be reported while the others go on.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import EventError, FileError
from tamis.events import EventReader, Row, parse_json_event, xml_elements, xml_texts

EXTENSIONS = (".parquet", ".json", ".jsonl", ".csv", ".xml")


class Record(NamedTuple):
    """One record of a file: a mapping, the text of a JSON object, or what is wrong with it."""

    content: Mapping[str, Any] | str | EventError
    is_text: bool = False  # the values are text, and their types are the reader's to find

    def mapping(self) -> Mapping[str, Any]:
        """The record as a mapping, or the error that it is."""
        if isinstance(self.content, EventError):
            raise self.content
        return parse_json_event(self.content) if isinstance(self.content, str) else self.content

    def row(self, reader: EventReader) -> Row:
        """The record as a row of the reader's schema, or an `EventError`."""
        if self.is_text:
            return reader.row_of_texts(self.mapping())
        return reader.row(self.mapping())


def read_records(path: str | Path) -> Iterator[Record]:
    """The records of a file."""
    path = Path(path)
    extension = path.suffix.lower()
    if extension not in EXTENSIONS:
        raise FileError(
            f"{path}: the extension {extension!r} is unknown; files end in {' '.join(EXTENSIONS)}"
        )
    if not path.is_file():
        problem = "is a folder, expected a file" if path.is_dir() else "does not exist"
        raise FileError(f"{path} {problem}")
    try:
        yield from _FORMATS[extension](path)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is no valid UTF-8: {error.reason} at byte {error.start}") from None


def _read_parquet(path: Path) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for mapping in batch.to_pylist():
                    yield Record(mapping)
    except pa.ArrowException as error:
        raise FileError(f"{path} is no readable Parquet file: {error}") from None


def _read_json_lines(path: Path) -> Iterator[Record]:
    # Bytes, not text: one line of invalid UTF-8 is one bad record, not a bad file.
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield Record(EventError(f"line {number} is no valid UTF-8: {error.reason}"))
                continue
            if text.strip():
                yield Record(text)


def _read_json(path: Path) -> Iterator[Record]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise FileError(
            f"{path} is no JSON: {error}; a file of one object a line ends in .jsonl"
        ) from None
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict):
            yield Record(item)
        else:
            yield Record(EventError(f"expected an object {{...}}, got {type(item).__name__}"))


def _read_csv(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                return
            if len(set(header)) < len(header):
                raise FileError(f"{path}: the header names a column twice: {', '.join(header)}")
            for fields in reader:
                if len(fields) == len(header):
                    yield Record(dict(zip(header, fields, strict=True)), is_text=True)
                elif fields:
                    yield Record(
                        EventError(
                            f"line {reader.line_num} has {len(fields)} fields, "
                            f"the header has {len(header)}"
                        )
                    )
        except csv.Error as error:
            raise FileError(f"{path}, line {reader.line_num}: {error}") from None


def _read_xml(path: Path) -> Iterator[Record]:
    """One event without a root, or a root with one element an event."""
    try:
        elements = xml_elements(path.read_text(encoding="utf-8-sig"))
    except EventError as error:
        raise FileError(f"{path}: {error}") from None
    if len(elements) == 1 and len(elements[0]):
        elements = list(elements[0])
    if elements and all(len(element) for element in elements):
        for element in elements:
            try:
                yield Record(xml_texts(list(element)), is_text=True)
            except EventError as error:
                yield Record(error)
    elif elements:
        yield Record(xml_texts(elements), is_text=True)


_FORMATS = {
    ".parquet": _read_parquet,
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".csv": _read_csv,
    ".xml": _read_xml,
}
