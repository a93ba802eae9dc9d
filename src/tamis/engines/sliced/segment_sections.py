"""A segment as named arrays, for files; when read back, the arrays are used in place."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tamis.container import checked_array, misfit
from tamis.engines.sliced.layout import Layout, WidthArrays, width_arrays
from tamis.engines.sliced.leaves import LEAF_KINDS, TEST, Leaves, leaves_of, term_of_leaf
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_checks import (
    check_cuts,
    check_programs,
    check_sets,
    check_steps,
    check_widths,
    ensure,
    is_rising,
    is_within,
)
from tamis.engines.sliced.segment_predicates import SegmentPredicates, Sets
from tamis.kernels.event_truth import FlatCuts
from tamis.kernels.formula_steps import FormulaSteps
from tamis.kernels.programs import Programs
from tamis.kernels.value_classes import REF_KINDS
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics
from tamis.types import STRING

Array = np.ndarray[Any, Any]
Get = Callable[[str], Array]

LAYOUT = 4  # version of these arrays; no other version can be read

# The arrays of the file with their types; all have one dimension but those of `_TABLES`.
_TYPES = {
    "programs.subs": "i8", "programs.refs": "i4", "programs.named": "i4",
    "programs.chunk_subs": "i4", "programs.chunk_bounds": "i8", "programs.signatures": "i4",
    "programs.shared": "u1", "programs.access": "i4", "programs.access_chunks": "i4",
    "programs.access_shapes": "i4", "programs.slots": "i4",
    "steps.tested": "i4", "steps.steps_at": "i8", "steps.gates": "i4",
    "steps.operands": "i4", "steps.targets": "i2",
    "cuts.at": "i8", "cuts.keys": "i8", "cuts.offsets": "i8", "cuts.data": "u1",
    "in.attributes": "i4", "in.at": "i8", "in.members": "i4",
    "out.attributes": "i4", "out.at": "i8", "out.members": "i4",
    "handles": "i4", "masks": "i8", "tests.attributes": "i4", "tests.sources": "i8",
    "terms.texts": "u1", "terms.sources": "i8",
}  # fmt: skip
_TABLES = {"programs.chunk_bounds", "cuts.at", "steps.operands"}


@dataclass(frozen=True)
class SectionSource:
    """The file that compiled filters come from."""

    get: Get
    count: int  # of all filters; their handles are 0, 1, 2, ...
    expression_of: Callable[[int], Expression]  # by handle
    reading: Callable[[], AbstractContextManager[None]]  # names the file in later errors
    is_trusted: bool  # whether arrays need no check, because whoever reads them has written them


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
    parts: dict[str, Any] = {
        "programs": segment.programs, "steps": segment.steps, "cuts": predicates.flat,
        "in": predicates.local_in_sets, "out": predicates.local_out_sets,
    }  # fmt: skip
    sections: dict[str, Array] = {
        f"{part}.{name}": array
        for part, arrays in parts.items()
        for name, array in arrays._asdict().items()
        if name not in WidthArrays._fields  # they follow from the widths
    }
    sections["handles"] = handles
    sections["masks"] = segment.masks
    sections["tests.attributes"] = np.array(predicates.test_attributes, np.int32)
    sections["tests.sources"] = _sources(segment, handles, expression_of, semantics)
    texts = [term.type == STRING for term in predicates.terms]
    sections["terms.texts"] = np.array(texts, np.uint8)
    sections["terms.sources"] = _term_sources(segment, handles, expression_of, semantics)
    return SegmentSections({"layout": LAYOUT, "widths": list(segment.widths)}, sections)


def from_sections(meta: Mapping[str, Any], source: SectionSource, semantics: Semantics) -> Segment:
    """The segment of some arrays, which are checked first (`segment_checks`) unless trusted.

    Its tests are made from their filters when first needed.
    """
    is_trusted, count = source.is_trusted, source.count
    if meta.get("layout") != LAYOUT:
        raise misfit("layout")
    if not is_trusted:
        check_widths(meta["widths"])
    widths = tuple(meta["widths"])
    arrays = {name: _array(source.get, name) for name in _TYPES}

    def fields(part: str, kind: Any) -> dict[str, Array]:
        names = (name for name in kind._fields if f"{part}.{name}" in arrays)
        return {name: arrays[f"{part}.{name}"] for name in names}

    schema, keys = semantics.schema, Keys(semantics.schema)
    texts, term_sources = arrays["terms.texts"], arrays["terms.sources"]
    is_text = [not keys.has(attribute) for attribute in range(len(schema))]
    is_text += texts.astype(np.bool_).tolist()
    flat = FlatCuts(**fields("cuts", FlatCuts))
    in_sets, out_sets = Sets(**fields("in", Sets)), Sets(**fields("out", Sets))
    subs, handles = arrays["programs.subs"], arrays["handles"]
    test_attributes, sources = arrays["tests.attributes"], arrays["tests.sources"]
    ensure(flat.at.shape == (2, len(is_text)), "cuts.at")
    steps = FormulaSteps(**fields("steps", FormulaSteps))
    shapes = len(widths) + (len(steps.targets) > 0)
    ensure(len(subs) == shapes + 1 and len(handles), "programs.subs")
    if not is_trusted:
        check_cuts(flat, schema, is_text)
        sizes = np.diff(flat.at, axis=0)[0] - np.array(is_text, np.int64)
        check_sets(in_sets, sizes, "in", by_attribute=False)
        check_sets(out_sets, sizes, "out", by_attribute=True)
        _check_tests(test_attributes, sources, len(is_text), count)
        _check_sources(term_sources, len(texts), count, "terms.sources")
        ensure(is_rising(handles) and is_within(handles, count), "handles")
    predicates = SegmentPredicates(
        flat, is_text, in_sets, out_sets, test_attributes.tolist(),
        _test_maker(sources, test_attributes, source, semantics),
        _term_maker(term_sources, texts, source, semantics),
    )  # fmt: skip
    programs = Programs(**fields("programs", Programs), **width_arrays(widths, subs)._asdict())
    ensure(len(programs.slots) == len(handles), "programs.slots")
    if not is_trusted:
        check_programs(programs, steps, predicates, arrays["masks"])
        check_steps(programs, steps)
    return Segment(predicates, Layout(programs, steps, handles, arrays["masks"]))


def _array(get: Get, name: str) -> Array:
    """A section of the right type."""
    if name not in _TABLES:
        return checked_array(get, name, (_TYPES[name],))
    array = get(name)
    ensure(array.dtype.str[1:] == _TYPES[name] and array.ndim == 2, name)
    return array


# --- tests


def _check_tests(attributes: Array, sources: Array, size: int, count: int) -> None:
    """Tests belong to one of `size` attributes or to several, and come from one of the filters."""
    ensure(is_within(attributes, size + 1), "tests.attributes")
    _check_sources(sources, len(attributes), count, "tests.sources")


def _check_sources(sources: Array, size: int, count: int, name: str) -> None:
    """Something comes from one of `count` filters."""
    ensure(len(sources) == 2 * size, name)
    ensure(is_within(sources[::2], count) and (sources >= 0).all(), name)


def _leaves_at(
    sources: Array, source: SectionSource, semantics: Semantics, name: str
) -> list[tuple[int, Any]]:
    """Code and constant of the leaves at some places of filters.

    A filter that has many of them is read once.
    """
    found: dict[int, tuple[int, Any]] = {}
    handles, places = sources[::2], sources[1::2].tolist()
    last, leaves = -1, Leaves("", (), ())
    with source.reading():
        for number in np.argsort(handles, kind="stable").tolist():
            handle, place = int(handles[number]), places[number]
            if handle != last:
                last, leaves = handle, leaves_of(source.expression_of(handle), semantics)
            ensure(place < len(leaves.codes), name)
            found[number] = leaves.codes[place], leaves.constants[place]
    return [found[number] for number in range(len(found))]


def _test_maker(
    sources: Array, attributes: Array, source: SectionSource, semantics: Semantics
) -> Callable[[], tuple[Node, ...]]:
    """A function that makes the tests."""
    size = len(semantics.schema)

    def tests() -> tuple[Node, ...]:
        found = _leaves_at(sources, source, semantics, "tests.sources")
        for attribute, (code, _) in zip(attributes.tolist(), found, strict=True):
            ensure(code % LEAF_KINDS == TEST, "tests.sources")
            # That of a term has its filter under the attributes that the term is computed from.
            ensure(attribute >= size or code // LEAF_KINDS == attribute, "tests.sources")
        return tuple(test for _, test in found)

    return tests


def _term_maker(
    sources: Array, texts: Array, source: SectionSource, semantics: Semantics
) -> Callable[[], tuple[Node, ...]]:
    """A function that makes the terms."""

    def terms() -> tuple[Node, ...]:
        found = []
        leaves = _leaves_at(sources, source, semantics, "terms.sources")
        for is_text, (code, constant) in zip(texts.tolist(), leaves, strict=True):
            term = term_of_leaf(code, constant, semantics.schema)
            ensure(term is not None and (term.type == STRING) == bool(is_text), "terms.sources")
            found.append(term)
        return tuple(term for term in found if term is not None)

    return terms


def _term_sources(
    segment: Segment, handles: Array, expression_of: Callable[[int], Expression],
    semantics: Semantics,
) -> Array:  # fmt: skip
    """For each term, the handle of a filter that tests it and the place of the test there."""
    predicates = segment.predicates
    terms, first = predicates.terms, len(semantics.schema)
    if not terms:
        return np.empty(0, np.int64)
    listed = np.concatenate(
        [
            predicates.in_sets.attributes, np.array(predicates.test_attributes, np.int32),
            predicates.out_sets.attributes,
        ]
    )  # fmt: skip
    found = np.full((len(terms), 2), -1, np.int64)
    for users, refs in segment.filters().uses():
        owners = predicates.attributes_of(refs)
        own = owners < 0
        owners[own] = listed[refs[own] // REF_KINDS - predicates.base]
        mine = np.flatnonzero((owners >= first) & (owners < first + len(terms)))
        numbers, places = np.unique(owners[mine] - first, return_index=True)
        found[numbers, 0] = users[mine[places]]
    for number, term in enumerate(terms):
        handle = int(found[number, 0])
        ensure(handle >= 0, "terms.sources")
        leaves = leaves_of(expression_of(handle), semantics)
        tests = [
            place
            for place, (code, constant) in enumerate(zip(*leaves[1:], strict=True))
            if term_of_leaf(code, constant, semantics.schema) == term
        ]
        ensure(tests, "terms.sources")
        found[number] = handles[int(np.searchsorted(segment.handles, handle))], tests[0]
    return found.reshape(-1)


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
    for users, refs in segment.filters().uses():
        numbers = refs // REF_KINDS - first
        mine = np.flatnonzero((numbers >= 0) & (numbers < len(predicates.tests)))
        tests, places = np.unique(numbers[mine], return_index=True)
        found[tests, 0] = users[mine[places]]
    last, place_of = -1, dict[Any, int]()
    for number in np.argsort(found[:, 0], kind="stable").tolist():
        handle = int(found[number, 0])
        if handle != last:
            leaves = leaves_of(expression_of(handle), semantics)
            last, place_of = handle, {c: p for p, c in enumerate(leaves.constants)}
        test = predicates.tests[number]
        ensure(test in place_of, "tests.sources")  # false only if a file said so
        found[number, 1] = place_of[test]
        found[number, 0] = handles[int(np.searchsorted(by_slot, handle))]
    return found.reshape(-1)
