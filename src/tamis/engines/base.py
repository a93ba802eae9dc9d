"""What an engine is."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from tamis.events import Row
from tamis.language.expression import Expression
from tamis.semantics import Semantics


class Engine(Protocol):
    """Holds filters under integer handles, and finds those that are true of an event.

    A handle is chosen by the caller and stands for one filter at a time. Rows come from
    `Semantics.prepare`. An engine gives exactly the answers of `NaiveEngine`, and raises only on
    wrong use: filters were checked before, and rows too.

    Implementers: `naive.NaiveEngine`.
    """

    name: str

    def __init__(self, semantics: Semantics) -> None: ...

    def add(self, handle: int, expression: Expression) -> None:
        """Hold a filter under a handle that is free."""

    def remove(self, handle: int) -> None:
        """Drop the filter of a handle that is taken."""

    def match(self, row: Row) -> list[int]:
        """The handles of all filters that the row matches, each once, in ascending order."""

    def match_many(self, rows: Sequence[Row]) -> Iterator[list[int]]:
        """`match` for each row."""
