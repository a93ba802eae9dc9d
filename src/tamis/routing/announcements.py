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

These rules include MBD's rules for unsubscriptions (section 4.1) and for the cancellation of
mergers (section 5.1.2); docs/decisions/0015 says why there is one rule for all of them.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from tamis.routing.reductions import NO_CHANGE, Change, Found, KnownMerger, Reduction
from tamis.routing.requests import Request


class State(Enum):
    """The state of an announcement."""

    COMING = "announced"
    LIVE = "acknowledged"
    GOING = "withdrawn"


@dataclass(slots=True)
class _Announcement:
    id: str
    state: State


@dataclass(frozen=True, slots=True)
class Update:
    """News for the neighbour: a new filter, or None if the one with this id is withdrawn."""

    id: str
    filter: str | None


@dataclass(slots=True)
class Announcer:
    """The announcements of one kind to one neighbour."""

    reduction: Reduction
    concerns: Callable[[str], bool]  # whether a filter is of interest to the neighbour
    new_id: Callable[[], str]
    finish: Callable[[Request], None]  # called when a request waits for nothing any more

    known: Counter[str] = field(default_factory=Counter)  # filters of other hops
    wanted: dict[str, None] = field(default_factory=dict)
    roots: dict[str, None] = field(default_factory=dict)
    _announced: dict[str, _Announcement] = field(default_factory=dict)
    _by_id: dict[str, str] = field(default_factory=dict)
    # Roots that are not live, and stale announcements, each with the moment since when; the oldest
    # first.
    _coming: dict[str, int] = field(default_factory=dict)
    _stale: dict[str, int] = field(default_factory=dict)
    _moment: int = 0  # changes so far
    _may_have_news: bool = False
    _until_live: dict[str, list[tuple[Request, str]]] = field(default_factory=dict)
    _until_gone: dict[str, list[Request]] = field(default_factory=dict)

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

    def reconsider(self) -> list[str]:
        """What concerns the neighbour has changed; the filters that are wanted now and were not."""
        for text in [text for text in self.wanted if not self.concerns(text)]:
            self._unwant(text)
        fresh = [text for text in self.known if text not in self.wanted and self.concerns(text)]
        for text in fresh:
            self._want(text)
        return fresh

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

    def adopt(self, found: Found, now: float) -> None:
        """Make the mergers that a search of the reduction has found."""
        self._change(self.reduction.adopt(found, now))

    def restore(self, known: Iterable[KnownMerger]) -> None:
        """Make mergers that were made before a restart."""
        self._change(self.reduction.restore(known))

    def _change(self, change: Change) -> None:
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
            self._coming = {root: min(since, moment) for root, since in self._coming.items()}
        for root in (*change.removed, *change.added):
            self._revisit(root)

    def _place(self, root: str) -> int:
        """Note whether a root or announcement is coming or stale.

        Returns the moment since when it was coming, if it has gone; otherwise the current one.
        """
        announced = self._announced.get(root)
        state = announced.state if announced else None
        is_root, since = root in self.roots, self._moment
        if state is State.COMING or (is_root and state is not State.LIVE):
            self._coming.setdefault(root, since)
        elif state is State.LIVE:
            self._coming.pop(root, None)
        else:
            since = self._coming.pop(root, since)
        if state in {State.COMING, State.LIVE} and not is_root:
            self._stale.setdefault(root, self._moment)
        else:
            self._stale.pop(root, None)
        return since

    # --- what is announced

    def take_updates(self) -> list[Update]:
        """What the neighbour must be told now; it counts as told."""
        if not self._may_have_news:
            return []
        self._may_have_news = False
        found = []
        for root in self._coming:
            announced = self._announced.get(root)
            if announced is None or announced.state is State.GOING:
                found.append(Update(self._announce(root), root))
        oldest = next(iter(self._coming.values()), self._moment + 1)
        ready = [root for root, since in self._stale.items() if since < oldest]
        for root in ready:
            announced = self._announced[root]
            if announced.state is State.LIVE:
                announced.state = State.GOING
                del self._stale[root]
                found.append(Update(announced.id, None))
        return found

    def _announce(self, root: str) -> str:
        before = self._announced.get(root)
        if before is not None:
            del self._by_id[before.id]
        new = self.new_id()
        self._announced[root] = _Announcement(new, State.COMING)
        self._by_id[new] = root
        return new

    def acknowledge(self, announced_id: str) -> bool:
        """Take the neighbour's Ack; False if nothing waits for it."""
        root = self._by_id.get(announced_id)
        if root is None or self._announced[root].state is State.LIVE:
            return False
        announced = self._announced[root]
        if announced.state is State.COMING:
            announced.state = State.LIVE
        else:
            del self._announced[root], self._by_id[announced_id]
        self._may_have_news = True
        self._place(root)
        self._revisit(root)
        return True

    def forget(self) -> None:
        """The neighbour has forgotten everything, and requests do not wait for it any more."""
        self._may_have_news = True
        self._announced.clear()
        self._by_id.clear()
        self._stale.clear()
        self._coming = dict.fromkeys(self.roots, self._moment)
        waiting = [request for pairs in self._until_live.values() for request, _ in pairs]
        waiting += [request for requests in self._until_gone.values() for request in requests]
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
        return not self._coming and len(self._announced) == len(self.roots)

    # --- requests

    def wait_until_live(self, texts: Iterable[str], request: Request) -> None:
        """Let a request wait until all the filters are covered by live announcements."""
        for text in texts:
            root = self._pending_root(text)
            if root is not None:
                request.pending += 1
                self._until_live.setdefault(root, []).append((request, text))

    def _pending_root(self, text: str) -> str | None:
        """The root that stands for a filter, unless it is live."""
        if text not in self.wanted:
            return None
        root = self.reduction.root_of(text)
        announced = None if root is None else self._announced.get(root)
        return None if announced is not None and announced.state is State.LIVE else root

    def wait_until_gone(self, request: Request) -> None:
        """Let a request wait until everything that is stale or going is gone or wanted again."""
        going = [r for r, one in self._announced.items() if one.state is State.GOING]
        for root in (*self._stale, *going):
            request.pending += 1
            self._until_gone.setdefault(root, []).append(request)

    def _revisit(self, root: str) -> None:
        """Requests that wait for a root may be done now, or wait for another root."""
        for request, text in self._until_live.pop(root, []):
            self.wait_until_live([text], request)
            self._stop_waiting(request)
        announced = self._announced.get(root)
        if announced is None or (root in self.roots and announced.state is not State.GOING):
            for request in self._until_gone.pop(root, []):
                self._stop_waiting(request)

    def _stop_waiting(self, request: Request) -> None:
        request.pending -= 1
        if not request.pending:
            self.finish(request)
