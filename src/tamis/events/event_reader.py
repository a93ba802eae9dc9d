"""Events (dicts, JSON, XML) as rows in the order of a schema.

An attribute is missing if the event does not have it, or has it with the value None. Names that the
schema does not have are ignored with ``unknown="ignore"``, the default, because events often carry
more than filters test; ``unknown="refuse"`` refuses such events, which finds misspellings.
"""

import json
import logging
import re
from collections.abc import Container, Iterable, Mapping
from decimal import Decimal
from math import isinf
from typing import Any
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ErrorString

from tamis.errors import EventError, choose, unknown_attribute
from tamis.events.values import XML_VALUE, Reader, text_reader, value_reader
from tamis.names import Path, path_text
from tamis.schema import Schema

Row = tuple[Any, ...]

MAX_EVENT_TEXT = 16_000_000  # characters of one JSON or XML event
MAX_EVENT_DEPTH = 100  # nested records of one event
UNKNOWN_CHOICES = ("ignore", "refuse")
EXACT_DIGITS = 15  # of a number that a double holds: reading and printing it gives it back
MOST_NOTICED = 100  # sets of names; events that all have other names are not looked at

logger = logging.getLogger("tamis")

_XML_HEAD = re.compile(r"\s*(?:<\?xml[^>]*\?>\s*)?")


class EventReader:
    """Reads events with one schema."""

    def __init__(self, schema: Schema, unknown: str = "ignore") -> None:
        self.schema = schema
        self.refuse_unknown = (
            choose("treatment of unknown attributes", unknown, UNKNOWN_CHOICES) == "refuse"
        )
        self._values = _reader_tree(schema, [value_reader(a) for a in schema.attributes])
        self._texts = _reader_tree(schema, [text_reader(a) for a in schema.attributes])
        # Tables without records use the whole path as the name of a column: address.city.
        self._flat_names = {
            ".".join(attribute.path): position
            for position, attribute in enumerate(schema.attributes)
            if len(attribute.path) > 1
        }
        self._noticed: set[frozenset[Any]] = set()

    def row(self, event: Any) -> Row:
        """The row of an event: a mapping, or a JSON object or XML document as text."""
        if isinstance(event, Mapping):
            return self._row(event, self._values)
        return self._row(*self.record(event))

    def read(self, event: Any, beside: Container[str]) -> tuple[Mapping[str, Any], Row]:
        """An event as a mapping, and its row; names `beside` the attributes are not unknown."""
        record, readers = self.record(event)
        inside = record
        if self.refuse_unknown:
            known = {*readers, *self._flat_names}
            inside = {k: v for k, v in record.items() if k in known or k not in beside}
        return record, self._row(inside, readers)

    def record(self, event: Any) -> "tuple[Mapping[str, Any], _ReaderTree]":
        """An event as a mapping, and how its values are read."""
        if isinstance(event, Mapping):
            return event, self._values
        if isinstance(event, bytes):
            try:
                event = event.decode()
            except UnicodeDecodeError as error:
                raise EventError(
                    f"the event is not valid UTF-8: {error.reason} at byte {error.start}"
                ) from None
        if isinstance(event, str):
            if event.lstrip("\ufeff \t\r\n").startswith("<"):
                return parse_xml_event(event, set(self._texts)), self._texts
            return parse_json_event(event), self._values
        raise EventError(
            f"an event is a mapping, or JSON or XML as text, not {type(event).__name__}"
        )

    def notice_names(self, names: Iterable[Any]) -> None:
        """Warn, once, of names that differ from those of missing attributes only in case."""
        given = frozenset(names)
        if given in self._noticed or len(self._noticed) >= MOST_NOTICED:
            return
        self._noticed.add(given)
        known = {*self._values, *self._flat_names}
        folded = {one.casefold(): one for one in given - known if isinstance(one, str)}
        for name in sorted(known - given):
            other = folded.get(name.casefold())
            if other is not None:
                logger.warning(
                    "the events have %r, and the schema has %r: names are case-sensitive, so the "
                    "attribute is missing",
                    other, name,
                )  # fmt: skip

    def row_of_texts(self, event: Mapping[str, Any]) -> Row:
        """The row of an event whose values are text, as in CSV and XML."""
        return self._row(event, self._texts)

    def _row(self, event: Mapping[str, Any], readers: "_ReaderTree") -> Row:
        row: list[Any] = [None] * len(self.schema)
        for name, target in self._flat_names.items():
            if event.get(name) is not None:
                row[target] = _reader_at(readers, self.schema.attributes[target].path)(event[name])
        self._fill(row, event, readers, ())
        return tuple(row)

    def _fill(
        self,
        row: list[Any],
        record: Mapping[str, Any],
        readers: "_ReaderTree",
        path: tuple[str, ...],
    ) -> None:
        for key, target in readers.items():
            value = record.get(key)
            if value is None:
                continue
            if isinstance(target, dict):
                if isinstance(value, str) and XML_VALUE in target:
                    value = {XML_VALUE: value}  # an element without the attributes of others
                if not isinstance(value, Mapping):
                    raise EventError(
                        f"attribute {path_text((*path, key))} expects a record, "
                        f"got {type(value).__name__}"
                    )
                self._fill(row, value, target, (*path, key))
            else:
                position, read = target
                if path and row[position] is not None:
                    flat = ".".join((*path, key))
                    raise EventError(
                        f"the event has {path_text((*path, key))} twice: in the record "
                        f"{path_text(path)} and under the name {flat!r}"
                    )
                row[position] = read(value)
        if self.refuse_unknown:
            for key in record:
                if key not in readers and (path or key not in self._flat_names):
                    name = path_text((*path, str(key)))
                    raise EventError(unknown_attribute(name, self.schema))


