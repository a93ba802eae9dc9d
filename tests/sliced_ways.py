"""Every way through the sliced engine, whatever the numbers of subscriptions and matches."""

from contextlib import contextmanager

import pytest

from tamis.engines.sliced import (
    blocks,
    buffers,
    layout,
    segment,
    segment_merges,
    segment_predicates,
    segment_tests,
)

NEVER, EVER = -1, 10**9
WAYS = {
    "as it is": {},
    "by matrix": {(blocks, "DENSE"): NEVER},
    "by lists": {(blocks, "DENSE"): EVER},
    "no names": {(layout, "NAMED"): 0},
    "clusters": {(layout, "SELECTIVE"): 2.0},
    "clusters without names": {(layout, "SELECTIVE"): 2.0, (layout, "NAMED"): 0},
    "clusters in a matrix": {
        (layout, "SELECTIVE"): 2.0, (layout, "NAMED"): 0, (blocks, "DENSE"): NEVER,
    },
    "no clusters": {(layout, "SELECTIVE"): 0.0, (layout, "COMMON"): EVER, (layout, "NAMED"): 0},
    "all in common": {(layout, "SELECTIVE"): 0.0, (layout, "COMMON"): 1, (layout, "NAMED"): 0},
    "all in common, named": {(layout, "SELECTIVE"): 0.0, (layout, "COMMON"): 1},
    "events in another order": {
        (layout, "SELECTIVE"): 2.0, (segment, "SORTED"): -1.0, (blocks, "DENSE"): EVER,
    },
    "a window is two blocks": {
        (layout, "SELECTIVE"): 2.0, (layout, "NAMED"): 0, (segment, "SORTED"): -1.0,
        (blocks, "WINDOW"): 2,
    },
    "many segments": {(segment_merges, "GROWTH"): 0},
    "coarse tables": {
        (segment_predicates, "HOMES"): 4,
        (buffers, "COARSE"): 4,
        (layout, "NAMED"): 0,
    },
    "nothing remembered": {(segment_tests, "MOST_REMEMBERED"): 1},
    "small pieces": {(blocks, "DENSE"): NEVER, (blocks, "PIECE"): 40},
    "small windows": {(blocks, "DENSE"): EVER, (blocks, "MOST_MATCHES"): 900},
    "small windows and pieces": {
        (blocks, "DENSE"): NEVER, (blocks, "PIECE"): 1, (blocks, "MOST_MATCHES"): 900,
        (segment_merges, "GROWTH"): 0,
    },
    "words sorted": {(blocks, "DENSE"): EVER, (blocks, "FEW_SORTED"): EVER},
    "matches sorted": {(blocks, "DENSE"): EVER, (blocks, "FEW_SORTED"): 0},
    "marks": {(blocks, "SPARSE"): EVER},
    "no marks": {(blocks, "SPARSE"): 0},
}  # fmt: skip


@contextmanager
def taken(way):
    """The engine goes one way."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in WAYS[way].items():
            patch.setattr(module, name, value)
        yield
