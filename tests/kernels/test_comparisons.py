"""Where a key is among others; what uses it is tested in `predicates` and `engines`."""

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_calls import from_python
from tamis.kernels.comparisons import first_at_least, next_at_least

first_at_least, next_at_least = map(from_python, (first_at_least, next_at_least))
pytestmark = pytest.mark.uncompiled


@given(st.lists(st.integers(-20, 20), max_size=40).map(sorted), st.integers(-25, 25), st.data())
def test_the_first_key_that_is_not_less(keys, key, data):
    held = np.array(keys, np.int32)
    expected = bisect_left(keys, key)
    assert first_at_least(held, 0, len(keys), key) == expected
    start = data.draw(st.integers(0, expected))
    assert next_at_least(held, start, key) == expected
    end = data.draw(st.integers(start, len(keys)))
    assert first_at_least(held, start, end, key) == bisect_left(keys, key, start, end)