def other_case(record: Mapping[str, Any], path: Path) -> str | None:
    """How an event spells the path of an attribute, if that differs only in case; else None."""
    found: list[str] = []
    inside: Any = record
    for part in path:
        if not isinstance(inside, Mapping):
            return None
        folded = {k.casefold(): k for k in inside if isinstance(k, str)}
        key = part if part in inside else folded.get(part.casefold())
        if key is None:
            return None
        found.append(key)
        inside = inside[key]
    return None if tuple(found) == path else ".".join(found)


def _reader_at(readers: "_ReaderTree", path: tuple[str, ...]) -> Reader:
    *records, last = path
    for part in records:
        readers = readers[part]
    reader: Reader = readers[last][1]
    return reader


_ReaderTree = dict[str, Any]  # by name: (position, reader), or the tree of a nested record


def _reader_tree(schema: Schema, readers: list[Reader]) -> _ReaderTree:
    tree: _ReaderTree = {}
    for position, (attribute, reader) in enumerate(zip(schema.attributes, readers, strict=True)):
        record = tree
        for part in attribute.path[:-1]:
            record = record.setdefault(part, {})
        record[attribute.path[-1]] = (position, reader)
    return tree


def parse_json_event(text: str) -> Mapping[str, Any]:
    """The object of a JSON text."""
    _check_size(text)
    try:
        event = parse_json(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise EventError(
            f"the event is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise EventError("the event is nested too deeply") from None
    except ValueError:
        raise EventError("the event contains a number with too many digits") from None
    if not isinstance(event, dict):
        raise EventError(f"an event is a JSON object {{...}}, not {type(event).__name__}")
    return event


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises an `EventError` for what `json` alone would accept.

    That is a name that comes twice in an object, and a number that would become infinity.
    """
    return _JSON.decode(text)


def exact_number(text: str) -> float | Decimal:
    """A number of JSON: a float, or a Decimal if Python would print another number for the float.

    So a decimal attribute gets all digits that were written.
    """
    number = float(text)
    if isinf(number):
        shown = text if len(text) <= 40 else text[:37] + "..."
        raise EventError(f"the number {shown} is too large for a double")
    if len(text) <= EXACT_DIGITS and "e" not in text and "E" not in text:
        return number
    shortest = repr(number)
    if shortest == text or Decimal(shortest) == Decimal(text):
        return number
    return Decimal(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of a JSON object; raises an error if a name occurs twice."""
    record = dict(pairs)
    if len(record) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise EventError(f"the event names {name!r} twice")
            seen.add(name)
    return record


# Made once: `json.loads` with settings would make one for each text.
_JSON = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_float=exact_number)


def parse_xml_event(text: str, names: Container[str]) -> Mapping[str, Any]:
    """The texts of an XML document: one element per attribute, as in the BDD paper.

    The elements may be on their own or inside one element that is not in `names`. White space
    around a value is removed.
    """
    elements = xml_elements(text)
    if len(elements) == 1 and elements[0].tag not in names and len(elements[0]):
        elements = inner_elements(elements[0])
    return xml_texts(elements)


def xml_elements(text: str, most: int = MAX_EVENT_TEXT) -> list[Element]:
    """The outermost elements of an XML text, of which there may be several."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    _check_size(text, most)
    body = _XML_HEAD.sub("", text.removeprefix("\ufeff"), count=1)
    try:
        # The paper's documents have no root element; one more around a root element is harmless.
        root = fromstring(f"<event>{body}</event>", forbid_dtd=True)
    except ParseError as error:
        if "<!DOCTYPE" in body:
            raise EventError("the event declares a DTD, which is not allowed") from None
        line, column = error.position
        column += 1 - (len("<event>") if line == 1 else 0)
        problem = ErrorString(error.code)
        raise EventError(
            f"the event is not valid XML: {problem} (line {line}, column {column})"
        ) from None
    except DefusedXmlException:
        raise EventError("the event declares XML entities, which are not allowed") from None
    except UnicodeEncodeError:
        raise EventError("the event is not valid Unicode text") from None
    return inner_elements(root)


def inner_elements(element: Element) -> list[Element]:
    """The elements inside an element that has no text beside them."""
    inner = list(element)
    for text in (element.text, *(one.tail for one in inner)):
        if text is not None and text.strip():
            found = text.strip()
            shown = found if len(found) <= 40 else found[:37] + "..."
            raise EventError(
                f"the text {shown!r} is in no element; each value is in an element of its own"
            )
    return inner


def xml_texts(elements: list[Element], depth: int = MAX_EVENT_DEPTH) -> dict[str, Any]:
    """The texts of elements by their names, nested like the elements.

    Elements of one name are a list. As in Spark, an attribute of an element has the name ``_name``
    inside it, and the text beside attributes the name ``_VALUE``.
    """
    if depth == 0:
        raise EventError(f"the event is nested more than {MAX_EVENT_DEPTH} records deep")
    record: dict[str, Any] = {}
    for element in elements:
        value = _xml_value(element, depth)
        if element.tag not in record:
            record[element.tag] = value
        elif isinstance(record[element.tag], list):
            record[element.tag].append(value)
        else:
            record[element.tag] = [record[element.tag], value]
    return record


def _xml_value(element: Element, depth: int) -> Any:
    """The text of an element, or the record of what is in it; attributes are named ``_name``."""
    attributes = {f"_{name}": text.strip() for name, text in element.attrib.items()}
    if len(element):
        return attributes | xml_texts(inner_elements(element), depth - 1)
    text = (element.text or "").strip()
    if not attributes:
        return text
    return attributes | {XML_VALUE: text} if text else attributes


def _check_size(text: str, most: int = MAX_EVENT_TEXT) -> None:
    if len(text) > most:
        raise EventError(f"the text has {len(text):,} characters, the limit is {most:,}")
