"""One end of a link between two brokers, without sockets: bytes and the time in, messages out.

::

    greeting --Hello of the other--> proving --Proof--> proved --first Reach--> up
        any state --Goodbye, an error, or nothing heard for too long--> closed

Rules:

1. Both sides say Hello at once, with a number that is used once. The Proof is made of both numbers,
   both names and who called whom, with the secret of the two; so it is of no use anywhere else.
2. A message other than these comes only after the link is up, and ends it before.
3. Each side sends something at least every `beat` seconds. A side that hears nothing for `patience`
   seconds closes: so a half-open link is noticed.
"""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tamis.broker.network.frames import MOST_BYTES, FrameReader, frame_of
from tamis.broker.network.link_traffic import LinkTraffic
from tamis.broker.network.messages import (
    HIGHEST,
    LOWEST,
    Beat,
    Events,
    Filters,
    Goodbye,
    Hello,
    Message,
    Part,
    Proof,
    Reach,
    Relayed,
    cut,
)
from tamis.errors import RoutingError

NONCE = 32  # bytes
MOST_CHARACTERS = 8_000_000  # of the filters of a message
MANY_FILTERS = 100  # from which a message has a frame of its own
Paths = Mapping[str, Sequence[str]]


class LinkState(Enum):
    """How far a link has come."""

    GREETING = "greeting"
    PROVING = "proving"
    PROVED = "proved"
    UP = "up"
    CLOSED = "closed"


@dataclass(frozen=True)
class Manners:
    """What one broker does on all of its links."""

    name: str
    secrets: Mapping[str, bytes]  # by the name of the peer
    secret: bytes = b""  # of the peers that have none of their own; empty: none is required
    beat: float = 2.0  # seconds
    patience: float = 10.0
    versions: tuple[int, int] = (LOWEST, HIGHEST)  # of `messages.py`: the lowest and the highest

    def secret_of(self, peer: str) -> bytes:
        """The secret that proves who a peer is."""
        return self.secrets.get(peer, self.secret)


