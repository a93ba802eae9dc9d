"""Records: named tuples of arrays that kernels take as they are."""

import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.caching import NullCache

from tamis.kernels.jit import inner, jit
from tamis.kernels.records import record

pytestmark = pytest.mark.uncompiled


@record
class Numbers(NamedTuple):
    """What the kernels below work with."""

    values: Any  # int64[*]
    square: Any  # float64[*, *]
    shift: int


@inner
def moved(numbers, k, by):
    return numbers.values[k] + by * numbers.shift


@jit
def write(numbers, found):
    """Write the values, moved twice."""
    for k in range(found.size):
        found[k] = moved(numbers, k, 1) + moved(numbers, k, found.size) - numbers.values[k]
        numbers.square[0, k] = found[k]


write._cache = NullCache()  # a kernel that an earlier run kept has no parts to look at


def numbers(values, shift=10):
    return Numbers(np.array(values), np.zeros((2, 3)), shift)


def test_a_kernel_reads_and_writes_the_fields_of_a_record():
    mine, found = numbers([1, 2, 3]), np.zeros(3, np.int64)
    write(mine, found)
    assert found.tolist() == [41, 42, 43]
    assert mine.square.tolist() == [[41, 42, 43], [0, 0, 0]]
    write(mine._replace(shift=0), found)
    assert found.tolist() == [1, 2, 3]


def test_memory_that_is_read_only_has_the_same_kernel():
    """Of the fields, those that come from a file are read-only."""
    mine, found = numbers([4, 5, 6]), np.zeros(3, np.int64)
    write(mine, found)
    mine.values.flags.writeable = False
    write(mine, found)
    assert found.tolist() == [44, 45, 46]
    assert len(getattr(write, "overloads", [1])) == 1


def test_a_literal_argument_has_no_kernel_of_its_own():
    write(numbers([1]), np.zeros(1, np.int64))
    assert len(getattr(moved, "overloads", [1])) == 1


def test_the_kernel_holds_no_reference_to_what_it_was_given():
    mine, found = numbers([7, 8]), np.zeros(2, np.int64)
    before = [sys.getrefcount(part) for part in mine]
    for _ in range(100):
        write(mine, found)
    assert [sys.getrefcount(part) for part in mine] == before
