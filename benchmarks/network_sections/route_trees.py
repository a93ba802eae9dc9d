"""Trees of `Routes`, the very tables that brokers have, without brokers around them.

What one of them is to tell another is handed over at once, and counted: filters that were announced
and withdrawn, answers, and the bytes of the frames that would carry them. Events go where the
tables lead them; `carried` checks that every site with a subscriber is reached.
"""

import itertools
import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.broker.network.frames import frame_of
from tamis.broker.network.messages import Established, Filters
from tamis.broker.network.routes import PeerNews, Routes
from tamis.routing.filter_cache import shared_cache
from tamis.routing.kinds import FilterKind
from tamis.schema import Schema

TOPIC = "model"
Array = np.ndarray[Any, Any]
Link = tuple[int, int]  # from the broker that tells, to the one that is told


@dataclass(frozen=True)
class Tree:
    """A tree of brokers: the parent of each one but the first comes before it."""

    parents: tuple[int, ...]  # of broker 1, 2, ...

    @property
    def size(self) -> int:
        """How many brokers there are."""
        return len(self.parents) + 1

    def links(self) -> list[Link]:
        """The links, child and parent."""
        return [(child, parent) for child, parent in enumerate(self.parents, 1)]

    def behind(self) -> dict[Link, Array]:
        """For each link and direction, which brokers are on the side of the one that tells."""
        inside = np.eye(self.size, dtype=bool)
        for child in range(self.size - 1, 0, -1):
            inside[self.parents[child - 1]] |= inside[child]
        found = {}
        for child, parent in self.links():
            found[child, parent] = inside[child]
            found[parent, child] = ~inside[child]
        return found


def random_tree(size: int, seed: int = 1) -> Tree:
    """Each broker is linked with one of those before it."""
    chance = random.Random(f"{seed} tree")
    return Tree(tuple(chance.randrange(n) for n in range(1, size)))


def balanced_tree(size: int, degree: int) -> Tree:
    """Each broker has that many below it, as far as there are brokers."""
    return Tree(tuple((n - 1) // degree for n in range(1, size)))


@dataclass
class Told:
    """What brokers have told each other."""

    added: int = 0
    removed: int = 0
    answered: int = 0
    bytes: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)


class RouteTree:
    """A tree of brokers' tables for one topic."""

    def __init__(self, tree: Tree, schema: Schema, advertised: Mapping[int, Iterable[str]]) -> None:
        """`advertised` has the filters that publishers at some brokers keep to."""
        self.tree = tree
        self.told = Told()
        self._schema = schema
        self._cache = shared_cache(schema, "sql", None)
        ids = itertools.count()
        self._established: set[str] = set()
        self._routes = [
            Routes(self._cache, lambda: str(next(ids)), self._established.add)
            for _ in range(tree.size)
        ]
        self._near: list[list[int]] = [[] for _ in range(tree.size)]
        for child, parent in tree.links():
            self._near[child].append(parent)
            self._near[parent].append(child)
        for broker, texts in advertised.items():
            for number, text in enumerate(texts):
                self._routes[broker].advertise(f"a{number}", str(self._cache.parse(text)))
        for broker, routes in enumerate(self._routes):
            for peer in self._near[broker]:
                routes.meet(str(peer))
        for broker, routes in enumerate(self._routes):
            for peer in self._near[broker]:
                routes.open(str(peer))
        self._carry(range(tree.size))

    def subscribe(self, broker: int, id_: str, text: str) -> None:
        """A client subscribes, and everything that follows happens."""
        self._routes[broker].want(id_, str(self._cache.parse(text)))
        self._carry([broker])
        if id_ not in self._established:
            raise AssertionError(f"subscription {id_} is not established")

    def _carry(self, first: Iterable[int]) -> None:
        """Hand over all news until there are none."""
        waiting = deque(first)
        while waiting:
            broker = waiting.popleft()
            for peer in self._near[broker]:
                for news in self._routes[broker].news(str(peer)):
                    self._take(broker, peer, news)
                    waiting.append(peer)

    def _take(self, sender: int, receiver: int, news: PeerNews) -> None:
        routes, name, told = self._routes[receiver], str(sender), self.told
        if news.kind is None:
            told.answered += len(news.established)
            told.bytes += len(frame_of([Established(TOPIC, news.established)]))
            routes.acknowledge(name, news.established)
            return
        kind = news.kind
        told.added += len(news.added)
        told.removed += len(news.removed)
        told.by_kind[kind.value] += len(news.added) + len(news.removed)
        message = Filters(TOPIC, kind.value, news.is_full, news.added, news.removed)
        told.bytes += len(frame_of([message]))
        routes.hold(name, kind, news.added)
        routes.drop(name, kind, news.removed)
        if news.is_full:
            routes.discard(name, kind, routes.unheard(name, kind, news.added))
            routes.heard_all(name, kind)

    def held(self) -> dict[Link, int]:
        """How many subscriptions each broker holds for each neighbour: (neighbour, broker)."""
        return {
            (peer, broker): len(routes.filters_of(str(peer), FilterKind.SUBSCRIPTION))
            for broker, routes in enumerate(self._routes)
            for peer in self._near[broker]
        }

    def carried(self, events: pa.Table, homes: Array, wanted: Mapping[int, list[str]]) -> int:
        """On how many links events are sent that are published at `homes`.

        Raises an error if a site is not reached whose subscriptions (`wanted`) match.
        """
        lets: dict[Link, Array] = {}
        for broker, routes in enumerate(self._routes):
            for peer in self._near[broker]:
                held = list(routes.filters_of(str(peer), FilterKind.SUBSCRIPTION).values())
                lets[broker, peer] = _matching(self._schema, held, events)
        reached = np.zeros((self.tree.size, len(events)), bool)
        links = 0
        for start in np.unique(homes):
            here = homes == start
            reached[start] |= here
            seen = {int(start)}
            waiting = deque([(int(start), here)])
            while waiting:
                broker, having = waiting.popleft()
                for peer in self._near[broker]:
                    if peer in seen:
                        continue
                    seen.add(peer)
                    going = having & lets[broker, peer]
                    links += int(going.sum())
                    reached[peer] |= going
                    if going.any():
                        waiting.append((peer, going))
        for broker, texts in wanted.items():
            if (_matching(self._schema, texts, events) & ~reached[broker]).any():
                raise AssertionError(f"events that broker {broker} wants do not come to it")
        return links


def _matching(schema: Schema, texts: list[str], events: pa.Table) -> Array:
    """Which events match one of the filters."""
    if not texts:
        return np.zeros(len(events), bool)
    matcher = tamis.Matcher(schema)
    matcher.subscribe_many(enumerate(texts))
    counts: Array = matcher.match_batch(events, "counts")["count"].to_numpy()
    return counts > 0
