"""The values of events as classes between the cuts of a segment.

See `tamis.kernels.value_classes` for cuts and classes.
"""

from typing import Any

import numpy as np

from tamis.engines.sliced.segment_predicates import SegmentPredicates, Texts, texts_of
from tamis.kernels.value_classes import MISSING, key_classes, string_classes
from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]


def classes_of(batch: Batch, predicates: SegmentPredicates, used: Array) -> Array:
    """classes[attribute, event]; MISSING for all events if an attribute is not used."""
    found = np.full((len(predicates.cuts), batch.size), MISSING, np.int32)
    for a in used.tolist():
        cuts, first = predicates.cuts[a], int(predicates.starts[a]) + 1
        column = batch.columns[a]
        if isinstance(cuts, Texts) and column.distinct is not None:
            texts = texts_of(column.distinct)
            by_text = np.empty(len(texts) + 1, np.int32)
            string_classes(texts.offsets, texts.data, cuts.offsets, cuts.data, first, by_text)
            found[a] = np.where(column.present, by_text[column.keys], MISSING)
        elif column.offsets is not None:  # an array equals no cut; its elements are sets' members
            found[a] = np.where(column.present, 2 * first, MISSING)
        elif not isinstance(cuts, Texts):
            key_classes(column.keys, column.present, cuts, first, found[a])
    return found
