"""Memory for results, used again when nothing refers to them any more.

The tables of matches are large and short-lived. Fresh memory costs several times as much as
writing to it: the system gives it page by page, and has to clear each page. So results are written
into blocks that are handed out by `ResultMemory` and come back to it on their own: numpy and Arrow
keep the owner of a buffer alive as long as any array, table or slice refers to it, and when the
owner goes, its block is free.

No lock is needed, and none may be taken: an owner can go while the garbage collector runs, in any
thread, also in the middle of `take`. Free blocks are in deques, whose methods are atomic.
"""

import os
import weakref
from collections import deque
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SMALLEST = 1 << 16  # bytes; smaller results come from the allocator, which reuses memory itself
LARGEST = 1 << 30  # bytes of all free blocks, or an eighth of the machine's memory
STEPS = 4  # sizes of blocks between two powers of two
IDLE = 4096  # blocks that were handed out since, until a free one is given back to the system


class Owner:
    """What owns a block that is in use; numpy makes arrays of it that refer to it."""

    __slots__ = ("__array_interface__", "__weakref__")

    def __init__(self, block: Array) -> None:
        self.__array_interface__ = block.__array_interface__


class ResultMemory:
    """Blocks of memory; free ones, of at most `most` bytes together, are handed out again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0  # how many blocks were handed out: the time
        # By size, the free blocks with their times; the last one used last, as it may be cached.
        self._free: dict[int, deque[tuple[int, Array]]] = {}

    def take(self, size: int, dtype: Any) -> Array:
        """An array that is not initialised."""
        kind = np.dtype(dtype)
        needed = size * kind.itemsize
        if needed < SMALLEST:
            return np.empty(size, kind)
        self._taken += 1
        block = self._reused(block_size(needed))
        owner = Owner(block)
        weakref.finalize(owner, self._give_back, block).atexit = False
        whole: Array = np.asarray(owner)
        return whole[:needed].view(kind)

    def free(self) -> int:
        """How many bytes wait to be used again."""
        return sum(size * len(blocks) for size, blocks in list(self._free.items()))

    def _reused(self, size: int) -> Array:
        """A free block of a size, or of one of the next sizes, or a new one."""
        larger = size
        for _ in range(STEPS):
            blocks = self._free.get(larger)
            try:
                if blocks:
                    return blocks.pop()[1]
            except IndexError:  # another thread took the last one
                pass
            larger = block_size(larger + 1)
        return np.empty(size, np.uint8)

    def _give_back(self, block: Array) -> None:
        self._free.setdefault(block.nbytes, deque()).append((self._taken, block))
        while True:
            kept = [blocks for blocks in list(self._free.values()) if blocks]
            try:
                oldest = min(kept, key=lambda blocks: blocks[0][0])
                if self.free() <= self._most and oldest[0][0] > self._taken - IDLE:
                    return
                oldest.popleft()
            except (IndexError, ValueError):  # another thread took it
                return


def block_size(needed: int) -> int:
    """The size of a block for some bytes, one of a few, so that blocks fit again."""
    step = 1 << max(0, needed.bit_length() - STEPS.bit_length())
    return -(-needed // step) * step


def _machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


RESULTS = ResultMemory(min(LARGEST, _machine() // 8))
