"""The compiled filters of `auto` and `sliced`, for code that stores or inspects them.

Other packages use compiled filters only through this module: the arrays, their layout and the
engine that runs them stay inside `engines/`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamis.container import checked_array
from tamis.engines.auto import AutoEngine
from tamis.engines.sliced import SlicedEngine, segment_sections
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_checks import ensure, is_within
from tamis.engines.sliced.segment_sections import SectionSource
from tamis.engines.sliced.wider_schema import widened
from tamis.errors import OptionError
from tamis.language.ast import attributes
from tamis.language.expression import Expression
from tamis.names import path_text
from tamis.schema import Schema
from tamis.semantics import Semantics

__all__ = [
    "CompiledFilters", "SectionSource", "compiling", "from_sections", "held", "hold",
    "in_schema", "tested_attributes", "to_sections",
]  # fmt: skip

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CompiledFilters:
    """Filters by their handles: a compiled segment, and those that need no predicate."""

    segment: Segment | None
    always: dict[int, bool]  # filters without predicates, and whether they are true

    def __len__(self) -> int:
        return len(self.always) + (0 if self.segment is None else len(self.segment))

    def moved(self, by: int) -> "CompiledFilters":
        """The same filters under handles that are greater by a number."""
        segment = None if self.segment is None else self.segment.moved(by)
        return CompiledFilters(segment, {by + h: answer for h, answer in self.always.items()})

    def under(self, handles: Array) -> "CompiledFilters":
        """The same filters under their places among `handles`, which are ascending."""
        places = {int(np.searchsorted(handles, h)): answer for h, answer in self.always.items()}
        if self.segment is None:
            return CompiledFilters(None, places)
        return CompiledFilters(
            self.segment.under(np.searchsorted(handles, self.segment.handles)), places
        )


def compiling(engine: Any) -> SlicedEngine:
    """The engine that holds compiled filters; an error if there is none."""
    if isinstance(engine, AutoEngine):
        return engine.compile()
    if isinstance(engine, SlicedEngine):
        return engine
    raise OptionError(
        "only matchers with the engine auto or sliced can be saved to a file, "
        f"not those with {engine.name}"
    )


def tested_attributes(engine: Any, schema: Schema) -> set[str]:
    """The names of the attributes that some filter tests; nothing must change meanwhile."""
    _, segment = compiling(engine).whole()
    if segment is None:
        return set()
    plain = segment.used[segment.used < len(schema)]
    found = {schema.attributes[place].name for place in plain.tolist()}
    for test in (*segment.predicates.tests, *segment.predicates.terms):
        found |= {path_text(path) for path in attributes(test)}
    return found


def held(engine: Any) -> CompiledFilters:
    """All filters of an engine, compiled; nothing must change meanwhile."""
    always, segment = compiling(engine).whole()
    return CompiledFilters(segment, always)


def in_schema(
    engine: Any, filters: CompiledFilters, narrow: Schema, wide: Schema
) -> CompiledFilters:
    """The same filters for an engine whose schema has all attributes of theirs, and more."""
    if filters.segment is None or narrow == wide:
        return filters
    profile = compiling(engine).profile
    return CompiledFilters(widened(filters.segment, narrow, wide, profile), filters.always)


def hold(engine: Any, filters: CompiledFilters, replaced: Iterable[int] = ()) -> None:
    """Add compiled filters to an engine; the old filters of `replaced` handles go."""
    compiling(engine).hold_bulk(filters.segment, filters.always, replaced)


# --- files


def to_sections(
    engine: Any, handles: Array, expression_of: Callable[[int], Expression], semantics: Semantics
) -> tuple[dict[str, Any] | None, dict[str, Array]]:
    """All filters of an engine as metadata and arrays for a file.

    `handles` are those of all filters, ascending; in the file they become 0, 1, 2, ...
    """
    always, segment = compiling(engine).whole()
    places = np.searchsorted(handles, np.array(list(always), np.int64))
    sections: dict[str, Array] = {
        "always.handles": places.astype(np.int64),
        "always.answers": np.array(list(always.values()), np.uint8),
    }
    if segment is None:
        return None, sections
    numbers = np.searchsorted(handles, segment.handles).astype(np.int32)
    stored = segment_sections.to_sections(segment, numbers, expression_of, semantics)
    sections |= {f"segment.{name}": array for name, array in stored.sections.items()}
    return stored.meta, sections


def from_sections(
    meta: Mapping[str, Any] | None, source: SectionSource, semantics: Semantics
) -> CompiledFilters:
    """What `to_sections` gave, under handles 0, 1, 2, ...; the arrays are used where they lie.

    Unless the source is trusted, every index is compared with what it indexes first.
    """
    if not isinstance(meta, Mapping | None):
        raise TypeError("the segment is not a record")
    segment = None
    if meta is not None:
        own = replace(source, get=lambda name: source.get(f"segment.{name}"))
        segment = segment_sections.from_sections(meta, own, semantics)
    handles = checked_array(source.get, "always.handles", ("i8",))
    answers = checked_array(source.get, "always.answers", ("u1",), len(handles))
    always = dict(zip(handles.tolist(), answers.astype(bool).tolist(), strict=True))
    found = CompiledFilters(segment, always)
    if not source.is_trusted:
        _check_handles(found, source.count)
    return found


def _check_handles(filters: CompiledFilters, count: int) -> None:
    """Every handle below `count` has one filter."""
    taken = np.zeros(count, np.bool_)
    always = np.array(list(filters.always), np.int64)
    ensure(is_within(always, count) and len(filters) == count, "handles")
    taken[always] = True
    if filters.segment is not None:
        taken[filters.segment.handles] = True
    ensure(taken.all(), "handles")
