"""JSON files, as Spark reads them: one object per line, or one document over several lines."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.errors import FileError
from tamis.file_tables.lines import CHARACTERS, LINES, in_groups, lines_of, open_text
from tamis.file_tables.record_columns import Faults, ValueFault, batch_of, text_column, type_of_all
from tamis.file_tables.text_types import (
    BOOL,
    DOUBLE,
    LONG,
    NULL,
    STRING,
    TIMESTAMP,
    common_struct,
    common_type,
    decimal_of,
    settled,
)
from tamis.file_tables.text_values import INT64, Reader, text_reader, timestamp_of_pattern

EMPTY = pa.struct([])
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # bytes that were escaped when they were read
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_SINGLE = re.compile(r"""("(?:[^"\\]|\\.)*")|'((?:[^'\\]|\\.)*)'""", re.DOTALL)
_NOT_NUMBERS = {
    "NaN": float("nan"), "INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"),
    "Infinity": float("inf"), "+Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip
_CHUNK = 1 << 20  # characters that are read at a time


class JsonText(NamedTuple):
    """A text of JSON and its value; the value is None if the text cannot be read."""

    text: str
    value: Any
    strict: str | None = None  # the same by the rules of JSON, if the text does not follow them


def parsed(text: str) -> JsonText:
    """The value at the beginning of a text; what follows it is left out, as Spark does."""
    start = _SPACE.match(text)
    place = 0 if start is None else start.end()
    if not text.isascii() and _NOT_UTF8.search(text):
        return JsonText(text.encode(errors="surrogateescape").decode(errors="replace"), None)
    try:
        return JsonText(text, _DECODER.raw_decode(text, place)[0])
    except (ValueError, RecursionError):
        if "'" not in text:
            return JsonText(text, None)
    double = _SINGLE.sub(_with_double_quotes, text)  # Spark takes single quotes, too
    try:
        return JsonText(text, _DECODER.raw_decode(double, place)[0], double)
    except (ValueError, RecursionError):
        return JsonText(text, None)


def _with_double_quotes(found: "re.Match[str]") -> str:
    if found[1] is not None:
        return found[1]
    return '"' + found[2].replace("\\'", "'").replace('"', '\\"') + '"'


# --- types


