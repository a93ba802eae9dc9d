"""The types of values, in events and inside expressions.

An attribute has one of six scalar types, or is an array of one of them or a map from strings to
one of them; a domain (`int(1, 250)`, `enum('a', 'b')`) narrows a scalar type.
Expressions need more kinds, because tamis gives the answers of Spark SQL, which has them: small
integer constants have 32 bits and wrap around, and a date is not a timestamp.
"""

from dataclasses import dataclass
from enum import Enum

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

MAX_DECIMAL_DIGITS = 38
SHORT_DECIMAL_DIGITS = 18  # that fit in 64 bits, whatever they are


class Kind(Enum):
    """The kinds of values."""

    __hash__ = object.__hash__  # faster than that of Enum, which is written in Python

    INT32 = "int32"
    INT = "int"
    DECIMAL = "decimal"
    DOUBLE = "double"
    STRING = "string"
    BOOL = "bool"
    TIMESTAMP = "timestamp"
    DATE = "date"
    MONTHS = "interval of months"
    DAYS = "interval of days"
    DURATION = "interval"
    NULL = "null"
    ARRAY = "array"
    MAP = "map"
    FUNCTION = "function"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression.

    Digits and scale belong to decimals only, and the type of the elements, or of the values of a
    map, to arrays and maps. The keys of a map are strings.
    """

    kind: Kind
    digits: int = 0
    scale: int = 0
    element: "Type | None" = None

    def __str__(self) -> str:
        if self.element is not None:
            keys = "string, " if self.kind is Kind.MAP else ""
            return f"{self.kind.value}<{keys}{self.element}>"
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.digits}, {self.scale})"
        if self.kind is Kind.INT32:
            return "int"
        return str(self.kind.value)

    @property
    def is_integer(self) -> bool:
        return self.kind in {Kind.INT32, Kind.INT}

    @property
    def is_number(self) -> bool:
        return self.kind in {Kind.INT32, Kind.INT, Kind.DECIMAL, Kind.DOUBLE}

    @property
    def is_nested(self) -> bool:
        """Whether it is an array or a map."""
        return self.element is not None

    @property
    def is_time(self) -> bool:
        """Whether it is a date, a timestamp or an interval."""
        return self.kind in _TIMES


_TIMES = {Kind.TIMESTAMP, Kind.DATE, Kind.MONTHS, Kind.DAYS, Kind.DURATION}

INT32 = Type(Kind.INT32)
INT = Type(Kind.INT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
BOOL = Type(Kind.BOOL)
TIMESTAMP = Type(Kind.TIMESTAMP)
DATE = Type(Kind.DATE)  # days since 1970-01-01, 32 bits
MONTHS = Type(Kind.MONTHS)  # 32 bits
DAYS, DURATION = Type(Kind.DAYS), Type(Kind.DURATION)  # both in microseconds
NULL = Type(Kind.NULL)
FUNCTION = Type(Kind.FUNCTION)  # of the condition in exists and forall

# The types of attributes by their names; those of decimals have digits, too.
ATTRIBUTE_TYPES = {
    kind.value: Type(kind)
    for kind in (Kind.INT, Kind.DOUBLE, Kind.STRING, Kind.BOOL, Kind.TIMESTAMP)
}


def array_of(element: Type) -> Type:
    """The type of arrays of a type."""
    return Type(Kind.ARRAY, element=element)


def map_of(value: Type) -> Type:
    """The type of maps from strings to a type."""
    return Type(Kind.MAP, element=value)


def decimal_type(digits: int, scale: int) -> Type:
    """The type of decimals with `digits` digits, `scale` of them after the point."""
    return Type(Kind.DECIMAL, digits, scale)


def reads_as(found: Type, wanted: Type) -> bool:
    """Whether a column of one type can be read as another: numbers, and times as texts."""
    if found.element is not None and wanted.element is not None:
        return found.kind is wanted.kind and reads_as(found.element, wanted.element)
    if wanted.kind is Kind.DECIMAL:
        return found.is_number or found == STRING
    if wanted == DOUBLE and (found == INT or found.kind is Kind.DECIMAL):
        return True
    return found == wanted or (found, wanted) == (STRING, TIMESTAMP)


def wider_time(a: Type, b: Type) -> Type | None:
    """The type of two dates and timestamps, or of two intervals, None if there is none."""
    if a == b:
        return a if a.is_time else None
    if {a, b} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return DURATION if {a, b} == {DAYS, DURATION} else None
