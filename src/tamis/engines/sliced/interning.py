"""What a segment is compiled from: distinct predicates, and the references of each filter to them.

Interned filters come from the leaves of new filters (`intern_filters`) or from segments that are
merged (`combine`).
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engines.sliced.leaves import (
    ABSENT,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    Leaves,
)  # fmt: skip
from tamis.engines.sliced.segment_predicates import (
    NO_TEXTS,
    Cuts,
    SegmentPredicates,
    Sets,
    Texts,
    texts_of,
)
from tamis.kernels import value_classes as references
from tamis.kernels.value_classes import REF_KINDS
from tamis.language.ast import Node
from tamis.predicates.keys import Keys

Array = np.ndarray[Any, Any]


class ShapeTable(NamedTuple):
    """The filters of one shape, one per row."""

    handles: Array  # int64[filter]
    refs: Array  # int32[filter, leaf]


class InternedFilters(NamedTuple):
    """Filters by shape, and the predicates that they refer to."""

    predicates: SegmentPredicates
    tables: dict[str, ShapeTable]


# --- from leaves


def intern_filters(filters: Iterable[tuple[int, Leaves]], keys: Keys) -> InternedFilters:
    """Filters, given with their handles, as references to distinct predicates."""
    by_shape: dict[str, tuple[list[int], list[int], list[Any]]] = {}
    for handle, leaves in filters:
        group = by_shape.get(leaves.shape)
        if group is None:
            group = by_shape[leaves.shape] = ([], [], [])
        group[0].append(handle)
        group[1].extend(leaves.codes)
        group[2].extend(leaves.constants)
    codes = np.fromiter(chain.from_iterable(g[1] for g in by_shape.values()), np.int32)
    constants = list(chain.from_iterable(g[2] for g in by_shape.values()))
    predicates, refs = _Interning(keys).intern(codes, constants)
    tables, start = {}, 0
    for shape, (handles, mine, _) in by_shape.items():
        part = refs[start : start + len(mine)]
        tables[shape] = ShapeTable(np.array(handles, np.int64), part.reshape(len(handles), -1))
        start += len(mine)
    return InternedFilters(predicates, tables)


class _Interning:
    """Numbers for the distinct predicates of many leaves."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._cuts: list[Cuts] = [np.empty(0, np.int64)] * keys.size
        for attribute in range(keys.size):
            if not keys.has(attribute):
                self._cuts[attribute] = NO_TEXTS
        self._tests: dict[Node, int] = {}
        self._test_attributes: list[int] = []
        # The distinct sets of both kinds, as the attribute and its constants.
        self._sets: dict[int, dict[tuple[Any, ...], int]] = {ONE_OF: {}, NONE_OF: {}}

    def intern(self, codes: Array, constants: list[Any]) -> tuple[SegmentPredicates, Array]:
        """The distinct predicates, and the reference of each leaf to one of them."""
        order = np.argsort(codes, kind="stable")
        found, firsts = np.unique(codes[order], return_index=True)
        leaves_of = dict(zip(found.tolist(), np.split(order, firsts[1:]), strict=True))
        self._gather(leaves_of, constants)
        numbers = np.zeros(len(codes), np.int64)  # of the cut in its attribute
        members = self._number_constants(leaves_of, constants, numbers)
        excluding = sorted(self._sets[NONE_OF], key=lambda key: int(key[0]))
        self._sets[NONE_OF] = {key: place for place, key in enumerate(excluding)}
        inside, outside = (
            sets_of([(key[0], members[key]) for key in self._sets[kind]])
            for kind in (ONE_OF, NONE_OF)
        )
        predicates = SegmentPredicates.of(
            self._cuts, inside, list(self._tests), outside, self._test_attributes
        )
        self._refer(leaves_of, constants, predicates, numbers)
        return predicates, numbers.astype(np.int32)

    def _gather(self, leaves_of: dict[int, Array], constants: list[Any]) -> None:
        """Find the distinct tests and sets."""
        for code, leaves in leaves_of.items():
            attribute, kind = divmod(code, LEAF_KINDS)
            if kind == TEST:
                for leaf in leaves.tolist():
                    known = self._tests.setdefault(constants[leaf], len(self._tests))
                    if known == len(self._test_attributes):
                        self._test_attributes.append(attribute)
            elif kind in self._sets:
                sets = self._sets[kind]
                for leaf in leaves.tolist():
                    sets.setdefault((attribute, *constants[leaf]), len(sets))

    def _number_constants(
        self, leaves_of: dict[int, Array], constants: list[Any], numbers: Array
    ) -> dict[tuple[Any, ...], Array]:
        """Make the cuts of all attributes; the numbers of the members of each set.

        numbers[leaf] becomes the number of the constant that a leaf compares with.
        """
        by_attribute: dict[int, list[tuple[Any, ...]]] = {}
        for key in chain(self._sets[ONE_OF], self._sets[NONE_OF]):
            by_attribute.setdefault(key[0], []).append(key)
        members: dict[tuple[Any, ...], Array] = {}
        for attribute in range(self._keys.size):
            first = attribute * LEAF_KINDS
            mine = [leaves_of[code] for code in range(first, first + ONE_OF) if code in leaves_of]
            compared = np.concatenate(mine) if mine else np.empty(0, np.int64)
            sets = by_attribute.get(attribute, [])
            values = [constants[leaf] for leaf in compared.tolist()]
            values += chain.from_iterable(key[1:] for key in sets)
            if not values:
                continue
            found = self._numbers(attribute, values)
            at = len(compared)
            numbers[compared] = found[:at]
            for key in sets:
                members[key] = np.unique(found[at : at + len(key) - 1])
                at += len(key) - 1
        return members

    def _refer(
        self,
        leaves_of: dict[int, Array],
        constants: list[Any],
        predicates: SegmentPredicates,
        numbers: Array,
    ) -> None:
        """Turn numbers[leaf] into the reference of each leaf."""
        for code, leaves in leaves_of.items():
            attribute, kind = divmod(code, LEAF_KINDS)
            if kind == TEST:
                first = predicates.base + predicates.first_test
                own = [self._tests[constants[leaf]] for leaf in leaves.tolist()]
            elif kind in self._sets:
                first = predicates.base + (predicates.first_out if kind == NONE_OF else 0)
                sets = self._sets[kind]
                own = [sets[attribute, *constants[leaf]] for leaf in leaves.tolist()]
            else:
                start = int(predicates.starts[attribute])
                numbers[leaves] = _reference(kind, start, numbers[leaves])
                continue
            numbers[leaves] = (first + np.array(own, np.int64)) * REF_KINDS

    def _numbers(self, attribute: int, values: list[Any]) -> Array:
        """The number of each value among the cuts of its attribute, which this makes."""
        if self._keys.has(attribute):
            self._cuts[attribute], found = np.unique(
                self._keys.many(attribute, values), return_inverse=True
            )
            return np.asarray(found, np.int64).reshape(-1)
        ordered = sorted(set(values))
        self._cuts[attribute] = texts_of(pa.array(ordered, pa.large_string()))
        place = {value: number for number, value in enumerate(ordered)}
        return np.array([place[value] for value in values], np.int64)


