"""Files of events and subscriptions, by extension: .parquet .json .jsonl .csv .xml.

A file is read record by record. A record that cannot be read is still a record, so that its row
number and the reason can be reported while the others are used.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from tamis.errors import EventError, FileError, counted
from tamis.events.event_reader import (
    MAX_EVENT_TEXT,
    EventReader,
    Row,
    inner_elements,
    parse_json,
    parse_json_event,
    xml_elements,
    xml_texts,
)

MAX_XML_FILE = 1_000_000_000  # characters; it is read as a whole
EXTENSIONS = (".parquet", ".json", ".jsonl", ".csv", ".xml")


class FileRecord(NamedTuple):
    """One record of a file: a mapping, the text of a JSON object, or the error in it."""

    content: Mapping[str, Any] | str | EventError
    is_text: bool = False  # the values are text, which the reader converts

    def mapping(self) -> Mapping[str, Any]:
        """The record as a mapping; raises an error if it could not be read."""
        if isinstance(self.content, EventError):
            raise self.content
        return parse_json_event(self.content) if isinstance(self.content, str) else self.content

    def row(self, reader: EventReader) -> Row:
        """The record as a row of the reader's schema; raises an `EventError` if it does not fit."""
        if self.is_text:
            return reader.row_of_texts(self.mapping())
        return reader.row(self.mapping())


def read_records(path: str | Path) -> Iterator[FileRecord]:
    """The records of a file."""
    path = Path(path)
    extension = path.suffix.lower()
    if extension not in EXTENSIONS:
        raise FileError(
            f"{path}: the extension {extension!r} is unknown; files end in {' '.join(EXTENSIONS)}"
        )
    try:
        if not path.is_file():
            problem = "is a folder, expected a file" if path.is_dir() else "does not exist"
            raise FileError(f"{path} {problem}")
        yield from _FORMATS[extension](path)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not valid UTF-8: {error.reason} at byte {error.start}"
        ) from None


def _read_parquet(path: Path) -> Iterator[FileRecord]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for mapping in batch.to_pylist():
                    yield FileRecord(mapping)
    except pa.ArrowException as error:
        raise FileError(f"{path} is not a readable Parquet file: {error}") from None
    except (OverflowError, ValueError) as error:
        raise FileError(f"{path} contains a value that Python cannot represent: {error}") from None


def _read_json_lines(path: Path) -> Iterator[FileRecord]:
    # Bytes, not text: one line of invalid UTF-8 is one bad record, not a bad file.
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                yield FileRecord(EventError(f"line {number} is not valid UTF-8: {error.reason}"))
                continue
            if text.strip():
                yield FileRecord(text)


def _read_json(path: Path) -> Iterator[FileRecord]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = parse_json(text)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{path} is not valid JSON: {error}; a file with one object per line ends in .jsonl"
        ) from None
    except EventError as error:
        raise FileError(f"{path}: {error}") from None
    except RecursionError:
        raise FileError(f"{path} is nested too deeply") from None
    except UnicodeDecodeError:
        raise
    except ValueError:
        raise FileError(f"{path} contains a number with too many digits") from None
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict):
            yield FileRecord(item)
        else:
            yield FileRecord(EventError(f"expected an object {{...}}, got {type(item).__name__}"))


def _read_csv(path: Path) -> Iterator[FileRecord]:
    """The records of a CSV file; an empty field is a missing value."""
    csv.field_size_limit(MAX_EVENT_TEXT)
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
                    pairs = zip(header, fields, strict=True)
                    yield FileRecord({k: v for k, v in pairs if v != ""}, is_text=True)
                elif fields:
                    found = counted(len(fields), "field")
                    problem = f"line {reader.line_num} has {found}, the header has {len(header)}"
                    yield FileRecord(EventError(problem))
        except csv.Error as error:
            raise FileError(f"{path}, line {reader.line_num}: {error}") from None


def _read_xml(path: Path) -> Iterator[FileRecord]:
    """The events of an XML file: elements with or without a root, or the values of one event.

    A root named ``event`` is an event; a root of any other name contains events, or the values of
    one event.
    """
    try:
        elements = xml_elements(path.read_text(encoding="utf-8-sig"), MAX_XML_FILE)
        if len(elements) == 1 and elements[0].tag != "event" and len(elements[0]):
            elements = inner_elements(elements[0])
        if _are_events(elements):
            for element in elements:
                yield _xml_record(element)
        elif elements:
            yield FileRecord(xml_texts(elements), is_text=True)
    except EventError as error:
        raise FileError(f"{path}: {error}") from None


def _are_events(elements: list[Element]) -> bool:
    """Whether elements are events: they have one name, some have elements, none is plain text."""
    return (
        len({element.tag for element in elements}) == 1
        and any(len(element) for element in elements)
        and all(len(element) or not (element.text or "").strip() for element in elements)
    )


def _xml_record(element: Element) -> FileRecord:
    try:
        return FileRecord(xml_texts(inner_elements(element)), is_text=True)
    except EventError as error:
        return FileRecord(error)


_FORMATS = {
    ".parquet": _read_parquet,
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".csv": _read_csv,
    ".xml": _read_xml,
}
