"""Schemas: the attributes that events may have and filters may use, with types and domains."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tamis.errors import SchemaError, did_you_mean
from tamis.names import Path, path_text, split_path
from tamis.types import (
    ATTRIBUTE_TYPES,
    INT,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_DIGITS,
    STRING,
    Type,
    array_of,
    decimal_type,
    map_of,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_INT_DOMAIN = re.compile(r"int\s*\(\s*(-?[0-9]{1,40})\s*,\s*(-?[0-9]{1,40})\s*\)")
_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,9})\s*)?\)")
_ENUM_DOMAIN = re.compile(r"enum\s*\(\s*(.*?)\s*\)", re.DOTALL)
_ENUM_VALUE = re.compile(r"\s*'((?:[^']|'')*)'\s*(,|$)", re.DOTALL)
_NESTED = re.compile(r"(array|map)\s*<(.*)>", re.DOTALL)
_OTHER_NAMES = {  # other names for these types
    "integer": "int", "int32": "int", "int64": "int", "long": "int", "bigint": "int",
    "smallint": "int", "float": "double", "float64": "double", "real": "double",
    "decimal": "decimal(10, 2)", "numeric": "decimal(10, 2)", "number": "double", "str": "string",
    "text": "string", "varchar": "string", "boolean": "bool", "datetime": "timestamp",
    "date": "timestamp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class IntRange:
    """The integers from `low` to `high`, both included."""

    low: int
    high: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"int({self.low}, {self.high})"


@dataclass(frozen=True, slots=True)
class Enumeration:
    """One of a fixed set of strings, in the order of the schema."""

    values: tuple[str, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def __str__(self) -> str:
        quoted = ("'" + value.replace("'", "''") + "'" for value in self.values)
        return f"enum({', '.join(quoted)})"


Domain = IntRange | Enumeration


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a schema."""

    path: Path
    type: Type
    domain: Domain | None = None

    @property
    def name(self) -> str:
        return path_text(self.path)

    def __str__(self) -> str:
        return str(self.domain or self.type)


