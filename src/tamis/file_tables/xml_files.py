"""XML files, as Spark reads them: an element of a given name is a row.

Elements inside it are columns, those inside them fields of records; an attribute ``x`` of an
element is a field ``_x``, and texts beside attributes or elements a field ``_VALUE``. What comes
several times is a list. Where a file is not well-formed, it ends with a row that cannot be read.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from tamis.file_tables.lines import CHARACTERS, LINES, open_bytes, open_text
from tamis.file_tables.record_columns import (
    Faults,
    TextLeafReader,
    ValueFault,
    batch_of,
    type_of_all,
)
from tamis.file_tables.text_types import (
    DOUBLE,
    LONG,
    NULL,
    STRING,
    common_type,
    settled,
    type_of_text,
)
from tamis.file_tables.text_values import Reader

_CHUNK = 1 << 18  # bytes that are read at a time
VALUE = "_VALUE"
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class _Broken(Exception):
    """A file that is not well-formed, or declares entities."""


class _Rows:
    """Makes records of the elements of a name."""

    def __init__(self, tag: str) -> None:
        self.ready: list[dict[str, Any]] = []
        self.size = 0  # characters of those that are ready, about
        self._tag = tag
        self._open: list[dict[str, Any]] = []  # the elements around the place, from a row on
        self._texts: list[list[str]] = []  # for each of them, its texts
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._refuse  # entities can be huge, or files of others
        self._parser = parser

    def feed(self, data: bytes, *, is_last: bool) -> None:
        """Read on."""
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            raise _Broken(str(error)) from None

    def _refuse(self, *_: Any) -> None:
        raise _Broken("it has a document type")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._open or name == self._tag:
            self._open.append({f"_{key}": value for key, value in attributes.items()})
            self._texts.append([""])

    def _text(self, text: str) -> None:
        if self._open:
            self._texts[-1][-1] += text
            self.size += len(text)

    def _end(self, name: str) -> None:
        if not self._open:
            return
        record = self._open.pop()
        texts = [text.strip() for text in self._texts.pop()]
        texts = [text for text in texts if text]
        if not self._open:
            if texts:
                _put(record, VALUE, texts)
            self.ready.append(record)
            return
        if not record:
            value: Any = "".join(texts)
        else:
            if texts:
                _put(record, VALUE, texts)
            value = record
        _put(self._open[-1], name, [value])
        self._texts[-1].append("")


def _put(record: dict[str, Any], name: str, values: list[Any]) -> None:
    """Add values to a field: one is itself, several are a list."""
    known = record.get(name, [])
    found = [*(known if isinstance(known, list) else [known]), *values]
    record[name] = found[0] if len(found) == 1 else found


def groups_of(path: Path, tag: str) -> Iterator[list[dict[str, Any]] | None]:
    """The records of a file in groups; None at the end if it is not well-formed."""
    rows = _Rows(tag)
    with open_bytes(path) as file:
        while True:
            data = file.read(_CHUNK)
            try:
                rows.feed(data, is_last=not data)
            except _Broken:
                yield rows.ready
                yield None
                return
            if not data or len(rows.ready) >= LINES or rows.size >= CHARACTERS:
                yield rows.ready
                rows.ready, rows.size = [], 0
            if not data:
                return


def records_of_text(text: str, tag: str) -> tuple[list[dict[str, Any]], bool]:
    """The records of a text, and whether it is well-formed."""
    rows = _Rows(tag)
    try:
        rows.feed(text.encode(errors="replace"), is_last=True)
    except _Broken:
        return rows.ready, False
    return rows.ready, True


# --- types


def _type_of(value: Any) -> pa.DataType:
    if isinstance(value, dict):
        return pa.struct(sorted((name, _type_of(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        kind = NULL
        for item in value:
            kind = _common(kind, _type_of(item))
        return pa.list_(kind)
    found = type_of_text(value, whole=LONG)
    if pa.types.is_decimal(found):
        return DOUBLE
    is_odd = found == DOUBLE and (value[-1] in "fFdD" or value[-1].isalpha())
    return STRING if is_odd else found


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that two elements have in common: one that comes once goes with a list of them."""
    if pa.types.is_list(one) or pa.types.is_list(other):
        inner = [kind.value_type if pa.types.is_list(kind) else kind for kind in (one, other)]
        return pa.list_(_common(*inner))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _common(fields.get(field.name, NULL), field.type)
        return pa.struct(sorted(fields.items()))
    if pa.types.is_struct(one) or pa.types.is_struct(other):
        record, plain = (one, other) if pa.types.is_struct(one) else (other, one)
        if pa.types.is_null(plain):
            return record
        if VALUE in [field.name for field in record]:  # an element with attributes, or without
            return _common(record, pa.struct([(VALUE, plain)]))
        return STRING
    return common_type(one, other)


