"""A link to a neighbour: a reliable stream each way over a network that is not.

The network may lose, duplicate, delay and reorder what is sent. On top of it:

1. **Sessions.** Each side names its session, a number larger than any that it used before on this
   link. A stream belongs to the two sessions of its ends; when either changes, both streams start
   anew and both sides forget what came from the other. Everything that carries other sessions is
   of the past and ignored.
2. **Greeting.** A side says Hello every t1 until it knows that the other has heard of its session.
   From then on the link is *up*. A Hello that already knows our session is answered by a Receipt,
   which tells the other side so; one that does not by a Hello.
3. **Numbers.** Packets are numbered from 0 and handed on in order, each once. A Receipt names the
   first number that has not arrived. What has no receipt is sent again every t1.
4. **Failure.** If nothing new was received for t2 while packets wait for it, or too many wait, the
   neighbour has failed: the queue is dropped, and we greet with a new session.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tamis.errors import OptionError
from tamis.routing.messages import Carried, Hello, Packet, Publish, Receipt, Wire

RESENT = 64  # packets that are sent again at once; the receiver asks for the rest by and by


@dataclass(frozen=True, slots=True)
class Timing:
    """The paper's t1 and t2, in the unit of the `now` of messages."""

    t1: float = 1.0  # between attempts
    t2: float = 30.0  # without an answer: the neighbour has failed

    def __post_init__(self) -> None:
        if not 0 < self.t1 < self.t2:
            raise OptionError(
                f"t1 must be above 0 and below t2, not t1={self.t1:g} and t2={self.t2:g}"
            )


@dataclass(slots=True)
class _Waiting:
    """A packet without a receipt."""

    number: int
    message: Carried
    sent: float


@dataclass(slots=True)
class Link:
    """One end of a link."""

    name: str  # ours
    neighbour: str
    timing: Timing
    most_waiting: int
    most_early: int
    new_session: Callable[[], int]

    open: bool = False  # we try to reach the neighbour
    up: bool = False
    mine: int = -1
    theirs: int | None = None
    _lost: int = 0
    _queue: deque[_Waiting] = field(default_factory=deque)
    _next: int = 0  # number of the next packet that we send
    _expected: int = 0  # number of the next packet that we take
    _early: dict[int, Carried] = field(default_factory=dict)
    _progress: float = 0.0  # when the oldest waiting packet became that
    _greeted: float = 0.0

    @property
    def sessions(self) -> tuple[int, int | None]:
        """Ours and theirs; others than before mean that both sides have started anew."""
        return self.mine, self.theirs

    @property
    def waiting(self) -> int:
        """Packets without a receipt."""
        return len(self._queue)

    @property
    def waits_for_control(self) -> bool:
        """Whether a packet other than a publication has no receipt yet."""
        return any(not isinstance(one.message, Publish) for one in self._queue)

    # --- opening and closing

    def reopen(self, now: float) -> list[Wire]:
        """Start a session of ours and greet."""
        self._forget()
        self.open, self.mine = True, self.new_session()
        return [self._hello(now)]

    def close(self) -> None:
        """Stop trying."""
        self._forget()
        self.open = False

    def take_lost(self) -> int:
        """How many publications were dropped with queues since this was last asked."""
        lost, self._lost = self._lost, 0
        return lost

    def _forget(self) -> None:
        self._lost += sum(isinstance(one.message, Publish) for one in self._queue)
        self.up = False
        self._queue.clear()
        self._early.clear()
        self._next = self._expected = 0

    def _hello(self, now: float) -> Hello:
        self._greeted = now
        return Hello(self.name, self.mine, self.theirs)

    def _receipt(self) -> Receipt:
        return Receipt(self.name, self.mine, self._their_session(), self._expected)

    def _their_session(self) -> int:
        if self.theirs is None:  # pragma: no cover - only called when the link is up
            raise AssertionError(f"no session of {self.neighbour}")
        return self.theirs

    # --- what arrives

    def hello(self, message: Hello, now: float) -> tuple[list[Wire], bool]:
        """Take a greeting; the answer, and whether its session is new to us."""
        if self.theirs is not None and message.session < self.theirs:
            return [], False
        is_new = message.session != self.theirs
        if is_new:
            self._forget()
            self.theirs = message.session
        if not self.open:
            self.open, self.mine = True, self.new_session()
        if message.echo == self.mine:
            self.up = True
            return [self._receipt()], is_new
        return [self._hello(now)], is_new

    def is_current(self, message: Packet | Receipt) -> bool:
        """Whether a packet or receipt belongs to the sessions of now; if so, the link is up."""
        current = self.open and (message.session, message.echo) == (self.theirs, self.mine)
        self.up = self.up or current
        return current

    def packet(self, message: Packet) -> Iterator[Carried]:
        """The messages that can be handed on, in order; `receipt` must be sent after them."""
        is_next = message.number == self._expected
        if is_next or (message.number > self._expected and len(self._early) < self.most_early):
            self._early[message.number] = message.message
        while self._expected in self._early:
            ready = self._early.pop(self._expected)
            self._expected += 1
            yield ready

    def receipt_due(self) -> Receipt:
        """The receipt for all that has arrived."""
        return self._receipt()

    def receipt(self, message: Receipt, now: float) -> None:
        """The neighbour has what is numbered below."""
        while self._queue and self._queue[0].number < message.number:
            self._queue.popleft()
            self._progress = now

    # --- what is sent

    def send(self, message: Carried, now: float) -> Packet:
        """The packet of a message, which waits for its receipt."""
        if not self._queue:
            self._progress = now
        waiting = _Waiting(self._next, message, now)
        self._queue.append(waiting)
        self._next += 1
        return self._packet(waiting)

    def _packet(self, waiting: _Waiting) -> Packet:
        return Packet(self.name, self.mine, self._their_session(), waiting.number, waiting.message)

    # --- time

    @property
    def overdue(self) -> float | None:
        """When the neighbour has failed unless it answers before."""
        return self._progress + self.timing.t2 if self.up and self._queue else None

    @property
    def is_full(self) -> bool:
        """Whether more packets wait than may."""
        return len(self._queue) > self.most_waiting

    def next_time(self) -> float | None:
        """When there is something to send again or to give up."""
        if not self.open:
            return None
        if not self.up:
            return self._greeted + self.timing.t1
        if not self._queue:
            return None
        oldest = min(one.sent for one in self._resendable())
        return min(oldest + self.timing.t1, self._progress + self.timing.t2)

    def again(self, now: float) -> list[Wire]:
        """What is sent again because no answer came for t1."""
        if not self.open:
            return []
        if not self.up:
            return [self._hello(now)] if now >= self._greeted + self.timing.t1 else []
        found: list[Wire] = []
        for waiting in self._resendable():
            if now >= waiting.sent + self.timing.t1:
                waiting.sent = now
                found.append(self._packet(waiting))
        return found

    def _resendable(self) -> list[_Waiting]:
        return [self._queue[place] for place in range(min(RESENT, len(self._queue)))]