def type_of_value(value: Any) -> pa.DataType:
    """The type of a value of JSON."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOL
        case int():
            return LONG if INT64[0] <= value <= INT64[1] else decimal_of(Decimal(value))
        case float():
            return DOUBLE
        case str():
            if not value:
                return NULL
            return STRING if timestamp_of_pattern(value) is None else TIMESTAMP
        case list():
            kind = NULL
            for item in value:
                kind = common_type(kind, type_of_value(item))
            return pa.list_(kind)
    return type_of_record(value)


def type_of_record(record: Mapping[str, Any]) -> pa.StructType:
    """The type of an object: its fields, in the order of their names."""
    return pa.struct(sorted((name, type_of_value(value)) for name, value in record.items()))


def _shape(value: Any) -> Any:
    """Something that is equal for values of the same type, and quicker to make than the type."""
    kind = type(value)
    if kind is dict:
        return tuple((name, _shape(inner)) for name, inner in value.items())
    if kind is str:
        could_be_time = len(value) >= 18 and value[4] == "-"
        return type_of_value(value) if could_be_time else bool(value)
    if kind is list or (kind is int and not INT64[0] <= value <= INT64[1]):
        return type_of_value(value)
    return kind


def inferred(files: Sequence[Path], *, are_documents: bool) -> tuple[pa.Schema, bool]:
    """The columns of files and their types, and whether a row could not be read."""
    groups = _groups(files, are_documents=are_documents)
    known, any_bad = type_of_all(groups, _shape, type_of_record, common_struct)
    types = settled(known) or EMPTY
    return pa.schema(list(types)), any_bad


def _groups(
    files: Sequence[Path], *, are_documents: bool
) -> "Iterator[list[Mapping[str, Any]] | None]":
    """The records of each value of files, None for what could not be read."""
    for path in files:
        if are_documents and not is_valid(path):
            yield None
        else:
            yield from map(records_of, _values(path, are_documents=are_documents))


def _values(path: Path, *, are_documents: bool) -> Iterator[Any]:
    if are_documents:
        yield from (item.value for item in items_of(path))
    else:
        yield from (parsed(line).value for line in lines_of(path, errors="surrogateescape"))


def records_of(value: Any) -> "list[Mapping[str, Any]] | None":
    """The objects of a line: itself, or those of an array; None if it has anything else."""
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        return value
    return None


def is_valid(path: Path) -> bool:
    """Whether a document is valid JSON, and an object or an array of objects."""
    try:
        return all(isinstance(item.value, Mapping) for item in items_of(path))
    except ValueError:
        return False


# --- documents


def is_document(path: Path) -> bool:
    """Whether a file is one value over several lines: its first line opens it, and ends before."""
    first = next(lines_of(path), "").strip(" \t\r\n\ufeff")
    if not first.startswith(("{", "[")):
        return False
    try:
        _, end = _DECODER.raw_decode(first)
    except (ValueError, RecursionError):
        return True
    return bool(first[end:].strip())


def are_documents(name: str, files: Sequence[Path]) -> bool:
    """Whether each of the files is one document; files of both kinds are an error."""
    kinds: dict[bool, Path] = {}
    for path in files:
        kinds.setdefault(is_document(path), path)
    if len(kinds) > 1:
        raise FileError(
            f"{name} has files with one object per line ({kinds[False]}), others with "
            f"one document over several lines ({kinds[True]}); read them separately, "
            "and name the former .jsonl"
        )
    return True in kinds


def items_of(path: Path) -> Iterator[JsonText]:
    """The objects of a document, one after the other; a ValueError if it is not valid JSON."""
    with open_text(path) as file:
        buffer = _Buffer(file)
        opening = buffer.after_space()
        if opening != "[":
            yield buffer.value()
            if buffer.after_space():
                raise FileError(
                    f"{path} has several JSON values over several lines, expected "
                    "an array of them, or a .jsonl file with one object per line"
                )
            return
        buffer.skip()
        following = buffer.after_space()
        while following != "]":
            yield buffer.value()
            following = buffer.after_space()
            if following == ",":
                buffer.skip()
                if buffer.after_space() == "]":
                    raise ValueError
            elif following != "]":
                raise ValueError


class _Buffer:
    """The part of a file that is in memory."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._text = ""
        self._place = 0

    def _more(self, least: int = _CHUNK) -> bool:
        read: str = self._file.read(least)
        if read:
            self._text, self._place = self._text[self._place :] + read, 0
        return bool(read)

    def after_space(self) -> str:
        """The next character that is not white space, which is not read yet; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._place)
            self._place = self._place if found is None else found.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def skip(self) -> None:
        """Leave out one character."""
        self._place += 1

    def value(self) -> JsonText:
        """The next value."""
        least = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._place)
            except RecursionError:
                raise ValueError from None
            except ValueError:
                if not self._more(least):
                    raise
                least *= 2
                continue
            # A number at the end may go on in what is not read yet.
            if end == len(self._text) and self._more():
                continue
            text, self._place = self._text[self._place : end], end
            return JsonText(text, value)


# --- columns


class JsonLeafReader:
    """Values as JSON has them."""

    def __init__(self, *, is_inferred: bool) -> None:
        self._is_inferred = is_inferred

    def column(self, values: list[Any], kind: pa.DataType) -> pa.Array | None:
        found = set(map(type, values)) - {type(None)}
        try:
            if pa.types.is_string(kind):
                return text_column(values) if found <= {str} else None
            if kind == LONG and found <= {int}:
                return pa.array(values, kind)
            if kind == DOUBLE and found <= {int, float}:
                return pa.array([None if v is None else float(v) for v in values], kind)
            if kind == BOOL and found <= {bool}:
                return pa.array(values, kind)
        except (pa.ArrowException, OverflowError):
            return None
        return None

    def reader(self, kind: pa.DataType) -> Reader:
        text = text_reader(kind, is_inferred=self._is_inferred)

        def read(value: Any) -> Any:
            match value:
                case str() if pa.types.is_string(kind):
                    return value
                case bool() if kind == BOOL:
                    return value
                case bool():
                    raise ValueError
                case int() if pa.types.is_timestamp(kind):
                    return value * 1_000_000
                case int() if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
                    return text(str(value))
                case int() | float() if kind == DOUBLE:
                    return float(value)
                case float() if pa.types.is_decimal(kind):
                    return text(repr(value))
                case str() if kind == DOUBLE and value in _NOT_NUMBERS:
                    return _NOT_NUMBERS[value]
                case str() if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
                    return text(value)
            raise ValueError

        return read


def read(
    path: Path, schema: pa.Schema, *, is_inferred: bool, are_documents: bool = False
) -> Iterator[tuple[list[pa.Array], list[str | None]]]:
    """Columns of some rows, and the text of each row that cannot be read."""
    groups = (
        _document(path)
        if are_documents
        else map(_of_lines, in_groups(lines_of(path, errors="surrogateescape")))
    )
    for group in groups:
        if not group:
            continue
        columns, faults = columns_of(group, schema, is_inferred=is_inferred)
        yield columns, [one.text if row in faults else None for row, one in enumerate(group)]


def _of_lines(lines: Sequence[str]) -> list[JsonText]:
    """The objects of lines; those of an array in one line are several. An empty array is a row."""
    found: list[JsonText] = []
    for line in lines:
        one = parsed(line)
        records = records_of(one.value)
        if records and one.value is not records[0]:
            found += [JsonText(line, record, json.dumps(record)) for record in records]
        else:
            found.append(one)
    return found


def _document(path: Path) -> Iterator[list[JsonText]]:
    """The objects of a document in groups; a document that cannot be read is one row."""
    if not is_valid(path):
        with open_text(path) as file:
            yield [JsonText(file.read(_CHUNK), None)]
        return
    group: list[JsonText] = []
    size = 0
    for item in items_of(path):
        group.append(item)
        size += len(item.text)
        if len(group) >= LINES or size >= CHARACTERS:
            yield group
            group, size = [], 0
    yield group


def columns_of(
    rows: Sequence[JsonText], schema: pa.Schema, *, is_inferred: bool
) -> tuple[list[pa.Array], Faults]:
    """The columns of objects, and the first fault of each."""
    leaf_reader = JsonLeafReader(is_inferred=is_inferred)
    records = [row.value if isinstance(row.value, Mapping) else {} for row in rows]
    columns, faults = batch_of(records, schema, leaf_reader)
    texts = [row for row, fault in faults.items() if pa.types.is_string(fault.kind)]
    if texts:  # a value that is not a text is taken as it is written
        record = pa.struct(list(schema))
        for row in texts:
            records[row] = with_texts(rows[row].strict or rows[row].text, record)
        columns, faults = batch_of(records, schema, leaf_reader)
    for number, one in enumerate(rows):
        if not isinstance(one.value, Mapping):
            faults[number] = ValueFault((), one.value, pa.null())
    return columns, faults


def with_texts(text: str, kind: pa.DataType) -> dict[str, Any]:
    """The object of a text; where its type has a string, the value as it is written."""
    found = _SPACE.match(text)
    record, _ = _object(text, 0 if found is None else found.end(), kind)
    return record


def _object(text: str, place: int, kind: pa.DataType) -> tuple[dict[str, Any], int]:
    is_map = pa.types.is_map(kind)
    types = {} if is_map else {field.name: field.type for field in kind}
    other = kind.item_type if is_map else NULL
    record: dict[str, Any] = {}
    place = _skipped(text, place + 1)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        place = _skipped(text, _skipped(text, place) + 1)
        record[name], place = _written(text, place, types.get(name, other))
        place = _after_comma(text, place)
    return record, place + 1


def _array(text: str, place: int, kind: pa.DataType) -> tuple[list[Any], int]:
    items: list[Any] = []
    place = _skipped(text, place + 1)
    while text[place] != "]":
        item, place = _written(text, place, kind)
        items.append(item)
        place = _after_comma(text, place)
    return items, place + 1


def _written(text: str, place: int, kind: pa.DataType) -> tuple[Any, int]:
    """The value at a place, and its end; as it is written, if a string is expected."""
    if pa.types.is_struct(kind) and text[place] == "{":
        return _object(text, place, kind)
    if pa.types.is_list(kind) and text[place] == "[":
        return _array(text, place, kind.value_type)
    if pa.types.is_map(kind) and text[place] == "{":
        return _object(text, place, kind)
    value, end = _DECODER.raw_decode(text, place)
    is_written = pa.types.is_string(kind) and not isinstance(value, str | type(None))
    return text[place:end] if is_written else value, end


def _after_comma(text: str, place: int) -> int:
    place = _skipped(text, place)
    return _skipped(text, place + 1) if text[place] == "," else place


def _skipped(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()
