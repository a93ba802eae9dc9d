"""The threads of a broker: everything that waits for a disk or computes for long runs in one.

A simulation gives a broker workers of its own, which call at once or in an order that it chooses.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

CATALOGUE = "catalogue"  # one thread: what is asked of the catalogue happens in order
LOG = "log"  # writing and syncing
MATCH = "match"  # matching, and reading what is matched


class Workers:
    """Threads for each kind of work."""

    def __init__(self) -> None:
        cores = os.cpu_count() or 1
        self._pools = {
            kind: ThreadPoolExecutor(count, thread_name_prefix=f"tamis-{kind}")
            for kind, count in ((CATALOGUE, 1), (LOG, max(4, cores)), (MATCH, max(2, cores)))
        }

    async def run(self, kind: str, function: Callable[..., T], *arguments: Any) -> T:
        """The answer of a function that a thread calls."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pools[kind], function, *arguments)

    def close(self) -> None:
        """End the threads, when all of their work is done."""
        for pool in self._pools.values():
            pool.shutdown()
