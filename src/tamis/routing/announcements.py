"""What a broker has announced to one neighbour: filters, of subscriptions or of advertisements.

Rules:

1. *Wanted* is every filter that came from elsewhere and concerns the neighbour. *Roots* are the few
   filters that stand for all wanted ones: by covering and merging fewer, always a cover of them.
2. Every root is announced. An announcement is *coming* until the neighbour's Ack says that it is
   established there and beyond; then it is *live*.
3. What is announced and no root any more is *stale*. It is withdrawn only when all that was coming
   when it became stale is live: what takes its place is in force before it goes. So there is no
   moment at which a filter that was established is not covered by a live announcement.
4. A withdrawn announcement is *going* until its Ack. Wanted again, it is announced anew, under a
   new id; the stream is in order, so the neighbour sees it go and come.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from tamis.routing.reductions import NO_CHANGE, Change, Reducer


class State(Enum):
    """Of an announcement."""

    COMING = "announced"
    LIVE = "acknowledged"
    GOING = "withdrawn"


@dataclass(slots=True, eq=False)
class Request:
    """Something that a hop asked for and is told of when nothing is open any more."""

    hop: str
    id: str
    what: str  # the kind of message that asked for it
    open: int = 0


@dataclass(slots=True)
class _Announcement:
    id: str
    state: State


@dataclass(frozen=True, slots=True)
class Step:
    """Something to tell the neighbour: a new filter, or (without one) that an id is withdrawn."""

    id: str
    filter: str | None


@dataclass(slots=True)
class Announcer:
    """The announcements of one kind to one neighbour."""

    reducer: Reducer
    concerns: Callable[[str], bool]  # whether a filter is of interest to the neighbour
    new_id: Callable[[], str]
    finished: Callable[[Request], None]  # called when nothing of a request is open any more

    known: Counter[str] = field(default_factory=Counter)  # filters from elsewhere
    wanted: dict[str, None] = field(default_factory=dict)
    roots: dict[str, None] = field(default_factory=dict)
    _announced: dict[str, _Announcement] = field(default_factory=dict)
    _by_id: dict[str, str] = field(default_factory=dict)
    # Roots and announcements that are not live, with the moment since when; the oldest first.
    _coming: dict[str, int] = field(default_factory=dict)
    _stale: dict[str, int] = field(default_factory=dict)  # since when
    _moment: int = 0
    _restless: bool = False  # there may be something to tell
    _until_live: dict[str, list[tuple[Request, str]]] = field(default_factory=dict)
    _until_gone: dict[str, list[Request]] = field(default_factory=dict)

    # --- what is known

    def add(self, text: str) -> None:
        """A filter came from elsewhere."""
        self.known[text] += 1
        if self.known[text] == 1 and self.concerns(text):
            self._want(text)

    def drop(self, text: str) -> None:
        """A filter from elsewhere went."""
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
        self._change(self.reducer.add(text))

    def _unwant(self, text: str) -> None:
        del self.wanted[text]
        self._change(self.reducer.remove(text))

    def reduce(self, now: float, *, passed: bool) -> None:
        """Merge, if it is time to: because something has changed, or because time has `passed`."""
        if passed or self._restless:
            self._change(self.reducer.reduce(now))

    def _change(self, change: Change) -> None:
        if change is NO_CHANGE:
            return
        self._restless = True
        self._moment += 1
        moment = self._moment
        for root in change.removed:
            self.roots.pop(root, None)
        for root in change.added:
            self.roots[root] = None
        for root in dict.fromkeys((*change.removed, *change.added)):
            moment = min(moment, self._place(root))
        if moment < self._moment:  # what stood in for others went before it was announced
            self._coming = {root: min(since, moment) for root, since in self._coming.items()}
        for root in (*change.removed, *change.added):
            self._revisit(root)

    def _place(self, root: str) -> int:
        """Note whether a root or announcement is coming or stale; since when it was, if it went."""
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

    def steps(self) -> list[Step]:
        """What must be told now; it counts as told."""
        if not self._restless:
            return []
        self._restless = False
        found = []
        for root in self._coming:
            announced = self._announced.get(root)
            if announced is None or announced.state is State.GOING:
                found.append(Step(self._announce(root), root))
        oldest = next(iter(self._coming.values()), self._moment + 1)
        ready = [root for root, since in self._stale.items() if since < oldest]
        for root in ready:
            announced = self._announced[root]
            if announced.state is State.LIVE:
                announced.state = State.GOING
                del self._stale[root]
                found.append(Step(announced.id, None))
        return found

    def _announce(self, root: str) -> str:
        before = self._announced.get(root)
        if before is not None:
            del self._by_id[before.id]
        new = self.new_id()
        self._announced[root] = _Announcement(new, State.COMING)
        self._by_id[new] = root
        return new

    def acknowledged(self, announced_id: str) -> bool:
        """The neighbour's Ack; False if it is for nothing."""
        root = self._by_id.get(announced_id)
        if root is None or self._announced[root].state is State.LIVE:
            return False
        announced = self._announced[root]
        if announced.state is State.COMING:
            announced.state = State.LIVE
        else:
            del self._announced[root], self._by_id[announced_id]
        self._restless = True
        self._place(root)
        self._revisit(root)
        return True

    def forget(self) -> None:
        """The neighbour knows nothing any more, and nothing is waited for."""
        self._restless = True
        self._announced.clear()
        self._by_id.clear()
        self._stale.clear()
        self._coming = dict.fromkeys(self.roots, self._moment)
        waiting = [request for pairs in self._until_live.values() for request, _ in pairs]
        waiting += [request for requests in self._until_gone.values() for request in requests]
        self._until_live.clear()
        self._until_gone.clear()
        for request in waiting:
            self._close(request)

    def announced(self) -> tuple[str, ...]:
        """The filters that the neighbour may hold."""
        return tuple(self._announced)

    @property
    def is_settled(self) -> bool:
        """Whether the neighbour holds the roots and nothing else."""
        return not self._coming and len(self._announced) == len(self.roots)

    # --- requests

    def when_live(self, texts: Iterable[str], request: Request) -> None:
        """Keep a request open until filters are covered by live announcements."""
        for text in texts:
            root = self._pending_root(text)
            if root is not None:
                request.open += 1
                self._until_live.setdefault(root, []).append((request, text))

    def _pending_root(self, text: str) -> str | None:
        """The root that stands for a filter, if it is not live yet."""
        if text not in self.wanted:
            return None
        root = self.reducer.root_of(text)
        announced = None if root is None else self._announced.get(root)
        return None if announced is not None and announced.state is State.LIVE else root

    def when_gone(self, request: Request) -> None:
        """Keep a request open until all that is stale or going now is gone or wanted again."""
        going = [r for r, one in self._announced.items() if one.state is State.GOING]
        for root in (*self._stale, *going):
            request.open += 1
            self._until_gone.setdefault(root, []).append(request)

    def _revisit(self, root: str) -> None:
        """Requests that wait for a root may be done, or wait for another one now."""
        for request, text in self._until_live.pop(root, []):
            self.when_live([text], request)
            self._close(request)
        announced = self._announced.get(root)
        if announced is None or (root in self.roots and announced.state is not State.GOING):
            for request in self._until_gone.pop(root, []):
                self._close(request)

    def _close(self, request: Request) -> None:
        request.open -= 1
        if not request.open:
            self.finished(request)
