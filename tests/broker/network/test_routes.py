"""Filters of a network through lost links and restarts: what is established stays established.

Brokers are `Routes` with a dict for a catalogue, links are queues. A subscription that was
established while all links were up is *firm*. From then on, at every moment, each broker on the way
from a publisher holds filters for the next one by which all that may be published and matches it is
sent, whatever is cut, crashes, is merged, or is subscribed and unsubscribed meanwhile. One that was
established while links were being opened is *early*: the same is true of it wherever events are
sent already; where they are not, they wait for it. Brokers have one strategy of routing, or each
its own.
"""

import functools
import itertools
import os
import random
from collections import deque

import pytest

from cases import each
from tamis.broker.network.routes import Routes
from tamis.routing.announcements import Announcer
from tamis.routing.filter_cache import shared_cache
from tamis.routing.kinds import FilterKind
from tamis.routing.strategies import STRATEGIES, Merging, strategy_of
from tamis.schema import Schema

SEEDS = int(os.environ.get("TAMIS_SEEDS", "10"))
HIGHEST = 30  # price
CACHE = shared_cache(Schema({"price": f"int(0, {HIGHEST})"}), "sql", None)


class Node:
    """A broker: its filters in memory, and what its catalogue has."""

    def __init__(self, name, peers, strategy, merging, published):
        self.name, self.peers = name, peers
        self.strategy, self.merging = strategy_of(strategy), merging
        self.published = published  # what its clients may publish
        self.rows = {(peer, kind): {} for peer in peers for kind in FilterKind}
        self.wanted = {}  # ids and filters of its durable subscriptions
        self.mergers = {peer: {} for peer in peers}
        self.established = set()
        self.starts = itertools.count()
        self.start()

    def start(self):
        self.heard = {key: set() for key in self.rows}  # in the parts of what is full
        numbers, start = itertools.count(), next(self.starts)
        self.routes = Routes(
            CACHE, lambda: f"{start}.{next(numbers)}", self.established.add, self.strategy,
            self.merging,
        )  # fmt: skip
        self.routes.advertise("guest", self.published)
        for peer in self.peers:
            self.routes.meet(peer)
            for kind in FilterKind:
                self.routes.hold(peer, kind, self.rows[peer, kind])
        for id_, text in self.wanted.items():
            self.routes.want(id_, text)
        for peer, mergers in self.mergers.items():
            self.routes.restore(peer, mergers)

    def keep_mergers(self):
        """Let the catalogue know them, which is done some time later than they are made."""
        self.mergers = {peer: self.routes.mergers(peer) for peer in self.peers}

    def receive(self, peer, message):
        if message is None:  # it has the topic
            self.routes.open(peer)
            for kind in FilterKind:
                self.heard[peer, kind].clear()
        elif message.kind is None:
            self.routes.acknowledge(peer, message.established)
        else:
            held = self.rows[peer, message.kind]
            held.update(message.added)
            self.routes.hold(peer, message.kind, message.added)
            for id_ in message.removed:
                held.pop(id_, None)
            self.routes.drop(peer, message.kind, message.removed)
            if message.is_full:
                self.heard[peer, message.kind].update(message.added)
                if not message.follows:
                    self.hear_all(peer, message.kind)

    def hear_all(self, peer, kind):
        unheard = self.routes.unheard(peer, kind, self.heard[peer, kind])
        for id_ in unheard:
            self.rows[peer, kind].pop(id_, None)
        self.routes.discard(peer, kind, unheard)
        self.routes.heard_all(peer, kind)

    def sends(self, peer):
        """The prices of events that a peer gets."""
        if self.strategy.flooding:
            return prices("TRUE")
        return frozenset().union(*map(prices, self.rows[peer, FilterKind.SUBSCRIPTION].values()))


@functools.cache
def prices(text):
    """The prices that match a filter."""
    return frozenset(price for price in range(HIGHEST + 1) if CACHE.condition(text)((price,)))


