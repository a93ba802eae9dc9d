"""Interned filters whose attributes get other places: in a wider schema, or among other terms.

Tests name attributes by their paths. Cuts, sets and references go by the places of attributes, and
are numbered again; filters are not read again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.engines.sliced.interning import InternedFilters
from tamis.engines.sliced.segment_predicates import (
    NO_TEXTS,
    Cuts,
    SegmentPredicates,
    Sets,
    Texts,
    flattened,
)
from tamis.language.ast import Node
from tamis.types import STRING

Array = np.ndarray[Any, Any]


def placed(
    filters: InternedFilters, places: Array, is_text: Sequence[bool], terms: Sequence[Node]
) -> InternedFilters:
    """Filters in which attribute a is at places[a]; -1 drops one that has no predicate.

    `is_text` says of each new place whether its values are strings; `terms` are the new last ones.
    """
    old = filters.predicates
    # A test of several attributes has the place after the last one, before and after.
    places = np.append(places, len(is_text))
    cuts: list[Cuts] = [NO_TEXTS if text else np.empty(0, np.int64) for text in is_text]
    for attribute, part in enumerate(old.cuts):
        if places[attribute] >= 0:
            cuts[places[attribute]] = _own(part)
    # Sets of NOT IN stand in the order of their attributes.
    order = np.argsort(places[old.local_out_sets.attributes], kind="stable")
    of_terms = tuple(terms)
    predicates = SegmentPredicates(
        flattened(cuts), is_text, _placed_sets(old.local_in_sets, places, None),
        _placed_sets(old.local_out_sets, places, order),
        places[list(old.test_attributes)].tolist(), lambda: old.tests, lambda: of_terms,
    )  # fmt: skip
    return filters.renumbered(predicates, _numbers(old, predicates, places, order))


def with_common_terms(parts: Sequence[InternedFilters]) -> list[InternedFilters]:
    """Filters of several parts, all with the same terms at the same places."""
    terms = dict.fromkeys(term for part in parts for term in part.predicates.terms)
    numbers = {term: number for number, term in enumerate(terms)}
    return [
        part if part.predicates.terms == tuple(terms) else _with_terms(part, numbers)
        for part in parts
    ]


def without_unused_terms(filters: InternedFilters) -> InternedFilters:
    """The same filters, without terms that nothing tests."""
    predicates = filters.predicates
    first = len(predicates.cuts) - len(predicates.terms)
    used = np.zeros(len(predicates.cuts) + 1, np.bool_)
    used[[attribute for attribute, cuts in enumerate(predicates.cuts) if len(cuts)]] = True
    for attributes in (
        predicates.in_sets.attributes, predicates.out_sets.attributes,
        list(predicates.test_attributes),
    ):  # fmt: skip
        used[attributes] = True
    for refs in filters.references():
        owners = predicates.attributes_of(refs)
        used[owners[owners >= 0]] = True
    if used[first:-1].all():
        return filters
    left = [t for n, t in enumerate(predicates.terms) if used[first + n]]
    return _with_terms(filters, {term: number for number, term in enumerate(left)})


def _with_terms(filters: InternedFilters, numbers: dict[Node, int]) -> InternedFilters:
    """Filters whose terms get numbers; those without one are dropped."""
    predicates = filters.predicates
    first = len(predicates.cuts) - len(predicates.terms)
    mine = [numbers.get(term, -1 - first) + first for term in predicates.terms]
    is_text = [isinstance(part, Texts) for part in predicates.cuts[:first]]
    is_text += [term.type == STRING for term in numbers]
    return placed(filters, np.array([*range(first), *mine], np.int64), is_text, list(numbers))


def _own(cuts: Cuts) -> Cuts:
    """The cuts of one attribute, without the strings of others in the same array."""
    if not isinstance(cuts, Texts) or not len(cuts.offsets):
        return cuts
    first, end = int(cuts.offsets[0]), int(cuts.offsets[-1])
    return Texts(cuts.offsets - first, cuts.data[first:end])


def _placed_sets(sets: Sets, places: Array, order: Array | None) -> Sets:
    """Sets of attributes at their new places, in an order."""
    attributes = places[sets.attributes].astype(np.int32)
    if order is None:
        return Sets(attributes, sets.at, sets.members)
    sizes = np.diff(sets.at)[order]
    at = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    members = [sets.members[sets.at[k] : sets.at[k + 1]] for k in order.tolist()]
    return Sets(
        attributes[order], at, np.concatenate(members) if members else np.empty(0, np.int32)
    )


def _numbers(old: SegmentPredicates, new: SegmentPredicates, places: Array, order: Array) -> Array:
    """numbers[old number]: the new number of each predicate."""
    numbers = np.zeros(old.size, np.int64)
    for attribute, cuts in enumerate(old.cuts):
        if places[attribute] >= 0:
            first, here = int(old.starts[attribute]), int(new.starts[places[attribute]])
            numbers[first : first + len(cuts) + 1] = here + np.arange(len(cuts) + 1)
    listed = np.arange(old.listed)
    listed[old.first_out :][order] = old.first_out + np.arange(len(order))
    numbers[old.base :] = new.base + listed
    return numbers
