"""Compiled filters under a wider schema, which has more attributes, perhaps in another order."""

import numpy as np

from tamis.engines.sliced.attribute_places import placed
from tamis.engines.sliced.segment import Segment
from tamis.predicates.event_batches import Batch
from tamis.predicates.keys import Keys
from tamis.schema import Schema
from tamis.types import STRING


def widened(segment: Segment, narrow: Schema, wide: Schema, profile: Batch | None) -> Segment:
    """A segment of the same filters, compiled for a schema with all attributes of its own."""
    terms = segment.predicates.terms
    keys = Keys(wide)
    places = [wide.positions[path] for path in narrow.positions]
    places += range(len(wide), len(wide) + len(terms))
    is_text = [not keys.has(attribute) for attribute in range(len(wide))]
    is_text += [term.type == STRING for term in terms]
    filters = placed(segment.filters(), np.array(places, np.int64), is_text, terms)
    return Segment.compile(filters, profile)
