"""Connections between simulated processes: bytes that take time, and do not always arrive.

A wire is what TCP is to both of its ends: bytes arrive in order, in pieces of any size. It can be
slow, be cut after any byte, damage a byte, or fall silent so that neither end is told.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from tamis.broker.simulation.virtual_time import Process

HIGH, LOW = 1 << 16, 1 << 14  # bytes on their way at which a sender is stopped, and goes on


class Listening(NamedTuple):
    """A process that takes calls."""

    process: Process
    new_protocol: Callable[[], Any]


class Server:
    """What `asyncio.start_server` gets."""

    def __init__(self, wires: "Wires", port: int) -> None:
        self.sockets = (self,)
        self._wires = wires
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        return "simulated", self._port

    def close(self) -> None:
        self._wires.listening.pop(self._port, None)


class Conduit:
    """What lies between two processes, whichever wires run over it."""

    def __init__(self) -> None:
        self.is_open = True
        self.delay = 0.0  # seconds, beside the usual ones
        self.damages = 0  # pieces that will be damaged
        self.cut_after: int | None = None  # pieces that will still be written
        self.wires: dict[SimulatedWire, None] = {}

    def cut(self, *, silently: bool) -> None:
        """End all wires, and let no new ones be made."""
        self.is_open = False
        for wire in list(self.wires):
            if silently:
                wire.fall_silent()
            else:
                wire.cut()


class Wires:
    """All connections, and who can be called."""

    def __init__(self, random: Random, pace: float = 0.01) -> None:
        """`pace`: seconds that bytes may take."""
        self.random = random
        self.pace = pace
        self.listening: dict[int, Listening] = {}
        self._conduits: dict[tuple[str, ...], Conduit] = {}

    def conduit(self, *names: str) -> Conduit:
        """What lies between two processes."""
        return self._conduits.setdefault(tuple(sorted(names)), Conduit())

    def conduits_of(self, name: str) -> list[Conduit]:
        """What lies between one process and all others."""
        return [conduit for names, conduit in self._conduits.items() if name in names]

    def listen(self, process: Process, new_protocol: Callable[[], Any], port: int) -> Server:
        """Take calls."""
        self.listening[port] = Listening(process, new_protocol)
        return Server(self, port)

    async def connect(
        self, process: Process, new_protocol: Callable[[], Any], port: int
    ) -> tuple[asyncio.Transport, Any]:
        """Call somebody."""
        await asyncio.sleep(self.random.uniform(0.001, 0.02))
        found = self.listening.get(port)
        if found is None or not found.process.is_alive:
            raise ConnectionRefusedError(f"nobody listens on port {port}")
        conduit = self.conduit(process.name, found.process.name)
        if not conduit.is_open:
            raise OSError("there is no way")
        wire = SimulatedWire(self.random, conduit, self.pace)
        mine = wire.end(process, new_protocol())
        theirs = wire.end(found.process, found.new_protocol())
        mine.protocol.connection_made(mine)
        found.process.call_soon(theirs.protocol.connection_made, theirs)
        return mine, mine.protocol


class SimulatedWire:
    """One connection."""

    def __init__(self, random: Random, conduit: Conduit, pace: float) -> None:
        self.random = random
        self.conduit = conduit
        self._pace = pace
        self.ends: list[End] = []
        self.is_silent = False
        conduit.wires[self] = None

    def end(self, process: Process, protocol: Any) -> "End":
        """One more end of it; there are two."""
        made = End(self, process, protocol)
        self.ends.append(made)
        return made

    def other(self, end: "End") -> "End":
        """The other end."""
        return self.ends[0] if end is self.ends[1] else self.ends[1]

    def latency(self) -> float:
        """How long the next piece takes."""
        return self.conduit.delay + self._pace * self.random.random()

    def fall_silent(self) -> None:
        """Carry nothing any more; nobody is told."""
        self.is_silent = True
        for end in self.ends:
            end.lose_all()

    def cut(self) -> None:
        """End it: of what is on its way, some arrives; both ends are told, sooner or later."""
        self.is_silent = True
        for end in self.ends:
            end.lose_some()
            end.process.call_later(self.latency(), end.lost, ConnectionResetError("it was cut"))

    def died(self, end: "End") -> None:
        """One end is gone with its process; if the wire is not silent, the other one is told."""
        if not self.is_silent:
            other = self.other(end)
            other.lose_some()
            self.is_silent = True
            reset = ConnectionResetError("the other side is gone")
            other.process.call_later(self.latency(), other.lost, reset)


class End(asyncio.Transport):
    """One end of a wire, as the transport of a process."""

    def __init__(self, wire: SimulatedWire, process: Process, protocol: Any) -> None:
        super().__init__()
        self.wire = wire
        self.process = process
        self.protocol = protocol
        self._closing = False
        self._is_lost = False
        self.coming = 0  # bytes on their way to this end
        self._arriving: deque[bytes] = deque()
        self._last_arrival = 0.0
        self._stuck = 0  # bytes that were written when nobody could get them
        self._is_full = False
        self._forget = process.when_ended(self._died)

    def _died(self) -> None:
        self._closing = True
        self.wire.died(self)

    # --- out

    def write(self, data: Any) -> None:
        if self._closing or self._is_lost or not self.process.is_alive:
            return
        data, wire = bytes(data), self.wire
        conduit, other = wire.conduit, wire.other(self)
        if conduit.damages and data:
            conduit.damages -= 1
            place = wire.random.randrange(len(data))
            data = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
        if len(data) > 1 and wire.random.random() < 0.2:
            place = wire.random.randrange(1, len(data))
            other.arrive(data[:place])
            data = data[place:]
        other.arrive(data)
        if conduit.cut_after is not None:
            conduit.cut_after -= 1
            if conduit.cut_after <= 0:
                conduit.cut_after = None
                wire.cut()
        self._stuck += len(data) * wire.is_silent
        if not self._is_full and other.coming + self._stuck >= HIGH:
            self._is_full = True
            self.protocol.pause_writing()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self.wire.is_silent:
            self.wire.other(self).arrive(b"")
        self.process.call_soon(self.lost, None)

    def abort(self) -> None:
        if self._is_lost:
            return
        self._closing = True
        self.wire.died(self)
        self.process.call_soon(self.lost, None)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """They are always the same."""

    def get_extra_info(self, _: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        """It is small enough to be read."""

    def resume_reading(self) -> None:
        """It is read all the time."""

    # --- in

    def arrive(self, data: bytes) -> None:
        """Get bytes after some time, in order; none mean the end."""
        if self._is_lost or self.wire.is_silent:
            return
        when = max(self._last_arrival, self.process.time() + self.wire.latency())
        self._last_arrival = when
        self._arriving.append(data)
        self.coming += len(data)
        self.process.call_at(when, self._take)

    def _take(self) -> None:
        if not self._arriving:  # it was lost on the way
            return
        data = self._arriving.popleft()
        self.coming -= len(data)
        if self._is_lost:
            return
        if data:
            self.protocol.data_received(data)
        else:
            self.protocol.eof_received()
        self.wire.other(self).has_room(self.coming)

    def lose_some(self) -> None:
        """Lose what is on its way, from some byte on."""
        arriving = self._arriving
        kept = self.wire.random.randint(0, len(arriving))
        while len(arriving) > kept:
            arriving.pop()
        if arriving and len(arriving[-1]) > 1:
            arriving[-1] = arriving[-1][: self.wire.random.randint(1, len(arriving[-1]))]

    def lose_all(self) -> None:
        """Lose all that is on its way."""
        self._arriving.clear()

    def has_room(self, coming: int) -> None:
        """Note how much of what was written is still on its way."""
        if self._is_full and coming <= LOW and not self._is_lost:
            self._is_full = False
            self.process.call_soon(self._resume)

    def _resume(self) -> None:
        if not self._is_lost:
            self.protocol.resume_writing()

    def lost(self, error: Exception | None) -> None:
        """The connection has ended for this end."""
        if self._is_lost:
            return
        self._is_lost = self._closing = True
        self._forget()
        self.wire.conduit.wires.pop(self.wire, None)
        self.protocol.connection_lost(error)
