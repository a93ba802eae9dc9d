"""How long a client may take, and the heart-beats in both directions.

Pure: the time is passed in, in seconds on any clock that only goes forward.
"""

from typing import NamedTuple

from tamis.broker.protocols.stomp.frames import FrameError

# A client whose heart-beats are late by as much as their interval is taken for dead.
GRACE = 2.0


class TimeSettings(NamedTuple):
    """Seconds."""

    connect: float = 10.0  # from the connection to a complete and accepted CONNECT
    frame: float = 60.0  # from the first byte of a frame to its last
    write: float = 60.0  # in which a client must have read what was written to it
    send_beat: float = 1.0  # how often the server can send heart-beats; 0: never
    want_beat: float = 10.0  # how often it wants some; 0: never


class TimeLimits:
    """The deadlines of one connection."""

    def __init__(self, settings: TimeSettings, now: float) -> None:
        self.settings = settings
        self._heard = self._sent = now
        self._incoming = self._outgoing = 0.0  # intervals of heart-beats; 0: none
        self._connect: float | None = now  # since when, or None
        self._frame: float | None = None
        self._write: float | None = None
        self._busy = False

    @property
    def server_beats(self) -> tuple[int, int]:
        """What CONNECTED tells, in milliseconds: how often the server sends, and wants to hear."""
        return round(self.settings.send_beat * 1000), round(self.settings.want_beat * 1000)

    def connected(self, client_sends: float, client_wants: float, now: float) -> None:
        """CONNECT was accepted; the client's two numbers of heart-beat, in seconds."""
        self._connect = None
        self._heard = self._sent = now
        send, want = self.settings.send_beat, self.settings.want_beat
        self._incoming = max(client_sends, want) if client_sends and want else 0.0
        self._outgoing = max(client_wants, send) if client_wants and send else 0.0

    def heard(self, now: float) -> None:
        """Bytes came."""
        self._heard = now

    def parsed(self, now: float, *, inside: bool, completed: bool) -> None:
        """The bytes were read: whether they end inside a frame, and whether they completed one."""
        if not inside:
            self._frame = None
        elif completed or self._frame is None:
            self._frame = now

    def sent(self, now: float) -> None:
        """Bytes were written."""
        self._sent = now

    def blocked(self, now: float | None) -> None:
        """What was written waits for the client to read since then; None: it waits no more."""
        self._write = now

    def busy(self, is_busy: bool, now: float) -> None:
        """While the server is busy with what came, it does not listen, and nobody is late."""
        self._busy = is_busy
        self._heard = now
        if self._frame is not None:
            self._frame = now

    def next_look(self, now: float) -> float:
        """When to ask `overdue` and `beat_is_due` again; what begins later is late later."""
        times = [time for time, _ in self._limits()]
        if self._outgoing:
            times.append(self._sent + self._outgoing)
        times.append(now + min(self.settings.frame, self.settings.write) / 4)
        return min(times)

    def beat_is_due(self, now: float) -> bool:
        """Whether a heart-beat is to be sent."""
        return bool(self._outgoing) and now >= self._sent + self._outgoing

    def overdue(self, now: float) -> FrameError | None:
        """What the client is too late with, or None."""
        for time, problem in self._limits():
            if now >= time:
                return FrameError(problem)
        return None

    def _limits(self) -> list[tuple[float, str]]:
        limits, settings = [], self.settings
        if self._connect is not None:
            limits.append((
                self._connect + settings.connect,
                f"no CONNECT within {settings.connect:g} seconds",
            ))  # fmt: skip
        if self._write is not None:
            limits.append((
                self._write + settings.write,
                f"the client did not read what was sent to it within {settings.write:g} seconds",
            ))  # fmt: skip
        if self._frame is not None and not self._busy:
            limits.append((
                self._frame + settings.frame, f"half a frame after {settings.frame:g} seconds"
            ))  # fmt: skip
        if self._incoming and not self._busy:
            limits.append((
                self._heard + GRACE * self._incoming,
                f"no heart-beat for {GRACE * self._incoming:g} seconds",
            ))  # fmt: skip
        return limits