class Network:
    """A random tree of brokers, and what goes wrong with it."""

    def __init__(self, seed, *strategies):
        self.random = random.Random(seed)  # noqa: S311 - a run is to be repeated
        count = self.random.randrange(2, 6)
        pairs = [(str(n), str(self.random.randrange(n))) for n in range(1, count)]
        names = [str(n) for n in range(count)]
        peers = {n: [a if b == n else b for a, b in pairs if n in (a, b)] for n in names}
        merging = Merging(self.random.choice(("size 1", "size 3", "every 5s")), 0.1)
        self.nodes = {
            name: Node(name, peers[name], self.random.choice(strategies), merging, self.filter())
            for name in names
        }
        self.queues = {pair: deque() for one in pairs for pair in (one, one[::-1])}
        self.down = set()
        self.firm = {}  # names and ids of subscriptions, and their filters
        self.early = {}
        self.open = {}  # not established yet, each with where it belongs then
        self.ids = itertools.count()
        self.now = 0
        for a, b in pairs:
            self.link(a, b)
        if self.random.randrange(2):  # else subscriptions come while the topic is new to some
            self.settle()

    def filter(self):
        if not self.random.randrange(10):
            return "TRUE"
        low = self.random.randrange(HIGHEST)
        return f"price BETWEEN {low} AND {low + self.random.randrange(HIGHEST - low)}"

    def link(self, a, b):
        self.down.discard(frozenset((a, b)))
        for here, peer in ((a, b), (b, a)):
            self.nodes[here].routes.expect(peer)
            self.queues[here, peer].append(None)

    def cut(self, a, b):
        self.down.add(frozenset((a, b)))
        self.open.clear()
        for pair in ((a, b), (b, a)):
            self.queues[pair].clear()
        self.nodes[a].routes.close(b)
        self.nodes[b].routes.close(a)

    def crash(self, name):
        for peer in self.nodes[name].peers:
            self.cut(name, peer)
        self.nodes[name].start()

    def tell(self):
        """Let everybody tell news, of some filters at a time; whether there were any."""
        are_news = False
        for node in self.nodes.values():
            for peer in node.peers:
                news = node.routes.news(peer, self.random.choice((1, 2, None)))
                if frozenset((node.name, peer)) not in self.down:
                    are_news = are_news or bool(news) or node.routes.has_news(peer)
                    self.queues[node.name, peer].extend(news)
            for id_ in [id_ for id_ in node.established if (node.name, id_) in self.open]:
                text, known = self.open.pop((node.name, id_))
                known[node.name, id_] = text
            node.established.clear()
        return are_news

    def carry(self):
        """Bring one message; whether there was one."""
        waiting = [pair for pair, queue in self.queues.items() if queue]
        if waiting:
            sender, receiver = self.random.choice(waiting)
            message = self.queues[sender, receiver].popleft()
            self.nodes[receiver].receive(sender, message)
            self.tell()
        return bool(waiting)

    def settle(self):
        while self.carry() or self.tell():
            self.check()

    def step(self):
        node = self.random.choice(list(self.nodes.values()))
        self.now += 1
        match self.random.randrange(22):
            case 0 | 1 | 2 | 3:
                id_, text = str(next(self.ids)), str(CACHE.parse(self.filter()))
                node.wanted[id_] = text
                if not self.down:
                    is_quiet = not any(self.queues.values())
                    self.open[node.name, id_] = text, self.firm if is_quiet else self.early
                node.routes.want(id_, text)
            case 4 | 5 if node.wanted:
                id_ = self.random.choice(list(node.wanted))
                del node.wanted[id_]
                for known in (self.firm, self.early, self.open):
                    known.pop((node.name, id_), None)
                node.routes.unwant(id_)
            case 6:
                self.cut(node.name, self.random.choice(node.peers))
            case 7:
                self.crash(node.name)
            case 8 | 9 | 10 if self.down:
                self.link(*sorted(self.random.choice(sorted(map(tuple, map(sorted, self.down))))))
            case 11 | 12 | 13:
                self.settle()
            case 14 | 15:
                node.routes.reduce(self.now)
                if self.random.randrange(2):
                    node.keep_mergers()
            case _:
                self.carry()
        self.tell()

    def check(self):
        for known, coming in ((self.firm, self.published), (self.early, self.on_its_way)):
            for (name, id_), text in known.items():
                for here, peer in self.towards(name):
                    missed = (prices(text) & coming(here, peer)) - self.nodes[here].sends(peer)
                    assert not missed, (here, peer, name, id_, text, missed)

    def towards(self, name):
        """Each other broker, and its peer on the way to a broker."""
        ways, found = [name], {name}
        while ways:
            peer = ways.pop()
            for here in self.nodes[peer].peers:
                if here not in found:
                    found.add(here)
                    ways.append(here)
                    yield here, peer

    def side(self, here, peer):
        """The brokers on one side of a link."""
        away = [one for one in self.nodes[here].peers if one != peer]
        return [here, *(name for one in away for name in self.side(one, here))]

    def published(self, here, peer):
        """The prices that may be published on one side of a link."""
        return frozenset().union(*(prices(self.nodes[n].published) for n in self.side(here, peer)))

    def on_its_way(self, here, peer):
        """The prices of what is sent over a link now: those on the way to it send as well."""
        if not self.nodes[here].routes.is_ready(peer):
            return frozenset()
        away = [one for one in self.nodes[here].peers if one != peer]
        own = prices(self.nodes[here].published)
        return own.union(*(self.on_its_way(one, here) for one in away))

    def finish(self):
        """Bring everything back, and wait until there is nothing to do."""
        for pair in list(self.down):
            self.link(*pair)
        self.settle()
        for node in self.nodes.values():
            node.routes.reduce(self.now + 10)
        self.tell()
        self.settle()


