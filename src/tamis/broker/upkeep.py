"""What a broker does from time to time: redeliveries, sealed segments, retention."""

import asyncio
import logging
from contextlib import suppress

from tamis.broker.catalogue import put_topic
from tamis.broker.host import Host
from tamis.broker.settings import Settings
from tamis.broker.topic import Topic
from tamis.broker.topics import Topics
from tamis.broker.workers import LOG

TICK = 0.25  # seconds
UPKEEP = 5.0  # seconds between looks at the files of topics

logger = logging.getLogger("tamis.broker")


class Upkeep:
    """Does what is due."""

    def __init__(self, host: Host, topics: Topics, settings: Settings) -> None:
        self._host = host
        self._topics = topics
        self._settings = settings
        self._files_due = host.monotonic()
        self._busy = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on."""
        self._task = asyncio.create_task(self._run(), name="tamis upkeep")

    async def stop(self) -> None:
        """Look no more; what has begun is finished."""
        async with self._busy:
            if self._task is not None:
                self._task.cancel()
                with suppress(asyncio.CancelledError):
                    await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            try:
                await self.tick()
            except Exception:  # without upkeep nothing would expire any more
                logger.exception("upkeep failed, and is tried again")

    async def tick(self) -> None:
        """Do what is due by now."""
        async with self._busy:
            for found in self._topics:
                found.topic.tick()
            self._host.network.tick()
            if self._host.monotonic() >= self._files_due:
                self._files_due = self._host.monotonic() + UPKEEP
                for found in self._topics:
                    await self._keep_files(found.topic)

    async def _keep_files(self, topic: Topic) -> None:
        run, log = self._host.workers.run, topic.log
        now = int(self._host.clock() * 1_000_000)
        try:
            while await run(LOG, log.seal_if_due, now):
                pass
            kept = topic.row.retention or self._settings.retention_of(topic.name)
            gone = await run(LOG, log.expire, now, kept.max_age, kept.max_bytes, kept.max_events)
        except OSError as error:
            logger.warning("files of topic %r cannot be sealed or removed: %s", topic.name, error)
            return
        if gone.events:
            logger.info(
                "%d events of topic %r expired, %d bytes; the first one is now %d",
                gone.events, topic.name, gone.bytes, gone.first_offset,
            )  # fmt: skip
            topic.were_removed(gone.events)
        if topic.row_now() != topic.row:
            row = topic.row_now()
            await self._host.commits.commit(put_topic(row))
            topic.row = row
