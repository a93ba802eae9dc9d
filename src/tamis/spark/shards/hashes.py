"""Hashes of values and ids that are the same in every process, unlike those of Python."""

import zlib
from typing import Any

import numpy as np

from tamis.bounded_caches import BoundedCache
from tamis.predicates.event_batches import Column
from tamis.predicates.keys import Keys
from tamis.schema import Schema

Array = np.ndarray[Any, Any]

REMEMBERED = 128_000_000  # bytes of values of filters, and of their hashes
_MASK = 2**64 - 1


class ValueHashes:
    """Hashes of values, from filters and from events."""

    def __init__(self, schema: Schema) -> None:
        self._keys = Keys(schema)
        self._known: BoundedCache[tuple[int, Any], int] = BoundedCache(REMEMBERED)

    def value(self, attribute: int, value: Any) -> int:
        """The hash of a value that a filter requires."""
        found = self._known.find((attribute, value))
        if found is None:
            if self._keys.has(attribute):
                number = self._keys.of_one(attribute)(value)
            else:
                number = _text_number(value)
            found = mixed_one(number)
            self._known.keep((attribute, value), found)
        return found

    def column(self, attribute: int, column: Column) -> Array:
        """The hashes of the values of events; they mean nothing where a value is missing."""
        if column.distinct is None or self._keys.has(attribute):
            return mixed(column.keys.astype(np.int64).view(np.uint64))
        texts = column.distinct.to_pylist()
        numbers = np.fromiter(map(_text_number, texts), np.uint64, len(texts))
        return mixed(numbers if len(numbers) else np.zeros(1, np.uint64))[column.keys]


def id_hash(subscription: str | int) -> int:
    """The hash of the id of a subscription."""
    if isinstance(subscription, str):
        return mixed_one(_text_number(subscription))
    return mixed_one(subscription)


def _text_number(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def mixed(numbers: Array) -> Array:
    """Numbers whose bits all depend on all bits of the given ones (splitmix64)."""
    x = numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Array = x ^ (x >> np.uint64(31))
    return found


def mixed_one(number: int) -> int:
    """`mixed` for one number."""
    x = (number + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
