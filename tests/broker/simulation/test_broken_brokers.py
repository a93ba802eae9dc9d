"""Brokers that are broken on purpose: the simulation must notice each of them.

`SEEDS` says within how many seeds, from the one that stands beside it: the earlier ones do not show
it, and would only take time.
"""

import asyncio
import logging

import pytest

from tamis.broker import peer_rows
from tamis.broker.delivery.window import Window
from tamis.broker.group_commit import GroupCommit
from tamis.broker.log.event_ids import RecentIds
from tamis.broker.log.topic_log import TopicLog
from tamis.broker.network import network
from tamis.broker.network.arrivals import Arrivals
from tamis.broker.network.departures import Departures
from tamis.broker.network.messages import Stored
from tamis.broker.network.network import Network
from tamis.broker.network.own_filters import OwnFilters
from tamis.broker.network.routes import Routes
from tamis.broker.network.shared_topic import SharedTopic
from tamis.broker.peer_rows import PeerRow, put_identity
from tamis.broker.simulation.trial import play
from tamis.broker.subscription_moves import SubscriptionMoves

SEEDS = 200


def stored_before_sync(patch):
    """A peer is told Stored when its events arrive, not when they are safe."""
    put = Arrivals.put

    def put_and_say(self, events):
        self._road.send(Stored(self._topic.name, events.last))
        put(self, events)

    patch(Arrivals, "put", put_and_say)


def place_before_stored(patch):
    """The place of a peer moves when events are sent, not when they are stored."""

    def row(self):
        return PeerRow(self._topic.number, self._peer, self.position, self.lost)

    patch(Departures, "row", row)


def forgotten_filters(patch):
    """What a peer wanted is forgotten at a restart, so it is withdrawn elsewhere."""
    patch(peer_rows, "peer_filters", lambda *_: [])


def unsafe_filters(patch):
    """Filters of a peer are used, and acknowledged, without being stored."""
    patch(SharedTopic, "hold", _hold_without_commit)


async def _hold_without_commit(self, peer, filters):
    commits = self.topic.host.commits
    commit, commits.commit = commits.commit, _nothing
    try:
        await _hold(self, peer, filters)
    finally:
        commits.commit = commit


_hold = SharedTopic.hold


async def _nothing(*_):
    pass


def lost_places(patch):
    """At a restart, the place of a peer is not known, and it begins with what is new."""
    patch(peer_rows, "peers", lambda *_: [])


def places_too_far(patch):
    """At a restart, the place of a peer is beyond what it has stored."""
    peers = peer_rows.peers

    def further(tables, topic):
        return [row._replace(position=row.position + 1) for row in peers(tables, topic)]

    patch(peer_rows, "peers", further)


def forgotten_ids(patch):
    """After a restart, ids of events that were stored before are not known."""

    def recent_ids(self):
        if self._recent is None:
            self._recent = RecentIds()
        return self._recent

    patch(TopicLog, "_recent_ids", recent_ids)


def impatient_departures(patch):
    """Events are sent to a peer before all of its filters are known again."""

    def is_ready(self, name):
        self.peers[name].is_ready = self.peers[name].is_up
        return self.peers[name].is_ready

    patch(Routes, "is_ready", is_ready)


def hasty_subscriptions(patch):
    """A subscription is acknowledged before it is established."""

    async def want(self, id_, expression):
        self.put(id_, expression)

    patch(OwnFilters, "want", want)


def dropped_backlog(patch):
    """What waits for a peer is dropped when it comes back."""
    meet = SharedTopic.open

    async def open_at_end(self, peer, road):
        if peer in self.rows and peer not in self._open:
            end = self.topic.dispatched
            self.rows[peer] = PeerRow(self.topic.number, peer, end)
        await meet(self, peer, road)

    patch(SharedTopic, "open", open_at_end)


def parallel_stores(patch):
    """Events of a peer are stored as they come, without waiting for those before."""

    async def store_all(self):
        while True:
            while not self._waiting:
                self._came.clear()
                await self._came.wait()
            part = self._waiting.popleft()
            asyncio.get_running_loop().create_task(self._store_part(part))

    async def store_part(self, part):
        await asyncio.sleep(0.05 * (part.last % 2))
        await self._store(part.events)
        self._road.send(Stored(self._topic.name, part.last))

    patch(Arrivals, "_store_all", store_all)
    patch(Arrivals, "_store_part", store_part, raising=False)


def another_identity(patch):
    """After a restart, events that have no id of their own are sent with another one."""
    patch(network, "put_identity", lambda id_, starts: put_identity("lost" + id_, starts))


def answered_before_sync(patch):
    """Publishers are answered before their events are safe."""

    def sync(self, _=None):
        self._synced = self._next

    patch(TopicLog, "sync", sync)


def acknowledged_when_sent(patch):
    """What was sent to a subscriber counts as acknowledged."""
    progress = Window.progress

    def nothing_waits(self, position):
        return progress(self, position)._replace(unacknowledged={})

    patch(Window, "progress", nothing_waits)


def careless_commits(patch):
    """Who waits for a change of the catalogue is answered at once."""

    async def commit(self, *changes):
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((changes, done))
        self._wake.set()
        done.add_done_callback(lambda one: one.exception())

    patch(GroupCommit, "commit", commit)


def stale_filters(patch):
    """Filters that a peer has withdrawn while it was not linked stay."""

    patch(Routes, "discard", lambda *_: None)


def overtaking_moves(patch):
    """The request for a subscription overtakes events that are on their way to its old broker."""
    patch(Network, "passed_check", lambda *_: lambda: True)


def unheld_moves(patch):
    """A subscription is asked for before events come to its new broker."""
    arrive = SubscriptionMoves.arrive

    async def arrive_without_holding(self, *given):
        self._subscriptions.want = _nothing
        try:
            return await arrive(self, *given)
        finally:
            del self._subscriptions.want

    patch(SubscriptionMoves, "arrive", arrive_without_holding)


def forgetful_moves(patch):
    """What was sent and not acknowledged at the old broker does not come along."""
    events = SubscriptionMoves._events

    def unsent(self, records, progress):
        return events(self, records, progress._replace(unacknowledged={}))

    patch(SubscriptionMoves, "_events", unsent)


def unsafe_moves(patch):
    """What comes along is not stored before the old broker forgets it."""

    async def store(self, move, part):
        new = move._replace(after=part.after, events=move.events + len(part.events))
        return await self.finish(new) if part.is_last else new

    patch(SubscriptionMoves, "store", store)


BROKEN = {
    stored_before_sync: 127, place_before_stored: 0, forgotten_filters: 3, unsafe_filters: 0,
    lost_places: 3, places_too_far: 3, forgotten_ids: 5, impatient_departures: 16,
    hasty_subscriptions: 169, dropped_backlog: 0, parallel_stores: 3, another_identity: 109,
    answered_before_sync: 0, acknowledged_when_sent: 0, careless_commits: 0, stale_filters: 0,
    overtaking_moves: 96, unheld_moves: 0, forgetful_moves: 452, unsafe_moves: 24,
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("break_it", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_broker_is_caught(break_it, monkeypatch):
    logging.getLogger("tamis.broker").setLevel(logging.CRITICAL)
    break_it(monkeypatch.setattr)
    first = BROKEN[break_it]
    assert any(play(seed).wrong for seed in range(first, first + SEEDS)), break_it.__doc__
