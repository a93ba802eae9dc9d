"""The contract of engines."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.semantics import Semantics

if TYPE_CHECKING:  # numba is heavy
    from tamis.kernels.handles import Handles
    from tamis.predicates.event_batches import Batch


@dataclass(frozen=True)
class Options:
    """The settings of an engine, each with a default; this base class has none."""


class Engine(Protocol):
    """Holds filters under integer handles, and finds those that are true of an event.

    A handle is chosen by the caller and stands for one filter at a time. Rows come from
    `Semantics.prepare`. An engine gives exactly the answers of `NaiveEngine`.

    Filters are checked before they come here. Only two things may still fail, and neither changes
    anything: `prepare` (`LimitError`: the engine cannot hold such a filter) and `add`
    (`CapacityError`: the engine is full).

    Implementers: `naive.NaiveEngine`, `conjunction_engine.ConjunctionEngine` (counting, tree,
    database), `diagram_engine.DiagramEngine` (bdd, mbd), `sliced.SlicedEngine`, `auto.AutoEngine`.
    """

    name: str
    options_class: ClassVar[type[Options]]  # the class of its options

    def __init__(self, semantics: Semantics, options: Any) -> None: ...

    def prepare(self, expression: Expression) -> Any:
        """A filter in the form that `add` takes."""

    def add(self, handle: int, prepared: Any) -> None:
        """Hold a prepared filter under a handle that is free."""

    def remove(self, handle: int) -> None:
        """Drop the filter of a handle that is taken."""

    def match(self, row: Row) -> "Handles":
        """The handles of all filters that the row matches, each once, in ascending order."""

    def match_many(self, rows: Sequence[Row]) -> "Iterator[Handles]":
        """`match` for each row."""

    def statistics(self) -> dict[str, int]:
        """Sizes, for explanations and measurements; all are 0 when nothing is held."""


class Bulk(Protocol):
    """Many filters that are held all at once, or never.

    Implementers: `sliced.SlicedBulk`, `auto.AutoBulk`.
    """

    def put(self, handle: int, prepared: Any) -> None:
        """Add a prepared filter under a handle, which may come only once; nothing is held yet."""

    def finish(self) -> None:
        """Do everything that takes long; nothing is held yet."""

    def commit(self, replaced: Iterable[int]) -> None:
        """Hold all filters; those that the `replaced` handles held before are dropped."""


@runtime_checkable
class BatchEngine(Protocol):
    """An engine that takes many events at once, in columns, from any number of threads.

    A match takes a snapshot of what is held, and does not see later changes. Changes and matches
    wait for each other only while the snapshot is taken.

    Implementers: `auto.AutoEngine`, `sliced.SlicedEngine`.
    """

    name: str
    memory: int  # bytes that the matches of one batch may take
    lock: threading.RLock  # held while anything changes; holding it makes several changes one

    def prepare(self, expression: Expression) -> Any:
        """As `Engine.prepare`."""

    def bulk(self, size: int) -> Bulk:
        """Begin to add about `size` filters."""

    def remove_many(self, handles: "Handles") -> None:
        """Drop the filters of distinct handles that are taken, all at once."""

    def snapshot(self, events: int) -> Any:
        """What is held now, for a later match of about `events` events."""

    def match_at(self, snapshot: Any, row: Row) -> "Handles":
        """`Engine.match` with what was held when a snapshot was taken; nothing is tidied up."""

    def match_batch(
        self, batch: "Batch", rows: Sequence[Row] | None = None, snapshot: Any = None
    ) -> "Iterator[tuple[Handles, Handles]]":
        """The matches piece by piece: counts[event], and the handles, event after event.

        The handles of each event are ascending. `rows` are the same events as rows, if at hand;
        without a `snapshot`, one is taken.
        """

    def count_batch(self, batch: "Batch", rows: Sequence[Row] | None = None) -> "Handles":
        """counts[event], without any list of matches."""
