"""A segment as named arrays, for files; when read back, the arrays are used in place."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tamis.container import checked_array, misfit
from tamis.engines.sliced.leaves import leaves_of
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_predicates import FlatCuts, SegmentPredicates, Sets
from tamis.kernels.programs import Programs
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import REF_KINDS
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics

Array = np.ndarray[Any, Any]
Get = Callable[[str], Array]

LAYOUT = 1  # version of these arrays; no other version can be read


class SegmentSections(NamedTuple):
    """A segment as it is stored in a file."""

    meta: dict[str, Any]
    sections: dict[str, Array]


def to_sections(
    segment: Segment, handles: Array, expression_of: Callable[[int], Expression],
    semantics: Semantics,
) -> SegmentSections:  # fmt: skip
    """The arrays of a segment from which nothing was removed; `handles` are new ones, by slot."""
    predicates = segment.predicates
    sections: dict[str, Array] = {
        f"programs.{name}": array for name, array in segment.programs._asdict().items()
    }
    sections |= {f"cuts.{name}": array for name, array in predicates.flat._asdict().items()}
    for which, sets in (("in", predicates.local_in_sets), ("out", predicates.local_out_sets)):
        sections |= {f"{which}.{name}": array for name, array in sets._asdict().items()}
    sections["handles"] = handles
    sections["masks"] = segment.masks
    sections["tests.attributes"] = np.array(predicates.test_attributes, np.int32)
    sections["tests.sources"] = _sources(segment, handles, expression_of, semantics)
    return SegmentSections({"layout": LAYOUT, "shapes": list(segment.shapes)}, sections)


def from_sections(
    meta: Mapping[str, Any], get: Get, expression_of: Callable[[int], Expression],
    semantics: Semantics,
) -> Segment:  # fmt: skip
    """The segment of some arrays; its tests are made from their filters when first needed."""
    if meta.get("layout") != LAYOUT:
        raise misfit("layout")
    schema = semantics.schema
    flat = FlatCuts(*(get(f"cuts.{name}") for name in FlatCuts._fields))
    programs = Programs(*(get(f"programs.{name}") for name in Programs._fields))
    in_sets, out_sets = (
        Sets(*(get(f"{which}.{name}") for name in Sets._fields)) for which in ("in", "out")
    )
    handles = get("handles")
    sources = checked_array(get, "tests.sources", ("i8",))
    if flat.at.shape != (2, len(schema)) or len(programs.slots) != len(handles):
        raise misfit("programs")
    if len(programs.refs) < LANES or programs.refs.dtype != np.int32:
        raise misfit("programs.refs")

    def tests() -> tuple[Node, ...]:
        found = []
        for handle, place in sources.reshape(-1, 2).tolist():
            leaves = leaves_of(expression_of(handle), semantics)
            found.append(leaves.constants[place])
        return tuple(found)

    attributes = checked_array(get, "tests.attributes", ("i4",)).tolist()
    keys = Keys(schema)
    is_text = [not keys.has(attribute) for attribute in range(len(schema))]
    predicates = SegmentPredicates(flat, is_text, in_sets, out_sets, attributes, tests)
    shapes = tuple(meta["shapes"])
    return Segment(predicates, programs, handles, get("masks"), shapes)


def _sources(
    segment: Segment, handles: Array, expression_of: Callable[[int], Expression],
    semantics: Semantics,
) -> Array:  # fmt: skip
    """For each test, the handle of a filter with it and its place among the filter's leaves."""
    predicates = segment.predicates
    found = np.full((len(predicates.test_attributes), 2), -1, np.int64)
    if not predicates.test_attributes:
        return found.reshape(-1)
    first = predicates.base + predicates.first_test
    by_slot = segment.handles
    for table in segment.filters().tables.values():
        numbers = table.refs // REF_KINDS - first
        rows, columns = np.nonzero((numbers >= 0) & (numbers < len(predicates.tests)))
        tests, places = np.unique(numbers[rows, columns], return_index=True)
        found[tests, 0] = table.handles[rows[places]]
    for number, test in enumerate(predicates.tests):
        handle = int(found[number, 0])
        leaves = leaves_of(expression_of(handle), semantics)
        found[number, 1] = leaves.constants.index(test)
        found[number, 0] = handles[int(np.searchsorted(by_slot, handle))]
    return found.reshape(-1)
