"""Parts of a batch on several threads, in their order."""

import threading
import time
from itertools import pairwise

import pytest

from cases import each
from tamis.engines.sliced.threads import in_order_of


def parts_of(size, step, threads, work=lambda start, end: (start, end)):
    return list(in_order_of(work, lambda: step, size, threads))


def alive():
    """The threads of the pools."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("tamis_")]


@each("threads", [0, 1, 2, 4])
@each("size", [0, 1, 9, 10, 11, 20, 57])
def test_all_parts_in_order(size, threads):
    expected = [(start, min(start + 10, size)) for start in range(0, size, 10)]
    assert parts_of(size, 10, threads) == expected
    assert alive() == []


@pytest.mark.parametrize("threads", [2, 4])
def test_in_order_even_if_the_first_is_the_slowest(threads):
    def work(start, _end):
        time.sleep(0.02 if start == 0 else 0)  # so that the others are done before
        return start

    assert parts_of(9, 1, threads, work) == list(range(9))


@pytest.mark.parametrize("threads", [1, 3])
def test_each_part_is_as_large_as_is_said_then(threads):
    sizes = iter([2, 2, 3, 1, 5, 5, 5, 5])
    found = list(in_order_of(lambda start, end: (start, end), lambda: next(sizes), 11, threads))
    assert found[0][0] == 0
    assert found[-1][1] == 11
    assert all(one[1] == other[0] for one, other in pairwise(found))
    assert {end - start for start, end in found[:-1]} <= {1, 2, 3, 5}


def test_one_part_needs_no_thread():
    here = threading.current_thread()
    assert parts_of(10, 10, 4, lambda *_: threading.current_thread()) == [here]
    assert parts_of(11, 10, 1, lambda *_: threading.current_thread()) == [here, here]
    assert here not in parts_of(11, 10, 2, lambda *_: threading.current_thread())


@pytest.mark.parametrize("threads", [2, 3])
def test_nothing_is_done_far_ahead(threads):
    """At most one part more than there are threads is begun and not yet taken."""
    begun = []
    parts = in_order_of(lambda start, _end: begun.append(start), lambda: 1, 100, threads)
    assert begun == []
    for taken in range(1, 30):
        next(parts)
        time.sleep(0.001)  # in which the threads could begin too much
        assert len(begun) <= taken + threads + 1
    parts.close()
    assert len(begun) < 40


@pytest.mark.parametrize("threads", [1, 2])
def test_who_stops_early_stops_the_work(threads):
    begun = []
    parts = in_order_of(lambda start, _end: begun.append(start), lambda: 1, 50, threads)
    next(parts)
    parts.close()
    assert alive() == []
    assert len(begun) <= threads + 2
    begun.clear()
    parts = in_order_of(lambda start, _end: begun.append(start), lambda: 1, 50, threads)
    next(parts)
    del parts
    assert alive() == []
    assert len(begun) <= threads + 2


def test_what_nobody_asks_for_is_not_begun():
    begun = []
    parts = in_order_of(lambda start, _end: begun.append(start), lambda: 1, 50, 2)
    assert begun == []
    del parts
    assert begun == []
    assert alive() == []


@each("threads", [1, 2, 4])
def test_an_error_comes_in_its_place(threads):
    def work(start, _end):
        if start == 3:
            raise MemoryError(start)
        return start

    found = []
    parts = in_order_of(work, lambda: 1, 50, threads)
    with pytest.raises(MemoryError, match="3"):
        found.extend(parts)
    parts.close()
    assert alive() == []
    with pytest.raises(StopIteration):
        next(parts)


def test_the_work_is_shared():
    """Two parts wait for each other, so they must run at once."""
    together = threading.Barrier(2, timeout=10)
    assert sorted(parts_of(2, 1, 2, lambda *_: together.wait())) == [0, 1]
