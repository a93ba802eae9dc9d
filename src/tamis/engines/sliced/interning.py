"""What a segment is compiled from: distinct predicates, and the references of each filter to them.

Interned filters come from the leaves of new filters (`intern_filters`) or from segments that are
merged (`combine`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engines.sliced.formula_table import FormulaTable, formula_table
from tamis.engines.sliced.leaves import (
    ABSENT,
    HAS,
    HAS_NOT,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    Leaves,
    leaf_of,
    term_of_leaf,
)  # fmt: skip
from tamis.engines.sliced.segment_predicates import (
    NO_TEXTS,
    Cuts,
    SegmentPredicates,
    Sets,
    texts_of,
)
from tamis.engines.sliced.shape_steps import is_conjunction
from tamis.kernels import value_classes as references
from tamis.kernels.value_classes import REF_KINDS
from tamis.language.ast import Node
from tamis.predicates.computed_values import ComputedAttributes, term_of
from tamis.predicates.keys import Keys
from tamis.schema import Schema

Array = np.ndarray[Any, Any]


class ConjunctionTable(NamedTuple):
    """The conjunctions of one number of predicates, one per row."""

    handles: Array  # int64[filter]
    refs: Array  # int32[filter, leaf]


class InternedFilters(NamedTuple):
    """Conjunctions by their width, other formulas, and the predicates that both refer to."""

    predicates: SegmentPredicates
    tables: dict[int, ConjunctionTable]
    formulas: FormulaTable

    @property
    def size(self) -> int:
        """How many filters there are."""
        return sum(len(table.handles) for table in self.tables.values()) + self.formulas.size

    def references(self) -> Iterator[Array]:
        """The references of all filters, in arrays of any form."""
        yield from (table.refs for table in self.tables.values())
        yield self.formulas.references()

    def uses(self) -> Iterator[tuple[Array, Array]]:
        """Handles, and for each of them a reference of its filter."""
        for width, (handles, refs) in self.tables.items():
            yield np.repeat(handles, width), refs.reshape(-1)
        yield self.formulas.uses()

    def renumbered(self, predicates: SegmentPredicates, numbers: Array) -> "InternedFilters":
        """The same filters, referring to numbers[number] where they referred to a number."""

        def renumber(refs: Array) -> Array:
            found: Array = numbers[refs // REF_KINDS] * REF_KINDS + refs % REF_KINDS
            return found.astype(np.int32)

        tables = {
            width: table._replace(refs=renumber(table.refs)) for width, table in self.tables.items()
        }
        return InternedFilters(predicates, tables, self.formulas.mapped(renumber))


# --- from leaves


def intern_filters(filters: Iterable[tuple[int, Leaves]], keys: Keys) -> InternedFilters:
    """Filters, given with their handles, as references to distinct predicates."""
    by_width: dict[int, tuple[list[int], list[int], list[Any]]] = {}
    formulas: list[tuple[int, Leaves]] = []
    for handle, leaves in filters:
        if not is_conjunction(leaves.shape):
            formulas.append((handle, leaves))
            continue
        group = by_width.get(len(leaves.codes))
        if group is None:
            group = by_width[len(leaves.codes)] = ([], [], [])
        group[0].append(handle)
        group[1].extend(leaves.codes)
        group[2].extend(leaves.constants)
    of_formulas = chain.from_iterable(leaves.codes for _, leaves in formulas)
    of_conjunctions = chain.from_iterable(group[1] for group in by_width.values())
    codes = np.fromiter(chain(of_conjunctions, of_formulas), np.int32)
    constants = list(chain.from_iterable(group[2] for group in by_width.values()))
    constants += chain.from_iterable(leaves.constants for _, leaves in formulas)
    predicates, refs = _Interning(keys).intern(codes, constants)
    tables, start = {}, 0
    for width, (handles, mine, _) in by_width.items():
        part = refs[start : start + len(mine)]
        tables[width] = ConjunctionTable(np.array(handles, np.int64), part.reshape(-1, width))
        start += len(mine)
    return InternedFilters(predicates, tables, formula_table(formulas, refs[start:]))


class _Interning:
    """Numbers for the distinct predicates of many leaves."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._cuts: list[Cuts] = []
        self._tests: dict[Node, int] = {}
        self._test_attributes: list[int] = []
        # The distinct sets of both kinds, as the attribute and its constants.
        self._sets: dict[int, dict[tuple[Any, ...], int]] = {ONE_OF: {}, NONE_OF: {}}

    def intern(self, codes: Array, constants: list[Any]) -> tuple[SegmentPredicates, Array]:
        """The distinct predicates, and the reference of each leaf to one of them."""
        codes, constants, computed = _with_terms(codes, constants, self._keys.schema)
        if computed.terms:
            self._keys = Keys(computed.schema)
        self._cuts = no_cuts(self._keys)
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
            self._cuts, inside, list(self._tests), outside, self._test_attributes, computed.terms
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
        """Make the cuts of all attributes; returns the numbers of the members of each set.

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


def no_cuts(keys: Keys) -> list[Cuts]:
    """The cuts of attributes without any."""
    return [
        np.empty(0, np.int64) if keys.has(attribute) else NO_TEXTS for attribute in range(keys.size)
    ]


def _with_terms(
    codes: Array, constants: list[Any], schema: Schema
) -> tuple[Array, list[Any], ComputedAttributes]:
    """Leaves that are tests of terms, as leaves of the attributes that stand for these.

    A leaf that is a TEST nevertheless keeps its predicate as it was, without these attributes:
    other segments have other terms.
    """
    kinds = codes % LEAF_KINDS
    places = np.flatnonzero(kinds == TEST).tolist()
    found = {place: term_of(constants[place]) for place in places}
    # Tests for elements of attributes are many, and have no predicates yet.
    elements = {
        code: term_of_leaf(code, None, schema)
        for code in np.unique(codes[(kinds == HAS) | (kinds == HAS_NOT)]).tolist()
    }
    every = (*found.values(), *elements.values())
    terms = dict.fromkeys(term for term in every if term is not None)
    computed = ComputedAttributes(schema, list(terms))
    if not terms:
        return codes, constants, computed
    codes, constants, given = codes.copy(), list(constants), codes
    numbers = {term: len(schema) + number for number, term in enumerate(computed.terms)}
    for code, term in elements.items():
        if term is not None:
            kind = ONE_OF if code % LEAF_KINDS == HAS else NONE_OF
            codes[given == code] = numbers[term] * LEAF_KINDS + kind
    for place in places:
        code, constant = leaf_of(computed.test(constants[place]), computed.schema)
        codes[place] = code
        if code % LEAF_KINDS != TEST:
            constants[place] = constant
    return codes, constants, computed


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
