"""Forwarding of filters: what each hop has, and which neighbours are told of it.

A **subscription** of a hop is forwarded to every other neighbour that it concerns: with
advertisements, every neighbour that has advertised an event that it may match. An **advertisement**
is forwarded to every other neighbour, which then tells us of the subscriptions that it concerns.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol

from tamis.routing.advertised_interests import AdvertisedInterests
from tamis.routing.announcements import Announcer
from tamis.routing.filter_cache import FilterCache
from tamis.routing.hop_filters import HopFilters
from tamis.routing.kinds import FilterKind, kind_of
from tamis.routing.messages import FilterMessage
from tamis.routing.reductions import Everything, Reduction, reduction_of
from tamis.routing.requests import OpenRequests, Request
from tamis.routing.strategies import Merging, Strategy


class Tables(NamedTuple):
    """The filters that a broker holds of each hop, and that each neighbour holds of it."""

    subscriptions: dict[str, tuple[str, ...]]
    advertisements: dict[str, tuple[str, ...]]
    sent_subscriptions: dict[str, tuple[str, ...]]
    sent_advertisements: dict[str, tuple[str, ...]]


class ToldBroker(Protocol):
    """A broker next to this one that is told of filters.

    Implementers: Neighbour, RoutePeer.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def is_up(self) -> bool:
        """Whether it can be reached, so that requests wait for its Acks."""

    @property
    def announcers(self) -> Mapping[FilterKind, Announcer]:
        """What it is told."""


class ToldBrokers(Protocol):
    """The brokers next to this one, by their names.

    Implementers: Neighbours, RoutePeers.
    """

    def __contains__(self, name: str) -> bool: ...

    def __getitem__(self, name: str) -> ToldBroker: ...

    def __iter__(self) -> Iterator[ToldBroker]: ...

    def others(self, hop: str) -> Sequence[ToldBroker]:
        """All neighbours, except `hop` if it is one."""


