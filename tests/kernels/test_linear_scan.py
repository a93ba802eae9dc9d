"""A linear scan of conjunctions finds those that hold."""

import numpy as np
import pytest

from cases import each
from tamis.kernels.linear_scan import scan_conjunctions

pytestmark = pytest.mark.uncompiled

NAN, INF = float("nan"), float("inf")
# a <= 3; a >= 2 AND b = 5; b <> 5 (that is at most 4, or at least 6); nothing
TESTS = [(0, -INF, 3), (0, 2, INF), (1, 5, 5), (1, 6, 4)]
STARTS = [0, 1, 3, 4, 4]


@each(
    ("values", "wanted"),
    [
        ((1, 5), [0, 3]), ((2, 5), [0, 1, 3]), ((9, 5), [1, 3]), ((9, 6), [2, 3]),
        ((NAN, 4), [2, 3]), ((3, NAN), [0, 3]), ((NAN, NAN), [3]),
    ],
)  # fmt: skip
def test_what_holds_is_found(values, wanted):
    columns = np.array(TESTS, np.float64).T.copy()
    found = np.empty(4, np.int64)
    count = scan_conjunctions(
        np.array(values, np.float64), columns[0].astype(np.int64), columns[1], columns[2],
        np.array(STARTS), found,
    )  # fmt: skip
    assert found[:count].tolist() == wanted
