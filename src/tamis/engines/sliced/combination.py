"""The filters of several segments together, without predicates that are no longer used."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engines.sliced.attribute_places import with_common_terms, without_unused_terms
from tamis.engines.sliced.formula_table import stacked
from tamis.engines.sliced.interning import ConjunctionTable, InternedFilters, sets_of
from tamis.engines.sliced.segment_predicates import (
    Cuts,
    SegmentPredicates,
    Sets,
    Texts,
    texts_of,
)
from tamis.kernels.value_classes import REF_KINDS
from tamis.language.ast import Node

Array = np.ndarray[Any, Any]


def combine(parts: Sequence[InternedFilters]) -> InternedFilters:
    """The filters of several parts together, without predicates that are no longer used."""
    has_terms = any(part.predicates.terms for part in parts)
    if has_terms and len(parts) > 1:
        parts = with_common_terms(parts)
    used = [_used(part) for part in parts]
    if len(parts) == 1 and _is_all_used(parts[0].predicates, used[0]):
        return parts[0]
    attributes = len(parts[0].predicates.cuts)
    maps = [np.zeros(part.predicates.size, np.int64) for part in parts]
    cuts = [_union(attribute, parts, used, maps) for attribute in range(attributes)]
    inside: dict[tuple[int, bytes], int] = {}
    outside: dict[tuple[int, bytes], int] = {}
    tests: dict[Node, int] = {}
    homes: list[int] = []
    for part, flags, numbers in zip(parts, used, maps, strict=True):
        of = part.predicates
        _unite_sets(of, of.in_sets, 0, flags, numbers, inside)
        _unite_sets(of, of.out_sets, of.first_out, flags, numbers, outside)
        for test in np.flatnonzero(
            flags[of.base + of.first_test : of.base + of.first_out]
        ).tolist():
            known = tests.setdefault(of.tests[test], len(tests))
            homes += [of.test_attributes[test]] * (known == len(homes))
            numbers[of.base + of.first_test + test] = known
    ordered = sorted(outside, key=lambda key: key[0])
    predicates = SegmentPredicates.of(
        cuts, _sets_of_bytes(inside), list(tests), _sets_of_bytes(ordered), homes,
        parts[0].predicates.terms,
    )  # fmt: skip
    order_of = np.zeros(len(ordered) + 1, np.int64)
    for place, key in enumerate(ordered):
        order_of[outside[key]] = place
    tables: dict[int, list[ConjunctionTable]] = {}
    formulas = []
    for part, numbers in zip(parts, maps, strict=True):
        _renumber(part.predicates, predicates, numbers, order_of)
        moved = part.renumbered(predicates, numbers)
        for width, table in moved.tables.items():
            tables.setdefault(width, []).append(table)
        formulas.append(moved.formulas)
    together = {width: _stacked(found) for width, found in tables.items()}
    made = InternedFilters(predicates, together, stacked(formulas))
    return without_unused_terms(made) if has_terms else made


def _used(part: InternedFilters) -> Array:
    """Which predicate numbers are used, including those of members of sets."""
    of = part.predicates
    flags = np.zeros(of.size, np.bool_)
    for refs in part.references():
        flags[refs // REF_KINDS] = True
    for sets, first in ((of.in_sets, 0), (of.out_sets, of.first_out)):
        mine = flags[of.base + first : of.base + first + len(sets.attributes)]
        flags[sets.members[np.repeat(mine, np.diff(sets.at))]] = True
    return flags


def _is_all_used(predicates: SegmentPredicates, flags: Array) -> bool:
    """Whether every cut, set and test is used."""
    starts = predicates.starts
    return bool(flags[predicates.base :].all()) and all(
        flags[int(starts[a]) + 1 : int(starts[a]) + 1 + len(cuts)].all()
        for a, cuts in enumerate(predicates.cuts)
    )


def _union(
    attribute: int, parts: Sequence[InternedFilters], used: Sequence[Array], maps: Sequence[Array]
) -> Cuts:
    """The used cuts of all parts; maps[part][number] becomes the new number, from 0."""
    kept, ranges = [], []
    for part, flags in zip(parts, used, strict=True):
        cuts = part.predicates.cuts[attribute]
        first = int(part.predicates.starts[attribute]) + 1
        mine = np.flatnonzero(flags[first : first + len(cuts)])
        ranges.append(mine + first)
        if isinstance(cuts, Texts):
            kept.append(cuts.to_arrow().take(pa.array(mine)))
        else:
            kept.append(cuts[mine])
    if isinstance(kept[0], pa.Array):
        distinct = pc.unique(pa.chunked_array(kept))
        distinct = distinct.take(pc.sort_indices(distinct))
        for numbers, mine, texts in zip(maps, ranges, kept, strict=True):
            numbers[mine] = np.asarray(pc.index_in(texts, value_set=distinct))
        return texts_of(distinct)
    union: Array = np.unique(np.concatenate(kept))
    for numbers, mine, found in zip(maps, ranges, kept, strict=True):
        numbers[mine] = np.searchsorted(union, found)
    return union


def _unite_sets(
    of: SegmentPredicates, sets: Sets, first: int, flags: Array, numbers: Array,
    known: dict[tuple[int, bytes], int],
) -> None:  # fmt: skip
    for place in np.flatnonzero(flags[of.base + first :][: len(sets.attributes)]).tolist():
        members = numbers[sets.members[sets.at[place] : sets.at[place + 1]]].astype(np.int32)
        key = int(sets.attributes[place]), members.tobytes()
        numbers[of.base + first + place] = known.setdefault(key, len(known))


def _sets_of_bytes(found: Iterable[tuple[int, bytes]]) -> Sets:
    return sets_of([(attribute, np.frombuffer(members, np.int32)) for attribute, members in found])


def _renumber(
    old: SegmentPredicates, new: SegmentPredicates, numbers: Array, order_of: Array
) -> None:
    """Change numbers that count within an attribute and kind to numbers among all predicates."""
    for attribute, cuts in enumerate(old.cuts):
        first = int(old.starts[attribute])
        numbers[first] = new.starts[attribute]
        numbers[first + 1 : first + 1 + len(cuts)] += new.starts[attribute] + 1
    base = old.base
    numbers[base : base + old.first_test] += new.base
    numbers[base + old.first_test : base + old.first_out] += new.base + new.first_test
    outside = numbers[base + old.first_out :]
    numbers[base + old.first_out :] = new.base + new.first_out + order_of[outside]


def _stacked(tables: Sequence[ConjunctionTable]) -> ConjunctionTable:
    if len(tables) == 1:
        return tables[0]
    handles = np.concatenate([table.handles for table in tables])
    return ConjunctionTable(handles, np.concatenate([table.refs for table in tables]))