class Link:
    """One end of a link."""

    def __init__(
        self, manners: Manners, wanted: str, nonce: bytes, now: float, *, is_caller: bool
    ) -> None:
        self.state = LinkState.GREETING
        self.peer = wanted
        self.is_caller = is_caller
        self.version = manners.versions[1]  # the one that both sides speak, once they have greeted
        self.closed_because: str | None = None
        self.is_final = False  # whether calling again does not help
        self.traffic = LinkTraffic()
        self._manners = manners
        self._nonce = nonce
        self._theirs = b""
        self._frames = FrameReader()
        self._out: list[Message] = []
        self._heard = self._sent = now
        self.send(now, Hello(*manners.versions, manners.name, wanted, nonce))

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self.state is LinkState.CLOSED

    # --- out

    def send(self, now: float, *messages: Message) -> None:
        """Send messages; those that wait to be written share a frame."""
        if messages and self.state is not LinkState.CLOSED:
            self._sent = now
            for message in messages:
                if isinstance(message, Filters | Part):
                    self._out += cut(message, MOST_CHARACTERS)
                else:
                    self._out.append(message)

    def take_bytes(self) -> bytes:
        """What is to be written now."""
        taken, self._out = self._out, []
        frames: list[list[Message]] = [[]]
        for message in taken:
            if _is_large(message):
                frames += [[message], []]
            else:
                frames[-1].append(message)
        written = [frame_of(messages) for messages in frames if messages]
        data = b"".join(written)
        self.traffic.frames_sent += len(written)
        self.traffic.bytes_sent += len(data)
        return data

    def close(self, now: float, reason: str, *, is_final: bool = False) -> None:
        """Say goodbye."""
        self.send(now, Goodbye(reason, is_final))
        self._end(reason, is_final=is_final)

    def _end(self, reason: str, *, is_final: bool = False) -> None:
        if self.state is not LinkState.CLOSED:
            self.state, self.closed_because, self.is_final = LinkState.CLOSED, reason, is_final

    def tick(self, now: float) -> None:
        """Let the other side know that we live; give up if it does not."""
        if self.state is LinkState.CLOSED:
            return
        if now - self._heard >= self._manners.patience:
            self.close(now, f"nothing was heard for {self._manners.patience:g} seconds")
        elif now - self._sent >= self._manners.beat:
            self.send(now, Beat())

    # --- in

    def was_busy(self, now: float) -> None:
        """Note that we were busy until now, and could not hear the other side."""
        self._heard = max(self._heard, now)

    def receive(self, data: bytes, now: float) -> list[Message]:
        """Take bytes; returns the messages that are for the broker, the first of them a Reach."""
        self._heard = now
        self.traffic.bytes_received += len(data)
        self._frames.feed(data)
        found: list[Message] = []
        try:
            while self.state is not LinkState.CLOSED:
                messages = self._frames.next()
                if messages is None:
                    break
                self.traffic.frames_received += 1
                for message in messages:
                    found += self._take(message, now)
        except RoutingError as error:
            self.close(now, str(error))
        return found

    def _take(self, message: Message, now: float) -> list[Message]:
        if self.state is LinkState.CLOSED:
            return []
        match message:
            case Goodbye(reason, is_final):
                self._end(f"{self.peer or 'the other side'} says: {reason}", is_final=is_final)
                return []
            case Hello() if self.state is LinkState.GREETING:
                self._greet(message, now)
                return []
            case Proof(proof) if self.state is LinkState.PROVING:
                self._check(proof, now)
                return []
            case Beat():
                return []
            case Reach() if self.state is LinkState.PROVED:
                self.state = LinkState.UP
                return [message]
            case _ if self.state is LinkState.UP and not isinstance(message, Hello | Proof):
                return [message]
        raise RoutingError(f"{type(message).__name__} came while the link was {self.state.value}")

    def _greet(self, hello: Hello, now: float) -> None:
        ours, (lowest, highest) = self._manners.name, self._manners.versions
        if hello.lowest > highest or hello.highest < lowest:
            self.close(
                now,
                f"{ours} speaks versions {lowest} to {highest}, {hello.name} "
                f"{hello.lowest} to {hello.highest}",
                is_final=True,
            )
        elif hello.name == ours or (hello.wanted and hello.wanted != ours):
            self.close(now, f"this is broker {ours!r}, not {hello.wanted!r}", is_final=True)
        elif not hello.name or len(hello.nonce) != NONCE:
            self.close(now, f"a Hello has a name and {NONCE} bytes that are used once")
        elif self.peer and hello.name != self.peer:
            self.close(now, f"broker {self.peer!r} was wanted, not {hello.name!r}", is_final=True)
        else:
            self.peer, self._theirs = hello.name, hello.nonce
            self.version = min(highest, hello.highest)
            self.state = LinkState.PROVING
            self.send(now, Proof(self._proof(mine=True)))

    def _check(self, proof: bytes, now: float) -> None:
        if not hmac.compare_digest(proof, self._proof(mine=False)):
            ours = self._manners.name
            problem = f"broker {self.peer!r} does not have the secret that {ours!r} requires"
            self.close(now, problem, is_final=True)
            return
        self.state = LinkState.PROVED
        self._frames.most_bytes = MOST_BYTES

    def _proof(self, *, mine: bool) -> bytes:
        """The proof that we give, or expect."""
        secret = self._manners.secret_of(self.peer)
        if not secret:
            return b""
        names = self._manners.name, self.peer
        nonces = self._nonce, self._theirs
        if not mine:
            names, nonces = names[::-1], nonces[::-1]
        caller = self.is_caller == mine
        text = "\0".join(("tamis 1", "caller" if caller else "called", *names)).encode()
        return hmac.digest(secret, text + b"\0" + b"".join(nonces), "sha256")


def _is_large(message: Message) -> bool:
    """Whether a message is large enough for a frame of its own."""
    is_long = isinstance(message, Filters | Part) and len(message.added) >= MANY_FILTERS
    return is_long or isinstance(message, Events | Relayed)


def cycle(ours: Paths, theirs: Paths) -> list[str] | None:
    """The path around a cycle that a link would close; None if there is none.

    `ours` are the brokers that we reach without the link, ourselves among them, each with the path
    from us; `theirs` those of the other side.
    """
    for name, path in theirs.items():
        if name in ours:
            return [*ours[name], *reversed(path[:-1]), ours[name][0]]
    return None