def _shape(value: Any) -> Any:
    """Something that is equal for values of the same type, and quicker to make than the type."""
    if isinstance(value, dict):
        return tuple((name, _shape(inner)) for name, inner in value.items())
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int
    return _type_of(value)


def inferred(files: Sequence[Path], tag: str) -> tuple[pa.Schema, bool]:
    """The columns of files and their types, and whether a file is not well-formed."""
    groups = (group for path in files for group in groups_of(path, tag))
    known, any_bad = type_of_all(groups, _shape, _type_of, _common)
    return pa.schema(list(settled(known) or ())), any_bad


# --- columns


class XmlLeafReader(TextLeafReader):
    """Texts of elements; an empty one is missing, unless a string is expected."""

    def column(self, values: list[Any], kind: pa.DataType) -> pa.Array | None:
        if not pa.types.is_string(kind):
            values = [None if value == "" else value for value in values]
        return super().column(values, kind)

    def reader(self, kind: pa.DataType) -> Reader:
        read = super().reader(kind)
        if pa.types.is_string(kind):
            return read
        return lambda value: None if value == "" else read(value)


def read(
    path: Path, schema: pa.Schema, tag: str, *, is_inferred: bool
) -> Iterator[tuple[list[pa.Array], list[str | None]]]:
    """Columns of some rows, and the text of each row that cannot be read."""
    for group in groups_of(path, tag):
        if group is None:
            with open_text(path) as file:
                text = file.read(_CHUNK)
            columns, _ = columns_of([{}], schema, is_inferred=is_inferred)
            yield columns, [text]
        elif group:
            columns, faults = columns_of(group, schema, is_inferred=is_inferred)
            yield (
                columns,
                [text_of(one) if row in faults else None for row, one in enumerate(group)],
            )


def text_of(record: dict[str, Any]) -> str:
    """The text of a row, more or less as it was in the file."""
    return _element("event", record)


def _element(name: str, value: Any) -> str:
    from xml.sax.saxutils import escape, quoteattr

    if not isinstance(value, dict):
        return f"<{name}>{escape(str(value))}</{name}>"
    attributes = [
        f" {key[1:]}={quoteattr(inner)}"
        for key, inner in value.items()
        if key.startswith("_") and key != VALUE and isinstance(inner, str)
    ]
    return f"<{name}{''.join(attributes)}>{_inside(value)}</{name}>"


def _inside(record: dict[str, Any]) -> str:
    """The text of the elements and texts of a record, without its attributes."""
    from xml.sax.saxutils import escape

    parts = []
    for name, value in record.items():
        for one in value if isinstance(value, list) else [value]:
            if name == VALUE:
                parts.append(escape(one))
            elif not (name.startswith("_") and isinstance(one, str)):
                parts.append(_element(name, one))
    return "".join(parts)


def columns_of(
    rows: Sequence[dict[str, Any] | None], schema: pa.Schema, *, is_inferred: bool
) -> tuple[list[pa.Array], Faults]:
    """The columns of records, and the first fault of each; None is a row that cannot be read."""
    record = pa.struct(list(schema))
    fitted = [_fitted(one or {}, record) for one in rows]
    columns, faults = batch_of(fitted, schema, XmlLeafReader(is_inferred=is_inferred))
    for number, one in enumerate(rows):
        if one is None:
            faults[number] = ValueFault((), None, pa.null())
    return columns, faults


def _fitted(value: Any, kind: pa.DataType) -> Any:
    """A value in the form of its type: in a list if the type is one, in a record likewise."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        items = value if isinstance(value, list) else [value]
        return [_fitted(item, kind.value_type) for item in items]
    if pa.types.is_map(kind):
        inside = value if isinstance(value, dict) else {}
        return {name: _fitted(inner, kind.item_type) for name, inner in inside.items()}
    if pa.types.is_struct(kind):
        if value == "":
            return None
        record = value if isinstance(value, dict) else {VALUE: value}
        return {field.name: _fitted(record.get(field.name), field.type) for field in kind}
    if isinstance(value, list):  # of several elements where one is expected, the last one counts
        return _fitted(value[-1], kind)
    return _inside(value) if isinstance(value, dict) and pa.types.is_string(kind) else value
