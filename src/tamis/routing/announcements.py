"""The filters that a broker has announced to one neighbour: subscriptions or advertisements.

Rules:

1. *Wanted* are the filters of other hops that concern the neighbour. *Roots* are the few filters
   that stand for them (`reductions.py`): every wanted filter is covered by a root.
2. Every root is announced. An announcement is *coming* until the neighbour's Ack says that it is
   established there and beyond; then it is *live*.
3. An announcement that is not a root any more is *stale*. It is withdrawn only after everything
   that was coming when it became stale is live: its replacement is live before it goes. So at
   every moment a filter that was established is covered by a live announcement.
4. A withdrawn announcement is *going* until its Ack. If it is wanted again before that, it is
   announced again with a new id; the stream is in order, so the neighbour sees it go and come.

No step visits all announcements: what is to be told, and who waits, is kept as it changes.

These rules include MBD's rules for unsubscriptions (section 4.1) and for the cancellation of
mergers (section 5.1.2); docs/decisions/0015 says why there is one rule for all of them.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from tamis.routing.reductions import NO_CHANGE, FoundMergers, KnownMerger, Reduction, RootChange
from tamis.routing.requests import Request


class AnnouncementState(Enum):
    """The state of an announcement."""

    COMING = "announced"
    LIVE = "acknowledged"
    GOING = "withdrawn"


@dataclass(slots=True)
class _Announcement:
    id: str
    state: AnnouncementState


@dataclass(frozen=True, slots=True)
class Update:
    """News for the neighbour: a new filter, or None if the one with this id is withdrawn."""

    id: str
    filter: str | None


class Inherited:
    """Since when announcements count as coming, if they stand for roots that have gone.

    ``add(since, until)`` says: whatever has been coming since a moment up to `until` counts as
    coming since `since`. Both numbers ascend from one entry to the next; an entry with a later
    `since` and an earlier `until` than another one adds nothing.
    """

    __slots__ = ("_since", "_until")

    def __init__(self) -> None:
        self._since: list[int] = []
        self._until: list[int] = []

    def add(self, since: int, until: int) -> None:
        """Let all that is coming now, at `until`, count as coming since a moment."""
        while self._since and self._since[-1] >= since:
            self._since.pop()
            self._until.pop()
        self._since.append(since)
        self._until.append(until)

    def since(self, moment: int) -> int:
        """Since when something counts as coming that has been coming since a moment."""
        place = bisect_left(self._until, moment)
        return moment if place == len(self._until) else min(moment, self._since[place])

    def forget_before(self, moment: int) -> None:
        """Forget what concerns only things that were coming before a moment."""
        place = bisect_left(self._until, moment)
        del self._since[:place], self._until[:place]


@dataclass(slots=True)
class Announcer:
    """The announcements of one kind to one neighbour."""

    reduction: Reduction
    concerns: Callable[[str], bool]  # whether a filter is of interest to the neighbour
    new_id: Callable[[], str]
    finish: Callable[[Request], None]  # called when a request waits for nothing any more

    known: Counter[str] = field(default_factory=Counter)  # filters of other hops
    wanted: dict[str, None] = field(default_factory=dict)
    _unconsidered: OrderedDict[str, None] = field(default_factory=OrderedDict)
    roots: dict[str, None] = field(default_factory=dict)
    _announced: dict[str, _Announcement] = field(default_factory=dict)
    _by_id: dict[str, str] = field(default_factory=dict)
    # Roots that are not live, and stale announcements, each with the moment since when; the oldest
    # first. Of a dict, finding the first is not cheap once others have gone before it.
    _coming: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _stale: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _inherited: Inherited = field(default_factory=Inherited)
    _untold: OrderedDict[str, None] = field(default_factory=OrderedDict)  # roots to be announced
    _moment: int = 0  # changes so far
    _may_have_news: bool = False
    _until_live: dict[str, list[tuple[Request, str]]] = field(default_factory=dict)
    # Requests that came before it is known what concerns the neighbour; None if that is known.
    _until_known: list[tuple[Request, str]] | None = None
    # Announcements that are stale or going, each with the number of requests that had asked for
    # others to be gone before; and those that have asked, each with its number.
    _leaving: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _until_gone: deque[tuple[int, Request]] = field(default_factory=deque)
    _asked: int = 0

    # --- what is known

    def add(self, text: str) -> None:
        """Another hop has a filter."""
        self.known[text] += 1
        if self.known[text] == 1 and self.concerns(text):
            self._want(text)

    def drop(self, text: str) -> None:
        """Another hop does not have a filter any more."""
        self.known[text] -= 1
        if not self.known[text]:
            del self.known[text]
            if text in self.wanted:
                self._unwant(text)
            if text in self._unconsidered:
                del self._unconsidered[text]
                self._revisit(text)

    def reconsider(self, texts: Iterable[str]) -> None:
        """Whether some filters concern the neighbour may have changed: `consider` looks at them."""
        self._unconsidered.update(dict.fromkeys(text for text in texts if text in self.known))

    def consider(self, most: int | None = None) -> None:
        """Look at filters of which it is not known whether they concern the neighbour."""
        some = list(islice(self._unconsidered, most))
        for text in some:
            if text in self.wanted and not self.concerns(text):
                self._unwant(text)
        for text in some:
            if text not in self.wanted and self.concerns(text):
                self._want(text)
        for text in some:
            del self._unconsidered[text]
            self._revisit(text)

    def _want(self, text: str) -> None:
        self.wanted[text] = None
        self._change(self.reduction.add(text))

    def _unwant(self, text: str) -> None:
        del self.wanted[text]
        self._change(self.reduction.remove(text))

    def reduce(self, now: float, *, passed: bool) -> None:
        """Look for mergers, if something has changed or if time has `passed`."""
        if passed or self._may_have_news:
            self._change(self.reduction.reduce(now))

    def adopt(self, found: FoundMergers, now: float) -> None:
        """Make the mergers that a search of the reduction has found."""
        self._change(self.reduction.adopt(found, now))

    def restore(self, known: Iterable[KnownMerger]) -> None:
        """Make mergers that were made before a restart."""
        self._change(self.reduction.restore(known))

    def _change(self, change: RootChange) -> None:
        if change is NO_CHANGE:
            return
        self._may_have_news = True
        self._moment += 1
        moment = self._moment
        for root in change.removed:
            self.roots.pop(root, None)
        for root in change.added:
            self.roots[root] = None
        for root in dict.fromkeys((*change.removed, *change.added)):
            moment = min(moment, self._place(root))
        if moment < self._moment:  # a root that stood for others went before it was announced
            self._inherited.add(moment, self._moment)
        for root in (*change.removed, *change.added):
            self._revisit(root)
        self._release()

    def _place(self, root: str) -> int:
        """Note which of coming, untold, stale and leaving a root or an announcement is now.

        ============= ======================= ======================
        its state     while it is a root      when it is none
        ============= ======================= ======================
        not announced coming, untold
        COMING        coming                  coming, stale, leaving
        LIVE                                  stale, leaving
        GOING         coming, untold, leaving leaving
        ============= ======================= ======================

        Returns the moment since when it was coming, if it has gone; otherwise the current one.
        """
        announced = self._announced.get(root)
        state = announced.state if announced else None
        is_root, since = root in self.roots, self._moment
        if state is AnnouncementState.COMING or (is_root and state is not AnnouncementState.LIVE):
            self._coming.setdefault(root, since)
        elif state is AnnouncementState.LIVE:
            self._coming.pop(root, None)
        elif root in self._coming:
            since = self._inherited.since(self._coming.pop(root))
        if is_root and (state is None or state is AnnouncementState.GOING):
            self._untold[root] = None
        else:
            self._untold.pop(root, None)
        if state in {AnnouncementState.COMING, AnnouncementState.LIVE} and not is_root:
            self._stale.setdefault(root, self._moment)
        else:
            self._stale.pop(root, None)
        if state is AnnouncementState.GOING or (state is not None and not is_root):
            self._leaving.setdefault(root, self._asked)
        else:
            self._leaving.pop(root, None)
        return since

    # --- what is announced

    @property
    def has_news(self) -> bool:
        """Whether there may be something to tell the neighbour."""
        return self._may_have_news or bool(self._unconsidered)

    def take_updates(self, most: int | None = None) -> list[Update]:
        """What the neighbour must be told now; it counts as told.

        With `most`, no more filters than that are told and considered, and there is `has_news` if
        that was not all.
        """
        self.consider(most)
        if not self._may_have_news:
            return []
        new = list(islice(self._untold, most))
        found = [Update(self._announce(root), root) for root in new]
        for root in new:
            self._place(root)
        self._may_have_news = bool(self._untold)
        # What is stale since before all that is coming is live: it came before that.
        oldest = self._oldest_coming()
        while self._stale and next(iter(self._stale.values())) < oldest:
            root, _ = self._stale.popitem(last=False)
            announced = self._announced[root]
            announced.state = AnnouncementState.GOING
            found.append(Update(announced.id, None))
        self._release()
        return found

    def _oldest_coming(self) -> int:
        """The moment since when the oldest of all that is coming counts as coming."""
        if not self._coming:
            self._inherited.forget_before(self._moment + 1)
            return self._moment + 1
        since = next(iter(self._coming.values()))
        self._inherited.forget_before(since)
        return self._inherited.since(since)

    def _announce(self, root: str) -> str:
        before = self._announced.get(root)
        if before is not None:
            del self._by_id[before.id]
        new = self.new_id()
        self._announced[root] = _Announcement(new, AnnouncementState.COMING)
        self._by_id[new] = root
        return new

    def acknowledge(self, announced_id: str) -> bool:
        """Take the neighbour's Ack; False if nothing waits for it."""
        root = self._by_id.get(announced_id)
        if root is None or self._announced[root].state is AnnouncementState.LIVE:
            return False
        announced = self._announced[root]
        if announced.state is AnnouncementState.COMING:
            announced.state = AnnouncementState.LIVE
        else:
            del self._announced[root], self._by_id[announced_id]
        self._may_have_news = True
        self._place(root)
        self._revisit(root)
        self._release()
        return True

    def forget(self) -> None:
        """The neighbour has forgotten everything, and requests do not wait for it any more."""
        self._may_have_news = True
        self._announced.clear()
        self._by_id.clear()
        self._stale.clear()
        self._leaving.clear()
        self._coming = OrderedDict.fromkeys(self.roots, self._moment)
        self._untold = OrderedDict.fromkeys(self.roots)
        self._inherited = Inherited()
        waiting = [request for pairs in self._until_live.values() for request, _ in pairs]
        waiting += [request for request, _ in self._until_known or ()]
        waiting += [request for _, request in self._until_gone]
        self._until_known = None
        self._until_live.clear()
        self._until_gone.clear()
        for request in waiting:
            self._stop_waiting(request)

    def announced(self) -> tuple[str, ...]:
        """The filters that the neighbour may hold."""
        return tuple(self._announced)

    @property
    def is_settled(self) -> bool:
        """Whether the neighbour holds the roots and nothing else."""
        return (
            not self._coming and not self._unconsidered and len(self._announced) == len(self.roots)
        )

    # --- requests

    def expect_interests(self) -> None:
        """The neighbour is yet to say what concerns it: requests wait for that first."""
        self._until_known = self._until_known or []

    def know_interests(self) -> None:
        """The neighbour has said what concerns it: `concerns` is right from now on."""
        waiting, self._until_known = self._until_known or (), None
        for request, text in waiting:
            self.wait_until_live([text], request)
            self._stop_waiting(request)

    def wait_until_live(self, texts: Iterable[str], request: Request) -> None:
        """Let a request wait until all the filters are covered by live announcements."""
        if self._until_known is not None:
            for text in texts:
                request.pending += 1
                self._until_known.append((request, text))
            return
        if not self._coming and not self._unconsidered:
            return
        for text in texts:
            root = self._pending_root(text)
            if root is not None:
                request.pending += 1
                self._until_live.setdefault(root, []).append((request, text))

    def _pending_root(self, text: str) -> str | None:
        """The root that stands for a filter, unless it is live; itself, if it is unconsidered."""
        if text in self._unconsidered:
            return text
        if text not in self.wanted:
            return None
        root = self.reduction.root_of(text)
        announced = None if root is None else self._announced.get(root)
        return None if announced is not None and announced.state is AnnouncementState.LIVE else root

    def wait_until_gone(self, request: Request) -> None:
        """Let a request wait until everything that is stale or going is gone or wanted again."""
        if self._leaving:
            request.pending += 1
            self._until_gone.append((self._asked, request))
            self._asked += 1

    def _release(self) -> None:
        """Let requests go on that waited for something to be gone."""
        waiting = self._until_gone
        while waiting:
            asked, request = waiting[0]
            if self._leaving and next(iter(self._leaving.values())) <= asked:
                return
            waiting.popleft()
            self._stop_waiting(request)

    def _revisit(self, root: str) -> None:
        """Requests that wait for a root may be done now, or wait for another root."""
        for request, text in self._until_live.pop(root, []):
            self.wait_until_live([text], request)
            self._stop_waiting(request)

    def _stop_waiting(self, request: Request) -> None:
        request.pending -= 1
        if not request.pending:
            self.finish(request)
