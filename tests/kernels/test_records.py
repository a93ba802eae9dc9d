"""Records: named tuples of arrays that kernels take as they are."""

import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.caching import NullCache

from tamis.kernels.jit import inner, jit
from tamis.kernels.records import packed, record

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


def test_a_packed_record_is_the_same_to_a_kernel():
    mine, found = numbers([1, 2, 3]), np.zeros(3, np.int64)
    ready = packed(mine)
    for expected in ([41, 42, 43], [45, 42, 43]):
        write(ready, found)
        assert found.tolist() == expected
        assert mine.square.tolist() == [expected, [0, 0, 0]]
        mine.values[0] = 5  # its arrays are those of the record


def test_packed_records_with_other_types_of_arrays_are_told_apart():
    """Of the same class, with arrays of other items or in another order in memory."""
    found = np.zeros(3, np.int64)
    wide = Numbers(np.array([1, 2, 3]), np.zeros((2, 3)), 10)
    narrow = Numbers(np.array([1, 2, 3], np.int32), np.zeros((2, 3)), 10)
    turned = Numbers(np.array([1, 2, 3, 9, 9, 9])[::-1][3:], np.zeros((2, 3), order="F"), 10)
    for _ in range(2):
        for one, expected in ((wide, [41, 42, 43]), (narrow, [41, 42, 43]), (turned, [43, 42, 41])):
            write(packed(one), found)
            assert found.tolist() == expected
            assert one.square[0].tolist() == expected


def test_a_packed_record_keeps_its_arrays():
    ready, found = packed(numbers([1, 2, 3])), np.zeros(3, np.int64)
    others = [np.full(3, 77) for _ in range(1000)]  # would lie where the arrays were
    write(ready, found)
    assert found.tolist() == [41, 42, 43]
    assert all((other == 77).all() for other in others)
