"""The numbers in the report of ``tamis match`` are those of its folder, wherever batches end."""

from collections import Counter

import pyarrow as pa

from cases import each
from tamis.cli.match_page import _count_runs


@each(
    "batches, events",
    [
        ([[1, 1, 1, 2]], {3: 1, 1: 1}),
        ([[1], [1, 1], [1, 2]], {4: 1, 1: 1}),
        ([[1, 1], [2, 2, 2], [3]], {2: 1, 3: 1, 1: 1}),
        ([[None, None, 1]], {1: 3}),  # nobody knows whether these are one event
        ([[7, 8, 9, 9]], {1: 2, 2: 1}),
    ],
)
def test_events_are_counted_by_their_matches(batches, events):
    last, found = None, Counter()
    for batch in batches:
        last = _count_runs(pa.array(batch, pa.int64()), last, found)
    found[last[1]] += 1
    assert found == events
