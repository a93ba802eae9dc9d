"""The moment at which events arrive: what ``now()`` is while they are matched.

It is given once for all events of a call and all filters, so none of them sees time pass. Whoever
matches says which moment it is (`arriving`); threads that match at the same time have their own.
"""

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

_here = threading.local()


def arrival() -> int:
    """The moment at which events arrive, in microseconds since 1970; the present if none is set."""
    given: int | None = getattr(_here, "moment", None)
    return present_moment() if given is None else given


def present_moment() -> int:
    """The present, in microseconds since 1970."""
    return time.time_ns() // 1000


class arriving:  # noqa: N801 - a context manager, faster than one made of a generator
    """Let events arrive at a moment."""

    __slots__ = ("_before", "_moment")

    def __init__(self, moment: int) -> None:
        self._moment = moment
        self._before: int | None = None

    def __enter__(self) -> None:
        self._before = getattr(_here, "moment", None)
        _here.moment = self._moment

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _here.moment = self._before


def each_arriving(moment: int, items: Iterator[T]) -> Iterator[T]:
    """Items that are made while events arrive at a moment, but not what is done with them."""
    while True:
        with arriving(moment):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
