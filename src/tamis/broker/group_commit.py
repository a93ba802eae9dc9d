"""Changes of the catalogue, many in one transaction: those that come during a sync share the next.

Some wait for their change to be safe. How far subscriptions have come is written a little later,
and once for all that happened meanwhile: if it is lost in a crash, events are delivered again.
"""

import asyncio
import logging
from typing import Protocol

from tamis.broker.catalogue import Catalogue
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.workers import CATALOGUE, Workers
from tamis.errors import Busy

LATER = 0.05  # seconds until what nobody waits for is written
AT_ONCE = 200  # of those who waited, until others have their turn
PAUSE = 4  # and at least this many times as long as writing took, if there is much of it

logger = logging.getLogger("tamis.broker")


class StoredLater(Protocol):
    """Something whose state is stored from time to time.

    Implementers: Attachment, Departures, Note.
    """

    def catalogue_change(self) -> CatalogueChange:
        """The change that stores its state of now."""


class GroupCommit:
    """Commits changes of a catalogue together."""

    def __init__(self, catalogue: Catalogue, workers: Workers) -> None:
        self._catalogue = catalogue
        self._workers = workers
        self._waiting: list[tuple[tuple[CatalogueChange, ...], asyncio.Future[None]]] = []
        self._stored_later: dict[StoredLater, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._took = 0.0  # seconds, for what was written last
        self._closing = False
        self._wake = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="tamis group commit")

    async def commit(self, *changes: CatalogueChange) -> None:
        """Return when changes are safe on disk; raises `Busy` if that failed, and none was made."""
        if not changes:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((changes, done))
        self._wake.set()
        await done

    def store_later(self, one: StoredLater) -> None:
        """Store soon the state that something has then."""
        self._stored_later[one] = None
        if self._timer is None:
            delay = max(LATER, PAUSE * self._took)
            self._timer = asyncio.get_running_loop().call_later(delay, self._wake.set)

    def forget(self, one: StoredLater) -> None:
        """Do not store the state of something: it is gone, or somebody stores it."""
        self._stored_later.pop(one, None)

    async def _run(self) -> None:
        while not self._closing or self._waiting or self._stored_later:
            await self._wake.wait()
            await self._commit_all()

    async def _commit_all(self) -> None:
        self._wake.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        stored_later, self._stored_later = self._stored_later, {}
        began = asyncio.get_running_loop().time()
        changes = [change for some, _ in waiting for change in some]
        changes += [one.catalogue_change() for one in stored_later]
        if not changes:
            return
        try:
            await self._workers.run(CATALOGUE, self._catalogue.commit, changes)
        except Exception as error:  # whatever it is: those who wait are told, and others go on
            logger.exception("the catalogue cannot be written")
            for _, done in waiting:
                if not done.done():
                    problem = f"the catalogue cannot be written: {error}; try again"
                    done.set_exception(Busy(problem))
            if not self._closing:
                for one in stored_later:
                    self.store_later(one)
        else:
            self._took = asyncio.get_running_loop().time() - began
            for number, (_, done) in enumerate(waiting, 1):
                if not done.done():
                    done.set_result(None)
                if number % AT_ONCE == 0:  # what they do next may take long, together
                    await asyncio.sleep(0)

    async def flush(self) -> None:
        """Write now what would be written soon."""
        while self._stored_later or self._waiting:
            self._wake.set()
            await asyncio.sleep(0)
        await self._workers.run(CATALOGUE, int)  # what was begun before it is done

    async def close(self) -> None:
        """Write what is left, and stop."""
        self._closing = True
        self._wake.set()
        await self._task
