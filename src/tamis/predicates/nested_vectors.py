"""What is computed from arrays and maps, for many events at once.

An array of each event is a vector of all elements, with an *owner* for each of them: the event it
belongs to.
"""

from typing import Any

import numpy as np

from tamis.predicates.vectors import NoColumn, Vector, comparable
from tamis.types import DOUBLE, Type

Array = np.ndarray[Any, Any]


def offsets_of(vector: Vector) -> Array:
    """Where the elements of each event begin."""
    if vector.offsets is None:
        raise NoColumn
    return vector.offsets


def owners_of(offsets: Array) -> Array:
    """owners[element]: the event that it belongs to."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def sizes(vector: Vector) -> Array:
    """How many elements each event has."""
    found: Array = np.diff(offsets_of(vector))
    return found


def some(mask: Array, owners: Array, size: int) -> Array:
    """Whether each event has an element for which a mask is true."""
    found = np.zeros(size, np.bool_)
    found[owners[mask]] = True
    return found


def without_nulls(vector: Vector) -> Array:
    """Whether each event has an array, and no null in it."""
    offsets = offsets_of(vector)
    nulls = some(~vector.parts[0].present, owners_of(offsets), len(offsets) - 1)
    found: Array = vector.present & ~nulls
    return found


def elements_at(vector: Vector, places: Vector, *, from_one: bool) -> Vector:
    """The element at a place, which counts from 0, or else from 1 and, negative, from the end."""
    offsets, length, place = offsets_of(vector), sizes(vector), places.values
    if from_one:
        place = np.where(place > 0, place - 1, np.where(place < 0, place + length, -1))
    inside = vector.present & places.present & (place >= 0) & (place < length)
    return _picked(vector.parts[0], np.where(inside, offsets[:-1] + place, 0), inside)


def _picked(part: Vector, at: Array, inside: Array) -> Vector:
    if not len(part.values):
        zeros = np.zeros(len(at), part.values.dtype)
        return Vector(np.zeros(len(at), np.bool_), zeros, part.texts)
    return Vector(inside & part.present[at], part.values[at], part.texts)


class MapKeys:
    """The keys of the maps of many events, grouped: each key finds the maps that have it."""

    def __init__(self, vector: Vector) -> None:
        keys = vector.parts[0]
        self._vector = vector
        self._owners = owners_of(offsets_of(vector))
        self._order = np.argsort(keys.values, kind="stable")
        self._bounds = np.searchsorted(
            keys.values[self._order], np.arange(len(keys.texts or ()) + 1)
        )
        self._codes = {text: code for code, text in enumerate(keys.texts or ())}

    def values_of(self, key: str) -> Vector:
        """The value of a key for each event, missing where a map does not have it."""
        at = self._places(key)
        size = len(self._vector.present)
        inside, places = np.zeros(size, np.bool_), np.zeros(size, np.int64)
        inside[self._owners[at]], places[self._owners[at]] = True, at
        return _picked(self._vector.parts[1], places, inside)

    def has(self, key: str) -> Vector:
        """Whether the map of each event has a key."""
        found = np.zeros(len(self._vector.present), np.bool_)
        found[self._owners[self._places(key)]] = True
        return Vector(self._vector.present, found)

    def _places(self, key: str) -> Array:
        code = self._codes.get(key)
        if code is None:
            return np.empty(0, np.int64)
        return self._order[self._bounds[code] : self._bounds[code + 1]]


def containing(vector: Vector, wanted: Vector, of: Type) -> Vector:
    """Whether the array of each event has a value; null if it has not, but has a null."""
    offsets = offsets_of(vector)
    owners, (inner,) = owners_of(offsets), vector.parts
    value = wanted if wanted.values.ndim == 0 else wanted._replace(values=wanted.values[owners])
    x, y = comparable(inner, value, of)
    found = some((x == y) & inner.present, owners, len(offsets) - 1)
    nulls = some(~inner.present, owners, len(offsets) - 1)
    return Vector(vector.present & wanted.present & (found | ~nulls), found)


def overlapping(a: Vector, b: Vector, of: Type) -> Vector:
    """Whether the arrays of each event have an element in common, which is not null."""
    size = len(offsets_of(a)) - 1
    x, y = comparable(a.parts[0], b.parts[0], of)
    _, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    room = int(codes.max(initial=0)) + 1
    mine, theirs = owners_of(offsets_of(a)), owners_of(offsets_of(b))
    # A pair of an event and an element is one number: both are less than 2**31.
    one, other = mine * room + codes[: len(x)], theirs * room + codes[len(x) :]
    shared = np.isin(one, other[b.parts[0].present]) & a.parts[0].present
    found = some(shared, mine, size)
    nulls = some(~a.parts[0].present, mine, size) | some(~b.parts[0].present, theirs, size)
    open_ = nulls & (sizes(a) > 0) & (sizes(b) > 0)
    return Vector(a.present & b.present & (found | ~open_), found)


def quantified(array: Vector, truth: Vector, *, decisive: bool) -> Vector:
    """Whether some element passes a test, or all do; truth[element] is what the test says."""
    offsets = offsets_of(array)
    owners, size = owners_of(offsets), len(offsets) - 1
    present = np.broadcast_to(truth.present, len(owners))
    values = np.broadcast_to(truth.values, len(owners))
    decided = some(present & (values == decisive), owners, size)
    unknown = some(~present, owners, size)
    known = array.present & (decided | ~unknown)
    return Vector(known, decided if decisive else ~decided)


def distinct_elements(part: Vector, of: Type) -> tuple[Vector, Array]:
    """The distinct values of elements, the last one missing, and the place of each element."""
    if part.texts is not None:
        count = len(part.texts)
        values = np.append(np.arange(count), 0)
        codes = np.where(part.present, part.values, count)
    else:
        bits = part.values.view(np.int64) if of == DOUBLE else part.values  # tells 0.0 from -0.0
        found, codes = np.unique(bits, return_inverse=True)
        count = len(found)
        values = np.append(found, found[:1] if count else np.zeros(1, found.dtype))
        values = values.view(np.float64) if of == DOUBLE else values
        codes = np.where(part.present, codes.reshape(-1), count)
    present = np.append(np.ones(count, np.bool_), False)
    return Vector(present, values, part.texts), codes