def play(seeds, *strategies):
    for seed in seeds:
        network = Network(seed, *strategies)
        for _ in range(80):
            network.step()
            network.check()
        network.finish()
        # At last every subscription is known everywhere, and nothing else is held.
        for node in network.nodes.values():
            network.firm |= {(node.name, id_): text for id_, text in node.wanted.items()}
        network.check()
        for node in network.nodes.values():
            for peer in node.peers:
                check_tables(network, node, peer)


def check_tables(network, node, peer):
    """Check what a broker holds of a peer, when all is quiet."""
    held = node.rows[peer, FilterKind.SUBSCRIPTION]
    announcer = network.nodes[peer].routes.peers[node.name].announcers[FilterKind.SUBSCRIPTION]
    assert held == node.routes.filters_of(peer, FilterKind.SUBSCRIPTION)
    assert sorted(held.values()) == sorted(announcer.roots)
    assert node.routes.is_ready(peer)
    behind = [network.nodes[name] for name in network.side(peer, node.name)]
    strategies = {one.strategy for one in network.nodes.values()}
    if not any(one.flooding or one.imperfect for one in strategies):
        wanted = (prices(text) for one in behind for text in one.wanted.values())
        assert node.sends(peer) <= frozenset().union(*wanted)
    if network.nodes[peer].strategy.covering:
        assert not any(prices(a) < prices(b) for a in held.values() for b in held.values())


@each("strategy", STRATEGIES)
def test_what_is_established_stays_established(strategy):
    play(range(SEEDS), strategy)


def test_brokers_of_all_strategies_work_together():
    play(range(2 * SEEDS), *STRATEGIES)


def test_mergers_are_made_and_survive_restarts():
    made = 0
    for seed in range(20):
        network = Network(seed, "advertisements+imperfect")
        for _ in range(80):
            network.step()
        network.finish()
        for node in network.nodes.values():
            before = {peer: announced(node, peer) for peer in node.peers}
            known = {peer: set(announcer(node, peer).known) for peer in node.peers}
            made += sum(len(before[peer] - known[peer]) for peer in node.peers)
            node.keep_mergers()
            network.crash(node.name)
            assert {peer: set(announcer(node, peer).roots) for peer in node.peers} == before
            for peer in node.peers:
                network.link(node.name, peer)
            network.settle()
            assert {peer: announced(node, peer) for peer in node.peers} == before
    assert made > 5


def announcer(node, peer):
    return node.routes.peers[peer].announcers[FilterKind.SUBSCRIPTION]


def announced(node, peer):
    return set(announcer(node, peer).announced())


def forgets_filters_with_the_link(routes, name, close=Routes.close):
    close(routes, name)
    routes._forwarding.forget(name)


def acknowledges_too_early(routes, id_, text, want=Routes.want):
    want(routes, id_, text)
    routes._done(id_)


def does_not_wait_for_links_that_open(announcer):
    pass


def keeps_what_was_not_told_again(routes, name, kind, ids):
    pass


def takes_a_part_for_all(node, peer, message, receive=Node.receive):
    whole = message is None or message.kind is None
    receive(node, peer, message if whole else message._replace(follows=False))


def does_not_restore_filters(node, start=Node.start):
    kept, node.rows = node.rows, {key: {} for key in node.rows}
    start(node)
    node.rows = kept


BROKEN = {
    forgets_filters_with_the_link: (Routes, "close"),
    acknowledges_too_early: (Routes, "want"),
    does_not_wait_for_links_that_open: (Announcer, "expect_interests"),
    keeps_what_was_not_told_again: (Routes, "discard"),
    takes_a_part_for_all: (Node, "receive"),
    does_not_restore_filters: (Node, "start"),
}


@each("mistake", list(BROKEN))
def test_a_mistake_is_noticed(mistake, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(*BROKEN[mistake], mistake)
        with pytest.raises(AssertionError):
            play(range(100), "advertisements+covering")
