"""A proxy between two brokers, which cuts, delays and damages what goes through it."""

import asyncio
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Carries bytes between two brokers, until it is told not to."""

    port: int
    target: int
    delay: float = 0.0
    is_cut: bool = False
    flip: int | None = None  # about where the next bytes are damaged
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        back = None
        self.tasks.add(task)
        try:
            if not self.is_cut:
                there, back = await asyncio.open_connection("127.0.0.1", self.target)
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            for one in (writer, back):
                if one is not None:
                    one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.flip is not None:
                place, self.flip = self.flip % len(data), None
                data = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    def cut(self) -> None:
        self.is_cut = True
        for task in self.tasks:
            task.cancel()

    async def stop(self) -> None:
        self.server.close()
        tasks = list(self.tasks)
        self.cut()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)  # transports are closed in the next round
