"""A raw client: bytes to a broker, and a count of what comes back, by asyncio."""

import asyncio
import re

from broker_sections.servers import HOST
from broker_sections.stock_alerts import MARK

PIECE = 1 << 18
PATIENCE = 120.0  # seconds without any progress


class RawClient:
    """A connection that counts how often a text comes, and keeps what a pattern finds."""

    def __init__(
        self, port: int, counted: bytes = MARK.encode(), kept: re.Pattern[bytes] | None = None
    ) -> None:
        self._port = port
        self._counted = counted
        self._kept = kept
        self._tail = b""
        self.count = 0
        self.found: list[tuple[float, bytes]] = []  # when, what
        self.failed: str | None = None
        self.changed = asyncio.Event()

    async def open(self, opening: bytes, opened: bytes) -> None:
        """Connect, and wait for the answer."""
        self._reader, self.writer = await asyncio.open_connection(HOST, self._port, limit=1 << 22)
        await self.ask(opening, opened)

    async def ask(self, question: bytes, answer: bytes) -> None:
        """Send something and wait for a text in what comes back; only before `listen`."""
        self.writer.write(question)
        seen = b""
        while answer not in seen:
            piece = await asyncio.wait_for(self._reader.read(PIECE), PATIENCE)
            if not piece or b"ERROR\n" in piece:
                raise SystemExit(f"the broker said: {(seen + piece)[-500:]!r}")
            seen += piece

    def listen(self) -> "asyncio.Task[None]":
        """Count from now on."""
        return asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        clock = asyncio.get_running_loop().time
        while piece := await self._reader.read(PIECE):
            text = self._tail + piece
            self.count += text.count(self._counted)
            # The tail is too short to be counted again.
            self._tail = text[-(len(self._counted) - 1) :]
            if self._kept is not None:
                now = clock()
                self.found += [(now, one) for one in self._kept.findall(text)]
            if piece.startswith(b"PING\r\n"):  # of NATS
                self.writer.write(b"PONG\r\n")
            if b"ERROR\n" in piece:
                self.failed = repr(piece[-500:])
            self.changed.set()
        self.failed = self.failed or "the broker closed the connection"
        self.changed.set()

    async def wait_until(self, least: int) -> None:
        """Wait until the text has come that often."""
        while self.count < least:
            if self.failed is not None:
                raise SystemExit(f"{self.failed}, after {self.count:,} of {least:,}")
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)
