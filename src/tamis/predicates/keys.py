"""Values as 64-bit keys: whole numbers in the order of the values.

Whole numbers and moments are their own keys. The key of a double is its bits read as a whole
number, with the order of negative ones reversed; -0.0 counts as 0.0, and NaN is above everything,
as in Spark.

The key of a decimal is all its digits as a whole number, if its type has no more than 18. Of longer
types, the 17 first digits of a value and their number make an even key; what has other digits after
them shares the odd key above it. So a value has another key than a constant of up to 17 significant
digits unless they are equal, and comparing the keys is exact. A constant with more digits has no
key, and is compared as it is.
"""

import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from operator import itemgetter
from typing import Any

import numpy as np

from tamis.events.event_reader import Row
from tamis.schema import Attribute, Enumeration, Schema
from tamis.types import INT64_MAX, SHORT_DECIMAL_DIGITS, Kind, Type

Array = np.ndarray[Any, Any]

WHOLE = {
    Kind.INT32, Kind.INT, Kind.BOOL, Kind.TIMESTAMP, Kind.DATE, Kind.MONTHS, Kind.DAYS,
    Kind.DURATION,
}  # fmt: skip
_ALL_BUT_SIGN = np.int64(2**63 - 1)
_EXACT = Context(prec=80)
KEY_DIGITS = 17
PER_LENGTH = 9 * 10 ** (KEY_DIGITS - 1)  # numbers of 17 digits, the first of which is not 0
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")


def double_keys(values: Array) -> Array:
    """The keys of doubles."""
    with np.errstate(invalid="ignore"):  # a NaN may be a signalling one
        bits = (values + 0.0).view(np.int64)
    keys: Array = bits ^ ((bits >> 63) & _ALL_BUT_SIGN)
    keys[np.isnan(values)] = INT64_MAX
    return keys


def double_key(value: float) -> int:
    """The key of one double."""
    if value != value:  # noqa: PLR0124 - NaN is not equal to itself
        return INT64_MAX
    bits: int = _BITS.unpack(_DOUBLE.pack(value + 0.0))[0]
    return bits if bits >= 0 else bits ^ INT64_MAX


def key_doubles(keys: Array) -> Array:
    """The doubles that have these keys."""
    values = (keys ^ ((keys >> 63) & _ALL_BUT_SIGN)).view(np.float64)
    return np.where(keys == INT64_MAX, np.nan, values)


def decimal_key(value: Decimal, of: Type) -> int:
    """The key of a value of a decimal type."""
    return unscaled_key(unscaled(value, of.scale), of)


def unscaled(value: Decimal, scale: int) -> int:
    """All digits of a decimal as a whole number."""
    return int(value.scaleb(scale, _EXACT))


def unscaled_key(number: int, of: Type) -> int:
    """The key of a decimal whose digits are a whole number."""
    if of.digits <= SHORT_DECIMAL_DIGITS:
        return number
    size = abs(number)
    beyond = len(str(size)) - KEY_DIGITS
    key = 2 * size
    if beyond > 0:
        first, rest = divmod(size, 10**beyond)
        key = 2 * (first + PER_LENGTH * beyond) + (rest != 0)
    return key if number >= 0 else -key


def has_values(of: Type) -> bool:
    """Whether the keys of a type tell all its values apart."""
    return of.kind is not Kind.DECIMAL or of.digits <= SHORT_DECIMAL_DIGITS


def key_values(attribute: Attribute, keys: Array) -> list[Any]:
    """Values of an attribute that have these keys; the inverse of `Keys.many`, where it has one."""
    kind = attribute.type.kind
    if isinstance(attribute.domain, Enumeration):
        ordered = sorted(attribute.domain.values)
        return [ordered[key] for key in keys.tolist()]
    if kind is Kind.DOUBLE:
        doubles: list[Any] = key_doubles(keys).tolist()
        return doubles
    if kind is Kind.BOOL:
        return [bool(key) for key in keys.tolist()]
    if kind is Kind.DECIMAL:
        numbers = [_number_of_key(key, attribute.type) for key in keys.tolist()]
        return scaled(numbers, attribute.type.scale)
    found: list[Any] = keys.tolist()
    return found


