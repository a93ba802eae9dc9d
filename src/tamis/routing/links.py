"""A link to a neighbour: a reliable stream each way over an unreliable network.

The network may lose, duplicate, delay and reorder messages. On top of it:

1. **Sessions.** Each side names its session, a number larger than any that it used before on this
   link. A stream belongs to the two sessions of its ends; when either changes, both streams start
   again from 0 and both sides forget what came from the other. Packets and receipts of other
   sessions are ignored.
2. **Greeting.** A side says Hello every t1 until it knows that the other has heard of its session.
   From then on the link is *up*. A Hello that already knows our session is answered by a Receipt,
   which tells the other side so; any other Hello is answered by a Hello.
3. **Numbers.** Packets are numbered from 0 and handed on in order, each once. A Receipt names the
   first number that has not arrived. Packets without a receipt are sent again every t1.
4. **Failure.** If packets wait for a receipt and none comes for t2, or if too many wait, the
   neighbour has failed: the queue is dropped, and we greet with a new session.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tamis.errors import OptionError
from tamis.routing.messages import Hello, LinkMessage, Packet, Payload, Publish, Receipt

RESENT = 64  # packets that are sent again at once, the oldest first


@dataclass(frozen=True, slots=True)
class Timing:
    """MBD's t1 and t2 (section 4.1), in the unit of the `now` of `Router.handle`."""

    t1: float = 1.0  # between two attempts
    t2: float = 30.0  # without a receipt, after which the neighbour has failed

    def __post_init__(self) -> None:
        if not 0 < self.t1 < self.t2:
            raise OptionError(
                f"t1 must be above 0 and below t2, not t1={self.t1:g} and t2={self.t2:g}"
            )


@dataclass(slots=True)
class _Waiting:
    """A packet that waits for its receipt."""

    number: int
    message: Payload
    sent: float


@dataclass(slots=True)
class Link:
    """One end of a link."""

    name: str  # of this broker
    neighbour: str
    timing: Timing
    most_waiting: int
    most_early: int
    new_session: Callable[[], int]

    is_open: bool = False  # we try to reach the neighbour, or have reached it
    is_up: bool = False  # each side knows the session of the other
    our_session: int = -1
    their_session: int | None = None
    _lost: int = 0
    _queue: deque[_Waiting] = field(default_factory=deque)
    _next: int = 0  # number of the next packet that we send
    _expected: int = 0  # number of the next packet that we take
    _early: dict[int, Payload] = field(default_factory=dict)
    _progress: float = 0.0  # when the oldest waiting packet became the oldest
    _greeted: float = 0.0

    @property
    def sessions(self) -> tuple[int, int | None]:
        """Ours and theirs; when they change, both sides have started again."""
        return self.our_session, self.their_session

    @property
    def waiting(self) -> int:
        """How many packets wait for a receipt."""
        return len(self._queue)

    @property
    def waits_for_control(self) -> bool:
        """Whether a packet other than a publication waits for a receipt."""
        return any(not isinstance(one.message, Publish) for one in self._queue)

    # --- opening and closing

    def reopen(self, now: float) -> list[LinkMessage]:
        """Start a new session and greet."""
        self._forget()
        self.is_open, self.our_session = True, self.new_session()
        return [self._hello(now)]

    def close(self) -> None:
        """Stop trying to reach the neighbour."""
        self._forget()
        self.is_open = False

    def take_lost(self) -> int:
        """How many publications were dropped since the last call."""
        lost, self._lost = self._lost, 0
        return lost

    def _forget(self) -> None:
        self._lost += sum(isinstance(one.message, Publish) for one in self._queue)
        self.is_up = False
        self._queue.clear()
        self._early.clear()
        self._next = self._expected = 0

    def _hello(self, now: float) -> Hello:
        self._greeted = now
        return Hello(self.name, self.our_session, self.their_session)

    def receipt(self) -> Receipt:
        """The receipt for everything that has arrived."""
        return Receipt(self.name, self.our_session, self._known_session(), self._expected)

    def _known_session(self) -> int:
        if self.their_session is None:  # pragma: no cover - only called when the link is up
            raise AssertionError(f"no session of {self.neighbour}")
        return self.their_session

    # --- what arrives

    def take_hello(self, message: Hello, now: float) -> tuple[list[LinkMessage], bool]:
        """Take a greeting; return the answer, and whether its session is new to us."""
        if self.their_session is not None and message.session < self.their_session:
            return [], False
        is_new = message.session != self.their_session
        if is_new:
            self._forget()
            self.their_session = message.session
        if not self.is_open:
            self.is_open, self.our_session = True, self.new_session()
        if message.echo == self.our_session:
            self.is_up = True
            return [self.receipt()], is_new
        return [self._hello(now)], is_new

    def is_current(self, message: Packet | Receipt) -> bool:
        """Whether a packet or receipt belongs to the current sessions; if so, the link is up."""
        current = self.is_open and (message.echo, message.session) == self.sessions
        self.is_up = self.is_up or current
        return current

    def take_packet(self, message: Packet) -> Iterator[Payload]:
        """The messages that can be handed on, in order; `receipt` must be sent after them."""
        is_next = message.number == self._expected
        if is_next or (message.number > self._expected and len(self._early) < self.most_early):
            self._early[message.number] = message.message
        while self._expected in self._early:
            ready = self._early.pop(self._expected)
            self._expected += 1
            yield ready

    def take_receipt(self, message: Receipt, now: float) -> None:
        """Drop the packets that the neighbour has received."""
        while self._queue and self._queue[0].number < message.number:
            self._queue.popleft()
            self._progress = now

    # --- what is sent

    def send(self, message: Payload, now: float) -> Packet:
        """The packet of a message, which waits for its receipt."""
        if not self._queue:
            self._progress = now
        waiting = _Waiting(self._next, message, now)
        self._queue.append(waiting)
        self._next += 1
        return self._packet(waiting)

    def _packet(self, waiting: _Waiting) -> Packet:
        return Packet(
            self.name, self.our_session, self._known_session(), waiting.number, waiting.message
        )

    # --- time

    @property
    def deadline(self) -> float | None:
        """When the neighbour has failed, unless it answers before."""
        return self._progress + self.timing.t2 if self.is_up and self._queue else None

    @property
    def is_full(self) -> bool:
        """Whether more packets wait than the limit allows."""
        return len(self._queue) > self.most_waiting

    def next_time(self) -> float | None:
        """When there is something to send again or to give up."""
        if not self.is_open:
            return None
        if not self.is_up:
            return self._greeted + self.timing.t1
        if not self._queue:
            return None
        oldest = min(one.sent for one in self._resendable())
        return min(oldest + self.timing.t1, self._progress + self.timing.t2)

    def resend(self, now: float) -> list[LinkMessage]:
        """The messages that are sent again because no answer came for t1."""
        if not self.is_open:
            return []
        if not self.is_up:
            return [self._hello(now)] if now >= self._greeted + self.timing.t1 else []
        found: list[LinkMessage] = []
        for waiting in self._resendable():
            if now >= waiting.sent + self.timing.t1:
                waiting.sent = now
                found.append(self._packet(waiting))
        return found

    def _resendable(self) -> list[_Waiting]:
        return [self._queue[place] for place in range(min(RESENT, len(self._queue)))]
