"""Transactions: what a client sent and acknowledged between BEGIN and COMMIT."""

from typing import NamedTuple

from tamis.broker.protocols.stomp.frames import FrameError
from tamis.broker.protocols.stomp.requests import Ack, Commit, Send
from tamis.errors import LimitReached


class TransactionLimits(NamedTuple):
    """What the open transactions of one connection may take together."""

    opened: int = 100
    frames: int = 100_000
    bytes: int = 16_000_000  # of bodies and headers


class Transactions:
    """The open transactions of one connection. Those that are open at its end are forgotten."""

    def __init__(self) -> None:
        self.limits = TransactionLimits()
        self._open: dict[str, tuple[list[Send], list[Ack]]] = {}
        self._sizes: dict[str, tuple[int, int]] = {}  # frames and bytes
        self._frames = self._bytes = 0

    def begin(self, name: str | None) -> None:
        """BEGIN."""
        if not name:
            raise FrameError("BEGIN needs the header transaction")
        if name in self._open:
            raise FrameError(f"transaction {name[:60]!r} has begun already")
        if len(self._open) >= self.limits.opened:
            raise LimitReached(f"more than {self.limits.opened} transactions are open")
        self._open[name] = [], []
        self._sizes[name] = 0, 0

    def commit(self, name: str | None, receipt: str | None) -> Commit:
        """COMMIT: gives what was done in the transaction."""
        sends, acks = self._end(name)
        return Commit(sends, acks, receipt)

    def abort(self, name: str | None) -> None:
        """ABORT."""
        self._end(name)

    def send(self, name: str, send: Send) -> None:
        """Keep a SEND for the COMMIT of its transaction."""
        size = len(send.body) + sum(len(key) + len(value) for key, value in send.headers.items())
        self._grow(name, 1, size)
        self._open[name][0].append(send)

    def acknowledge(self, name: str, acks: list[Ack]) -> None:
        """Keep acknowledgements for the COMMIT of their transaction."""
        self._grow(name, max(1, len(acks)), 0)
        self._open[name][1].extend(acks)

    def _end(self, name: str | None) -> tuple[list[Send], list[Ack]]:
        content = self._open.pop(name or "", None)
        if content is None:
            raise _not_begun(name)
        frames, size = self._sizes.pop(name or "")
        self._frames -= frames
        self._bytes -= size
        return content

    def _grow(self, name: str, frames: int, size: int) -> None:
        if name not in self._open:
            raise _not_begun(name)
        before = self._sizes[name]
        self._sizes[name] = before[0] + frames, before[1] + size
        self._frames += frames
        self._bytes += size
        if self._frames > self.limits.frames or self._bytes > self.limits.bytes:
            raise LimitReached(
                f"the open transactions of a connection may have {self.limits.frames:,} frames and "
                f"{self.limits.bytes:,} bytes; commit more often"
            )


def _not_begun(name: str | None) -> FrameError:
    if not name:
        return FrameError("the header transaction is missing")
    return FrameError(f"transaction {name[:60]!r} has not begun; BEGIN comes first")