def _number_of_key(key: int, of: Type) -> int:
    """A number that has a key; of several, the smallest."""
    if has_values(of):
        return key
    size, is_between = divmod(abs(key), 2)
    beyond = max(0, (size - 10 ** (KEY_DIGITS - 1)) // PER_LENGTH)
    number: int = (size - PER_LENGTH * beyond) * 10**beyond + is_between
    return number if key >= 0 else -number


def scaled(numbers: Sequence[int], scale: int) -> list[Decimal]:
    """The decimals whose digits are whole numbers."""
    return [Decimal(number).scaleb(-scale, _EXACT) for number in numbers]


def constant_key(value: Decimal, of: Type) -> int | None:
    """The key of a decimal that others are compared with, None if it has none."""
    key = decimal_key(value, of)
    return key if has_values(of) or key % 2 == 0 else None


class Keys:
    """The keys of the attributes of one schema; strings without an enumeration have none."""

    def __init__(self, schema: Schema) -> None:
        kinds = self._kinds = [attribute.type.kind for attribute in schema.attributes]
        self.schema = schema
        self.size = len(schema)
        self._whole = [n for n, kind in enumerate(kinds) if kind in WHOLE]
        self._doubles = [n for n, kind in enumerate(kinds) if kind is Kind.DOUBLE]
        self._places = {
            # Strings are ordered by code point, whatever the order of the schema.
            n: {value: place for place, value in enumerate(sorted(attribute.domain.values))}
            for n, attribute in enumerate(schema.attributes)
            if isinstance(attribute.domain, Enumeration)
        }
        self._decimals = {
            n: attribute.type
            for n, attribute in enumerate(schema.attributes)
            if attribute.type.kind is Kind.DECIMAL
        }
        # Computed values may be many thousands of attributes.
        self._known = frozenset([*self._whole, *self._doubles, *self._places, *self._decimals])
        self._get_whole = getter(self._whole)
        self._get_doubles = getter(self._doubles)

    def has(self, position: int) -> bool:
        """Whether the values of an attribute have keys."""
        return position in self._known

    def key(self, position: int, value: Any) -> int | None:
        """The key of a value; None for a free string and for a value outside its domain.

        A decimal with more digits than fit has none, either.
        """
        if position in self._places:
            return self._places[position].get(value)
        if position in self._decimals:
            return constant_key(value, self._decimals[position])
        if not self.has(position):
            return None
        if self._kinds[position] is Kind.DOUBLE:
            return int(double_keys(np.array([value], np.float64))[0])
        return int(value)

    def many(self, position: int, values: Sequence[Any]) -> Array:
        """The keys of many values of an attribute, each of which has a key."""
        if position in self._places:
            places = self._places[position]
            return np.array([places[value] for value in values], np.int64)
        if self._kinds[position] is Kind.DOUBLE:
            return double_keys(np.array(values, np.float64))
        if position in self._decimals:
            of = self._decimals[position]
            return np.array([decimal_key(value, of) for value in values], np.int64)
        return np.array(values, np.int64)

    def of_one(self, position: int) -> Callable[[Any], int]:
        """A function from a value of an attribute to its key."""
        if position in self._places:
            return self._places[position].__getitem__
        if position in self._decimals:
            of = self._decimals[position]
            return lambda value: decimal_key(value, of)
        return double_key if self._kinds[position] is Kind.DOUBLE else int

    def code(self, position: int) -> str | None:
        """How `struct` writes a value of an attribute: "q" for its key, "d" for a double.

        None if its key has to be computed, or if it has none.
        """
        kind = self._kinds[position]
        if position in self._places:
            return None
        return "q" if kind in WHOLE else "d" if kind is Kind.DOUBLE else None

    def row(self, row: Row) -> tuple[Array, Array]:
        """keys[attribute] and present[attribute] of an event."""
        keys = np.zeros(self.size, np.int64)
        present = np.zeros(self.size, np.uint8)
        if self._whole:
            values = self._get_whole(row)
            if None in values:
                present[self._whole] = [value is not None for value in values]
                values = [value or 0 for value in values]
            else:
                present[self._whole] = 1
            keys[self._whole] = values
        if self._doubles:
            doubles = np.array(self._get_doubles(row), np.float64)  # a missing one becomes nan
            keys[self._doubles] = double_keys(doubles)
            present[self._doubles] = [row[n] is not None for n in self._doubles]
        for n, places in self._places.items():
            if row[n] is not None:
                keys[n], present[n] = places[row[n]], 1
        for n, of in self._decimals.items():
            if row[n] is not None:
                keys[n], present[n] = decimal_key(row[n], of), 1
        return keys, present


def getter(positions: list[int]) -> Any:
    """A function from a row to the values at some positions; None if there are no positions."""
    if len(positions) == 1:
        only = positions[0]
        return lambda row: (row[only],)
    return itemgetter(*positions) if positions else None
