"""Workers without threads: a function runs as a whole at some moment, its answer comes later.

A process can end before a function runs, while it runs (the disk stops it), or before its answer
comes. Functions of the catalogue run one after the other, as one thread would run them.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from tamis.broker.simulation.simulated_disk import Stopped
from tamis.broker.workers import CATALOGUE, LOG, Workers

T = TypeVar("T")


class SimulatedWorkers(Workers):
    """Runs functions in virtual time."""

    def __init__(self, random: Random, stop: Callable[[], None], pace: float = 0.002) -> None:
        """`stop` ends the process, when its disk says so; `pace`: seconds that a call may take."""
        self.slowness = 1.0  # this many times as long as usual
        self._pace = pace
        self._random = random
        self._stop = stop
        self._free_at = 0.0  # when the thread of the catalogue is free

    async def run(self, kind: str, function: Callable[..., T], *arguments: Any) -> T:
        """The answer of a function, after some time."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def call() -> None:
            try:
                found = function(*arguments)
            except Stopped:
                self._stop()
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                loop.call_at(ends, _fail, done, error)
            else:
                loop.call_at(ends, _answer, done, found)

        longest = self._pace * self.slowness if kind in {LOG, CATALOGUE} else 0.002
        random = self._random.random
        starts = loop.time() + longest * random()
        if kind == CATALOGUE:
            starts = max(starts, self._free_at)
        ends = starts + longest * random()
        if kind == CATALOGUE:
            self._free_at = ends
        loop.call_at(starts, call)
        return await done

    def close(self) -> None:
        """Nothing is to be ended."""


def _answer(done: "asyncio.Future[T]", found: T) -> None:
    if not done.done():
        done.set_result(found)


def _fail(done: "asyncio.Future[Any]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