class Schema(Mapping[str, Attribute]):
    """Names and types of attributes.

    >>> schema = Schema({"company": "string", "price": "double", "level": "int(1, 250)",
    ...                  "side": "enum('buy', 'sell')", "address.city": "string"})
    >>> schema["level"].domain.high
    250

    Types are ``int`` (64 bits), ``double``, ``decimal(digits, scale)``, ``string``, ``bool``,
    ``timestamp`` (microseconds, UTC), and ``array<T>`` and ``map<string, T>`` of these, except
    decimals; ``int(low, high)`` and ``enum('a', 'b')`` are domains, and values outside them are
    refused. A dot in a name goes into a nested record; a name that contains a dot is put in
    backticks. `from_arrow` and `from_spark` read a schema from a table.
    """

    clockless: str | None = None  # the place in which filters may not use now(), for the error

    def __init__(self, attributes: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        built: list[Attribute] = []
        for name, type_text in _pairs(attributes):
            if not isinstance(name, str):
                raise SchemaError(f"an attribute name must be a string, not {name!r}")
            built.append(_parse_attribute(name, type_text))
        self._set_attributes(built)

    def _set_attributes(self, attributes: Iterable[Attribute]) -> None:
        self.attributes: tuple[Attribute, ...] = tuple(attributes)
        self._hash = hash(self.attributes)
        self.positions: dict[Path, int] = {}
        for position, attribute in enumerate(self.attributes):
            if attribute.path in self.positions:
                raise SchemaError(f"attribute {attribute.name} is declared twice")
            self.positions[attribute.path] = position
        for path in self.positions:
            for length in range(1, len(path)):
                if path[:length] in self.positions:
                    raise SchemaError(
                        f"attribute {path_text(path)} lies inside {path_text(path[:length])}, "
                        "which is declared as a value"
                    )

    @classmethod
    def of_attributes(cls, attributes: Iterable[Attribute]) -> "Schema":
        """The schema with these attributes."""
        schema = cls({})
        schema._set_attributes(attributes)
        return schema

    @classmethod
    def from_arrow(cls, schema: "pa.Schema", *, unsupported: str = "refuse") -> "Schema":
        """The schema of an Arrow table; nested structs become dotted paths.

        Columns that no filter can use (lists of records, binary) are refused with an error, or left
        out with ``unsupported="skip"``.
        """
        from tamis.column_types import arrow_attributes

        return cls.of_attributes(arrow_attributes(schema, unsupported))

    @classmethod
    def from_spark(cls, schema: "StructType", *, unsupported: str = "refuse") -> "Schema":
        """The schema of a Spark DataFrame (``frame.schema``); see `from_arrow`."""
        from tamis.column_types import spark_attributes

        return cls.of_attributes(spark_attributes(schema, unsupported))

    def with_attributes(self, attributes: "Mapping[str, str] | Schema | Any") -> "Schema":
        """A schema with these attributes after its own; one that is there already stays.

        `attributes` is what a schema can be made of: a dict of names and types, or a schema of
        Arrow or Spark.
        """
        more = []
        for attribute in as_schema(attributes).attributes:
            known = self.find(attribute.path)
            if known is None:
                more.append(attribute)
            elif known != attribute:
                raise SchemaError(
                    f"attribute {attribute.name} is {known} already, and cannot become {attribute}"
                )
        made = Schema.of_attributes([*self.attributes, *more])
        made.clockless = self.clockless
        return made

    @property
    def has_clock(self) -> bool:
        """Whether filters may use ``now()`` and ``current_date()``."""
        return self.clockless is None

    def without_clock(self, place: str = "here") -> "Schema":
        """The same schema, for places where events are matched again later.

        There, ``now()`` would give another answer than before, so filters may not use it; the
        error names the `place`.
        """
        made = Schema.of_attributes(self.attributes)
        made.clockless = place
        return made

    def find(self, path: Path) -> Attribute | None:
        """The attribute at a path, or None."""
        position = self.positions.get(path)
        return None if position is None else self.attributes[position]

    def __getitem__(self, name: str) -> Attribute:
        try:
            attribute = self.find(split_path(name))
        except SchemaError:  # not a valid name
            attribute = None
        if attribute is None:
            raise KeyError(name)
        return attribute

    def __iter__(self) -> Iterator[str]:
        return (attribute.name for attribute in self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.attributes == other.attributes

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Schema({ {a.name: str(a) for a in self.attributes} })"


def as_schema(schema: Any) -> Schema:
    """A `Schema`, from a schema or anything that describes one."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema(schema)
    inner = getattr(schema, "schema", schema)  # of an Arrow table or a Spark frame
    kind = type(inner).__module__.split(".")[0], type(inner).__name__
    if kind == ("pyarrow", "Schema"):
        return Schema.from_arrow(inner)
    if kind == ("pyspark", "StructType"):
        return Schema.from_spark(inner)
    raise SchemaError(
        "a schema is a tamis.Schema, a dict of names and types, an Arrow schema or a Spark "
        f"schema, not {type(schema).__name__}"
    )


def _pairs(attributes: Any) -> Iterable[tuple[Any, Any]]:
    try:
        pairs = attributes.items() if isinstance(attributes, Mapping) else attributes
        return [(name, type_text) for name, type_text in pairs]
    except (TypeError, ValueError):
        raise SchemaError(
            'a schema is a dict of names and types: {"price": "double", ...}'
        ) from None


def _parse_attribute(name: str, text: object) -> Attribute:
    path = split_path(name)
    if not isinstance(text, str):
        raise SchemaError(f"attribute {name!r}: a type is written as a string, not {text!r}")
    word = text.strip()
    if word in ATTRIBUTE_TYPES:
        return Attribute(path, ATTRIBUTE_TYPES[word])
    if found := _INT_DOMAIN.fullmatch(word):
        return Attribute(path, INT, _int_range(name, int(found[1]), int(found[2])))
    if found := _DECIMAL.fullmatch(word):
        return Attribute(path, _decimal(name, int(found[1]), int(found[2] or 0)))
    if found := _ENUM_DOMAIN.fullmatch(word):
        return Attribute(path, STRING, _enumeration(name, found[1]))
    if found := _NESTED.fullmatch(word):
        return Attribute(path, _nested(name, found[1], found[2].strip()))
    other = _OTHER_NAMES.get(word.lower())
    hint = None
    if other is not None:
        hint = f"did you mean {other!r}?"
        if other.startswith("decimal"):
            hint += " It has 10 digits, 2 of them after the point"
    hint = hint or did_you_mean(word, [*ATTRIBUTE_TYPES, "int(1, 250)", "enum('a', 'b')"])
    raise SchemaError(f"attribute {name!r} has the unknown type {text!r}; {hint}")


def _decimal(name: str, digits: int, scale: int) -> Type:
    if not 0 <= scale <= digits or not 1 <= digits <= MAX_DECIMAL_DIGITS:
        raise SchemaError(
            f"attribute {name!r}: decimal({digits}, {scale}) must have 1 to {MAX_DECIMAL_DIGITS} "
            "digits, and at most that many of them after the point"
        )
    return decimal_type(digits, scale)


def _nested(name: str, kind: str, inside: str) -> Type:
    """The type of ``array<T>`` or ``map<string, T>``, given what is between the brackets."""
    if kind == "map":
        key, comma, inside = (part.strip() for part in inside.partition(","))
        if key != "string" or not comma:
            raise SchemaError(
                f"attribute {name!r}: the keys of a map are strings; write map<string, int>"
            )
    element = ATTRIBUTE_TYPES.get(inside)
    if element is None:
        known = _OTHER_NAMES.get(inside.lower())
        hint = f"; did you mean {known!r}?" if known in ATTRIBUTE_TYPES else ""
        if inside.startswith("decimal"):
            hint = "; write double, or int for amounts in their smallest unit"
        raise SchemaError(
            f"attribute {name!r}: {kind}s hold values of the types {', '.join(ATTRIBUTE_TYPES)}, "
            f"not {inside!r}{hint}"
        )
    return array_of(element) if kind == "array" else map_of(element)


def _int_range(name: str, low: int, high: int) -> IntRange:
    if low > high:
        raise SchemaError(f"attribute {name!r}: the domain int({low}, {high}) is empty")
    if low < INT64_MIN or high > INT64_MAX:
        raise SchemaError(f"attribute {name!r}: the domain int({low}, {high}) exceeds 64 bits")
    return IntRange(low, high)


def _enumeration(name: str, text: str) -> Enumeration:
    values: list[str] = []
    position = 0
    while position < len(text):
        found = _ENUM_VALUE.match(text, position)
        if found is None:
            raise SchemaError(
                f"attribute {name!r}: enum({text}) must list quoted strings: enum('a', 'b')"
            )
        value = found[1].replace("''", "'")
        if value in values:
            raise SchemaError(f"attribute {name!r}: the domain lists {value!r} twice")
        values.append(value)
        position = found.end()
        if found[2] and position >= len(text):
            raise SchemaError(f"attribute {name!r}: enum({text}) ends with a comma")
    if not values:
        raise SchemaError(f"attribute {name!r}: the domain enum() is empty")
    return Enumeration(tuple(values))
