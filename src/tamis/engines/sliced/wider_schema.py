"""Compiled filters under a wider schema, which has more attributes, perhaps in another order.

Tests name attributes by their paths. Cuts, sets and references go by the positions of attributes,
and are numbered again; filters are not read again.
"""

from typing import Any

import numpy as np

from tamis.engines.sliced.interning import InternedFilters
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_predicates import (
    NO_TEXTS,
    Cuts,
    SegmentPredicates,
    Sets,
    Texts,
    flattened,
)
from tamis.kernels.value_classes import REF_KINDS
from tamis.predicates.event_batches import Batch
from tamis.predicates.keys import Keys
from tamis.schema import Schema

Array = np.ndarray[Any, Any]


def widened(segment: Segment, narrow: Schema, wide: Schema, profile: Batch | None) -> Segment:
    """A segment of the same filters, compiled for a schema with all attributes of its own."""
    old = segment.predicates
    # A test of several attributes has the position after the last one, in both schemas.
    places = np.array([*(wide.positions[path] for path in narrow.positions), len(wide)], np.int64)
    keys = Keys(wide)
    is_text = [not keys.has(attribute) for attribute in range(len(wide))]
    cuts: list[Cuts] = [NO_TEXTS if text else np.empty(0, np.int64) for text in is_text]
    for attribute, part in enumerate(old.cuts):
        cuts[places[attribute]] = _own(part)
    # Sets of NOT IN stand in the order of their attributes.
    order = np.argsort(places[old.local_out_sets.attributes], kind="stable")
    predicates = SegmentPredicates(
        flattened(cuts), is_text, _placed(old.local_in_sets, places, None),
        _placed(old.local_out_sets, places, order), places[list(old.test_attributes)].tolist(),
        lambda: old.tests,
    )  # fmt: skip
    numbers = _numbers(old, predicates, places, order)
    tables = {
        shape: table._replace(
            refs=(numbers[table.refs // REF_KINDS] * REF_KINDS + table.refs % REF_KINDS).astype(
                np.int32
            )
        )
        for shape, table in segment.filters().tables.items()
    }
    return Segment.compile(InternedFilters(predicates, tables), profile)


def _own(cuts: Cuts) -> Cuts:
    """The cuts of one attribute, without the strings of others in the same array."""
    if not isinstance(cuts, Texts) or not len(cuts.offsets):
        return cuts
    first, end = int(cuts.offsets[0]), int(cuts.offsets[-1])
    return Texts(cuts.offsets - first, cuts.data[first:end])


def _placed(sets: Sets, places: Array, order: Array | None) -> Sets:
    """Sets of attributes at their new positions, in an order."""
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
        first, here = int(old.starts[attribute]), int(new.starts[places[attribute]])
        numbers[first : first + len(cuts) + 1] = here + np.arange(len(cuts) + 1)
    listed = np.arange(old.listed)
    listed[old.first_out :][order] = old.first_out + np.arange(len(order))
    numbers[old.base :] = new.base + listed
    return numbers
