"""The engines of tamis, used through `Matcher`."""

from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.events.event_reader import Row
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]


class Tamis:
    """A matcher; it reads filters as texts from an Arrow table of ids and filters."""

    engine = "auto"

    def __init__(self, source: Workload) -> None:
        self.matcher = tamis.Matcher(source.schema, engine=self.engine)
        self._subscriptions = pa.table({"id": [], "filter": []})

    def read(self, subscriptions: pa.Table) -> None:
        self._subscriptions = subscriptions

    def build(self) -> None:
        """Subscribe, and match one event: some engines compile at the first match."""
        self.matcher.subscribe_many(self._subscriptions)
        self.matcher.match({})

    def count(self, events: pa.Table) -> Array:
        return np.asarray(self.matcher.match_batch(events, output="counts")["count"])

    def pairs(self, events: pa.Table) -> pa.Table:
        return self.matcher.match_batch(events, output="pairs")

    def bytes(self) -> int | None:
        """The bytes of the engine itself, if it reports them; ids and texts are the matcher's."""
        return self.statistics().get("bytes")

    def close(self) -> None:
        """Nothing to release."""

    def statistics(self) -> dict[str, int]:
        return self.matcher._held.engine.statistics()  # noqa: SLF001 - the engine alone

    def rows(self, events: pa.Table) -> list[Row]:
        """Events as rows, as engines take them one at a time."""
        made = self.matcher
        return [made.meaning.prepare(made.reader.row(event)) for event in events.to_pylist()]

    def match_row(self, row: Row) -> Any:
        """One event by the engine alone: handles, not ids."""
        return self.matcher._held.engine.match(row)  # noqa: SLF001 - what is to be measured


def tamis_with(name: str) -> type[Tamis]:
    """A contestant that takes part with one engine."""
    return type(f"Tamis_{name}", (Tamis,), {"engine": name})