def _reference(kind: int, first: int, numbers: Array) -> Array:
    if kind == PRESENT:
        return np.full(len(numbers), first * REF_KINDS + references.PRESENT)
    if kind == ABSENT:
        return np.full(len(numbers), first * REF_KINDS + references.ABSENT)
    return (first + 1 + numbers) * REF_KINDS + kind


def sets_of(found: Sequence[tuple[int, Array]]) -> Sets:
    """Sets as arrays; each is given as its attribute and its members."""
    at = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(members) for _, members in found], out=at[1:])
    members = [np.asarray(members, np.int32) for _, members in found]
    return Sets(
        np.array([attribute for attribute, _ in found], np.int32), at,
        np.concatenate(members) if members else np.empty(0, np.int32),
    )  # fmt: skip


# --- from segments


def combine(parts: Sequence[InternedFilters]) -> InternedFilters:
    """The filters of several parts together, without predicates that are no longer used."""
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
        cuts, _sets_of_bytes(inside), list(tests), _sets_of_bytes(ordered), homes
    )
    order_of = np.zeros(len(ordered) + 1, np.int64)
    for place, key in enumerate(ordered):
        order_of[outside[key]] = place
    tables: dict[str, list[ShapeTable]] = {}
    for part, numbers in zip(parts, maps, strict=True):
        _renumber(part.predicates, predicates, numbers, order_of)
        for shape, table in part.tables.items():
            refs = numbers[table.refs // REF_KINDS] * REF_KINDS + table.refs % REF_KINDS
            tables.setdefault(shape, []).append(ShapeTable(table.handles, refs.astype(np.int32)))
    return InternedFilters(predicates, {shape: _stacked(found) for shape, found in tables.items()})


def _used(part: InternedFilters) -> Array:
    """Which predicate numbers are used, including those of members of sets."""
    of = part.predicates
    flags = np.zeros(of.size, np.bool_)
    for table in part.tables.values():
        flags[table.refs // REF_KINDS] = True
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


def _stacked(tables: Sequence[ShapeTable]) -> ShapeTable:
    if len(tables) == 1:
        return tables[0]
    handles = np.concatenate([table.handles for table in tables])
    return ShapeTable(handles, np.concatenate([table.refs for table in tables]))