class Forwarding:
    """The two routing tables of a broker, and the announcements that follow from them.

    `subscriptions`, which is empty at first, is the paper's publication routing table (PRT),
    `advertisements` its subscription routing table (SRT). `answer` is called with each request
    when everything that it led to is done.

    A strategy may tell nothing of one kind of filters. If it is `mixed`, so that neighbours may
    have another one, they are told TRUE instead: that everything is wanted, or may be published.
    """

    def __init__(
        self,
        neighbours: ToldBrokers,
        strategy: Strategy,
        merging: Merging,
        cache: FilterCache,
        answer: Callable[[Request], None],
        subscriptions: HopFilters,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self.subscriptions = subscriptions
        self.advertisements = HopFilters()
        self.requests = OpenRequests(answer)
        self._neighbours = neighbours
        self._strategy = strategy
        self._merging = merging
        self._cache = cache
        self._interests = AdvertisedInterests(cache)
        ids = count(1)
        self._new_id = new_id or (lambda: str(next(ids)))

    def table(self, kind: FilterKind) -> HopFilters:
        """The filters of one kind."""
        return self.subscriptions if kind is FilterKind.SUBSCRIPTION else self.advertisements

    def tables(self) -> Tables:
        """All filters that are held here, and by neighbours because of us."""
        return Tables(
            self.subscriptions.by_hop(),
            self.advertisements.by_hop(),
            self._announced(FilterKind.SUBSCRIPTION),
            self._announced(FilterKind.ADVERTISEMENT),
        )

    def _announced(self, kind: FilterKind) -> dict[str, tuple[str, ...]]:
        sides = ((one.name, one.announcers[kind].announced()) for one in self._neighbours)
        return {name: announced for name, announced in sides if announced}

    # --- what a neighbour is told

    def announcers_for(self, neighbour: str) -> dict[FilterKind, Announcer]:
        """The announcers of a new neighbour, which know the filters of all other hops."""
        announcers = {}
        for kind in FilterKind:
            announcers[kind] = Announcer(
                self._reduction(neighbour, kind),
                self._concerns(neighbour, kind),
                self._new_id,
                self.requests.finish,
            )
            for text in self.table(kind).of_others(neighbour):
                announcers[kind].add(text)
        return announcers

    def _reduction(self, neighbour: str, kind: FilterKind) -> Reduction:
        """Which filters stand for those that a neighbour is told of."""
        if self._strategy.mixed and not self._strategy.tells(kind):
            return Everything()

        def advertised() -> list[str]:
            return list(self.advertisements.of(neighbour).values())

        of_publications = advertised if kind is FilterKind.SUBSCRIPTION else None
        return reduction_of(self._strategy, self._merging, self._cache, of_publications, neighbour)

    def _concerns(self, neighbour: str, kind: FilterKind) -> Callable[[str], bool]:
        """Whether a filter is of interest to a neighbour, as a function of its text."""
        if not self._strategy.tells(kind):
            return lambda _: self._strategy.mixed
        if kind is FilterKind.ADVERTISEMENT or not self._strategy.advertisements:
            return lambda _: True

        return partial(self._interests.concerns, neighbour)

    # --- requests

    def accept(self, hop: str, message: FilterMessage, text: str | None = None) -> None:
        """Add a filter (`text`) or remove one; the answer follows when all is done everywhere."""
        kind = kind_of(message)
        request = self.requests.open(hop, message)
        before = self.table(kind).of(hop).get(message.id)
        if text is None:
            self._remove(kind, hop, message.id)
        elif before != text:
            self._add(kind, hop, message.id, text)
            if before is not None:
                self._withdraw(kind, hop, before)
        self._wait(request, text)
        if not request.pending:
            self.requests.finish(request)

    def _wait(self, request: Request, text: str | None) -> None:
        """Let a request wait until its filter (`text`) is live, or what it removed is gone."""
        for neighbour in self._neighbours:
            if not neighbour.is_up:
                continue
            if neighbour.name != request.hop:
                announcer = neighbour.announcers[request.kind]
                texts: Collection[str] | None = None if text is None else [text]
            elif request.kind is FilterKind.ADVERTISEMENT:  # the subscriptions that concern it
                announcer = neighbour.announcers[FilterKind.SUBSCRIPTION]
                texts = None if text is None else self._concerned(announcer, text)
            else:
                continue
            if texts is None:
                announcer.wait_until_gone(request)
            else:
                announcer.wait_until_live(texts, request)

    def forget(self, hop: str) -> None:
        """Remove all filters of a hop that has gone, and answer none of its requests."""
        self.requests.forget(hop)
        for kind in (FilterKind.SUBSCRIPTION, FilterKind.ADVERTISEMENT):
            for id_ in list(self.table(kind).of(hop)):
                self._remove(kind, hop, id_)

    def discard(self, hop: str, kind: FilterKind, id_: str) -> None:
        """Remove a filter that nobody asks about: there is no answer."""
        self._remove(kind, hop, id_)

    # --- changes of a table

    def _add(self, kind: FilterKind, hop: str, id_: str, text: str) -> None:
        self.table(kind).put(hop, id_, text)
        is_subscription = kind is FilterKind.SUBSCRIPTION
        if is_subscription:
            self._interests.subscribe(text)
        for neighbour in self._neighbours.others(hop):
            neighbour.announcers[kind].add(text)
        if not is_subscription and self._interests.advertise(hop, text):
            self._reconsider(hop, text)

    def _remove(self, kind: FilterKind, hop: str, id_: str) -> None:
        self._withdraw(kind, hop, self.table(kind).take(hop, id_))

    def _withdraw(self, kind: FilterKind, hop: str, text: str) -> None:
        """Tell the neighbours that a hop does not have a filter any more."""
        is_subscription = kind is FilterKind.SUBSCRIPTION
        if is_subscription:
            self._interests.unsubscribe(text)
        for neighbour in self._neighbours.others(hop):
            neighbour.announcers[kind].drop(text)
        if not is_subscription and self._interests.unadvertise(hop, text):
            self._reconsider(hop, text)

    def _reconsider(self, hop: str, text: str) -> None:
        """After an advertisement of a neighbour came or went, other subscriptions concern it."""
        if hop in self._neighbours:
            announcer = self._neighbours[hop].announcers[FilterKind.SUBSCRIPTION]
            announcer.reconsider(self._concerned(announcer, text))

    def _concerned(self, announcer: Announcer, text: str) -> Collection[str]:
        """The subscriptions that an advertisement may concern; others may be among them."""
        texts = self._interests.concerned(text, self.subscriptions.texts())
        return announcer.known if texts is None else texts
