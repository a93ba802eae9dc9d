"""Handles each once, in order, whichever way they are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.kernels.handles import sorted_handles

pytestmark = pytest.mark.uncompiled


@given(st.lists(st.integers(0, 49), max_size=60), st.sampled_from([50, 100_000, 0]))
def test_sweeping_and_sorting_agree(slots, marks):
    handles = np.array([(slot * 7) % 41 for slot in range(50)], np.int64)
    scratch = np.zeros(marks, np.uint8)
    found = sorted_handles(np.array(slots, np.int32), handles, scratch)
    assert found.tolist() == sorted({int(handles[slot]) for slot in slots})
    assert not scratch.any()
