"""Mergers of the filters that peers are told: looked for in a thread, and kept in the catalogue."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tamis.broker import peer_rows
from tamis.broker.peer_rows import Note, RowSource
from tamis.broker.workers import MATCH
from tamis.routing.reductions import KnownMerger, Search

if TYPE_CHECKING:
    from tamis.broker.network.profile_exchange import ProfileExchange
    from tamis.broker.network.routes import Routes
    from tamis.broker.topic import Topic
    from tamis.routing.announcements import Announcer

MERGERS = "mergers"  # the name of what the catalogue keeps
_decode = msgspec.msgpack.Decoder(dict[str, list[KnownMerger]]).decode

logger = logging.getLogger("tamis.broker")


class TopicMergers:
    """The mergers of one topic, for all peers, with one set of routes."""

    def __init__(
        self, topic: "Topic", routes: "Routes", profiles: "ProfileExchange",
        tell: Callable[[], None],
    ) -> None:  # fmt: skip
        self._topic = topic
        self._routes = routes
        self._profiles = profiles
        self._tell = tell
        self._looking: asyncio.Task[None] | None = None

    def load(self, tables: RowSource) -> None:
        """Make the mergers again that an earlier run has kept; their parts are known."""
        for peer, packed in peer_rows.notes(tables, self._topic.number, MERGERS).items():
            if peer in self._routes.peers:
                self._routes.restore(peer, _decode(packed))

    def tick(self) -> None:
        """Look for mergers, and at events, if it is time and that is not under way."""
        if self._looking is not None and not self._looking.done():
            return
        now = self._topic.host.monotonic()
        searches = self._routes.searches(now)
        if searches or self._profiles.is_due:
            name = f"tamis {self._topic.name} looks"
            self._looking = asyncio.create_task(self._look(searches, now), name=name)

    async def _look(self, searches: "list[tuple[str, Announcer, Search]]", now: float) -> None:
        try:
            await self._profiles.tick()
            for peer, announcer, search in searches:
                found = await self._topic.host.workers.run(MATCH, search)
                if peer in self._routes.peers:
                    announcer.adopt(found, now)
                    self._topic.host.commits.store_later(self._note(peer))
                    self._tell()
        except Exception:  # filters are right without mergers, too
            logger.exception("the filters of topic %r are not merged", self._topic.name)

    def _note(self, peer: str) -> Note:
        def content() -> bytes:
            known = self._routes.mergers(peer) if peer in self._routes.peers else {}
            return msgspec.msgpack.encode(known)

        return Note(self._topic.number, peer, MERGERS, content)

    def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
