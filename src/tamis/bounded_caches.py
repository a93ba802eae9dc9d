"""Caches that are bounded by the memory they hold, not by the number of their entries.

What is remembered about filters and values is as large as these are, and whoever sends them decides
how large that is: a hundred thousand entries may be ten megabytes or ten gigabytes.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")

ENTRY = 150  # bytes of an entry besides its key and its value: their references, and the hash table
MOST_BYTES = 16_000_000  # of the answers of one function, unless it says otherwise
_NOTHING: Any = object()


class BoundedCache(dict[K, V], Generic[K, V]):
    """Values by key, made when first asked for; the oldest go before there are too many bytes.

    There are two generations. When the younger one has half of the bytes it takes the place of the
    older one, which is forgotten. A value that is asked for again moves to the younger one. Threads
    may use a cache together: at worst, something is made twice.
    """

    least: ClassVar[int] = ENTRY  # bytes that every entry takes; `size` is never less

    def __init__(self, most: int = MOST_BYTES) -> None:
        super().__init__()
        self._half = most // 2
        self._older: dict[K, V] = {}
        self._held_before = 0  # bytes of the older generation
        self._extra = 0  # bytes of the younger one, besides the least that its entries take
        self._room = self._half // self.least  # entries of the younger one that take no more

    @property
    def nbytes(self) -> int:
        """About how much memory the cache takes."""
        return self.least * len(self) + self._extra + self._held_before

    def make(self, key: K) -> V:
        """The value of a key that is not here: none, in a cache that only `keep` fills."""
        raise KeyError(key)

    def size(self, key: K, value: V) -> int:
        """About how many bytes an entry takes."""
        return self.least + bytes_of(key) + bytes_of(value)

    def __missing__(self, key: K) -> V:
        value: Any = self._older.get(key, _NOTHING)
        if value is _NOTHING:
            value = self.make(key)
        self.keep(key, value)
        return value  # type: ignore[no-any-return]  # a value of the older ones, or just made

    def find(self, key: K) -> V | None:
        """The value of a key if it is here."""
        value = self.get(key)
        if value is None:
            value = self._older.get(key)
            if value is not None:
                self.keep(key, value)
        return value

    def keep(self, key: K, value: V) -> None:
        """Remember a value, unless it would take half of the cache."""
        size = self.size(key, value)
        if size > self._half:
            return
        held = self.least * len(self) + self._extra
        if held + size > self._half:
            self._older, self._held_before = dict(self), held
            super().clear()
            self._extra = 0
        self._extra += size - self.least
        self._room = (self._half - self._extra) // self.least
        self[key] = value

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._older = {}
        self._held_before = self._extra = 0
        self._room = self._half // self.least


def remembered(most: int = MOST_BYTES) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Let a function remember its answers, up to a number of bytes; its arguments are hashable."""

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        answers = _Answers(function, most)

        @functools.wraps(function)
        def remembering(*args: P.args, **named: P.kwargs) -> V:
            found: V = answers[args, tuple(named.items())] if named else answers[args, ()]
            return found

        return remembering

    return decorate


class _Answers(BoundedCache[Any, Any]):
    """The answers of a function by its arguments."""

    def __init__(self, function: Callable[..., Any], most: int) -> None:
        super().__init__(most)
        self._function = function

    def make(self, key: Any) -> Any:
        return self._function(*key[0], **dict(key[1]))


def bytes_of(value: Any) -> int:
    """About how much memory a value takes.

    Arrays, and nodes and sets of values, know it themselves (`nbytes`). What is not a string, a
    number or a collection of these is taken for something that others hold anyway.
    """
    known = getattr(value, "nbytes", None)
    if known is not None:
        return int(known)
    size = sys.getsizeof(value)
    if isinstance(value, tuple | list | frozenset | set):
        size += sum(map(bytes_of, value))
    return size
