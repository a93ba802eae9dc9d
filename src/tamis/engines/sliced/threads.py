"""Parts of a batch on several threads; kernels release the interpreter's lock."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tamis.language.arrival import arrival, arriving

T = TypeVar("T")


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order_of(
    work: Callable[[int, int], T], step: Callable[[], int], size: int, threads: int
) -> Iterator[T]:
    """work(start, end) for all parts of range(size), in their order.

    `step` says how large the next part is. To bound memory, at most one part more than there are
    threads is computed ahead of the one that the caller takes next. In all threads, events arrive
    at the moment at which they do here.
    """
    threads = threads or processors()
    if threads == 1 or size <= step():
        start = 0
        while start < size:
            end = min(start + step(), size)
            yield work(start, end)
            start = end
        return
    moment = arrival()

    def work_there(start: int, end: int) -> T:
        with arriving(moment):
            return work(start, end)

    with ThreadPoolExecutor(threads, thread_name_prefix="tamis") as pool:
        waiting: deque[Future[T]] = deque()
        start = 0
        try:
            while start < size or waiting:
                while start < size and len(waiting) <= threads:
                    end = min(start + step(), size)
                    waiting.append(pool.submit(work_there, start, end))
                    start = end
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
