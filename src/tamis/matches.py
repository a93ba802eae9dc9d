"""Matches beside the events that were left out: the answer of ``on_bad="skip"``."""

from typing import Any

import pyarrow as pa

from tamis.dead_letters import DeadLetter


class Matches:
    """A table of matches, and the bad rows among the events.

    `table` is the `pyarrow.Table`, and everything that it has is here as well: columns by name,
    ``num_rows``, ``to_pylist()``, ``to_pandas()``; what speaks Arrow takes it as it is. `bad` has a
    `DeadLetter` for each event that was left out: its ``row``, its ``id`` if events have ids, the
    ``reason``, and the event itself, shortened, as ``value``.
    """

    __slots__ = ("bad", "table")

    def __init__(self, table: pa.Table, bad: list[DeadLetter]) -> None:
        self.table = table
        self.bad = bad

    def __getattr__(self, name: str) -> Any:
        if name in Matches.__slots__:  # not set yet, while it is unpickled
            raise AttributeError(name)
        return getattr(self.table, name)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __len__(self) -> int:
        return len(self.table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Matches):
            return bool(self.table == other.table) and self.bad == other.bad
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a table has none

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.table)})

    def __reduce__(self) -> tuple[Any, ...]:
        return Matches, (self.table, self.bad)

    def __repr__(self) -> str:
        return f"{self.table!r}\nbad: {len(self.bad):,}"
