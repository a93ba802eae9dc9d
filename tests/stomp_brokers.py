"""A broker with a STOMP server on a free port, in a thread with an event loop of its own."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tamis.broker.broker import Broker
from tamis.broker.protocols.stomp.frames import Frame, FrameLimits, FrameParser
from tamis.broker.settings import Settings
from tamis.broker.stomp.service import StompService
from tamis.broker.stomp_server import StompServer

QUOTES = "symbol string, price double, volume int"


class StompBroker:
    """A broker that runs, and its address."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        self._clients: list[RawClient] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="broker")
        self._thread.start()
        self.broker, self.service, self._server, self.port = self.run(_start(settings, options))
        self.account = next(iter(self.broker.accounts))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine gives, which runs in the broker's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def ask(self, question: Callable[[], Any]) -> Any:
        """What a function gives, which is called in the broker's loop."""

        async def asked() -> Any:
            return question()

        return self.run(asked())

    def create_topic(self, name: str, schema: str = QUOTES) -> str:
        """Make a topic; gives its destination."""
        self.run(self.broker.create_topic(self.account, name, schema))
        return f"/topic/{name}"

    def events(self, topic: str) -> list[bytes]:
        """All events of a topic."""
        records = self.run(self.broker.read(self.account, topic, most=100_000))
        return [record.body for record in records]

    def raw(self, *, version: str | None = "1.2", **headers: str) -> "RawClient":
        """A client that sends bytes as they are; it is connected, unless the version is None."""
        client = RawClient(self.port)
        self._clients.append(client)
        if version is not None:
            more = [f"{name.replace('_', '-')}:{value}" for name, value in headers.items()]
            client.send("CONNECT", f"accept-version:{version}", "host:x", *more)
            assert client.frame().command == "CONNECTED"
        return client

    def stop(self) -> None:
        """Stop the server, the broker and the thread."""
        for client in self._clients:
            client.socket.close()
        try:
            self.run(self._server.stop())
            self.run(self.broker.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _start(settings: Settings, options: dict[str, Any]) -> Any:
    broker = await Broker.open(settings)
    service = StompService(broker, **options)
    server = StompServer(service)
    port = await server.start("127.0.0.1", 0)
    return broker, service, server, port


@contextmanager
def stomp_broker(folder: Path, **options: Any) -> Iterator[StompBroker]:
    """A broker with its data in a folder, stopped at the end."""
    accounts = options.pop("accounts", ())
    running = StompBroker(Settings(data=folder, accounts=accounts), **options)
    try:
        yield running
    finally:
        running.stop()


class RawClient:
    """A socket that frames are read from."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.parser = FrameParser(FrameLimits(1_000_000, 1000, 10_000_000))
        self.kept: list[Frame] = []

    def send(self, command: str, *headers: str, body: str | bytes = b"") -> None:
        """Send a frame."""
        head = "\n".join([command, *headers, "", ""]).encode()
        self.send_bytes(head + (body if isinstance(body, bytes) else body.encode()) + b"\0")

    def send_bytes(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def frame(self, command: str | None = None) -> Frame:
        """The next frame of the server, of a command if one is named; others are kept for later."""
        for kept in self.kept:
            if command in {None, kept.command}:
                self.kept.remove(kept)
                return kept
        while True:
            found = self.frame_or_end()
            assert found is not None, "the server closed the connection"
            if command in {None, found.command}:
                return found
            self.kept.append(found)

    def receipt(self) -> str:
        """The id of the next receipt."""
        return self.frame("RECEIPT").headers["receipt-id"]

    def messages(self, count: int) -> list[Frame]:
        """The next messages."""
        return [self.frame("MESSAGE") for _ in range(count)]

    def frame_or_end(self) -> Frame | None:
        """The next frame of the server; None when it has closed the connection."""
        while True:
            found = self.parser.next_frame()
            if found is not None:
                if found.command == "CONNECTED":
                    self.parser.version = found.headers["version"]
                return found
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self.parser.feed(data)

    def error(self) -> Frame:
        """The ERROR frame that the server sends next, after which it closes the connection."""
        frame = self.frame("ERROR")
        assert self.frame_or_end() is None
        self.socket.close()
        return frame

    def subscribe(self, destination: str, *headers: str, name: str = "s") -> None:
        """Subscribe, and wait until it is done."""
        self.send("SUBSCRIBE", f"id:{name}", f"destination:{destination}", "receipt:sub", *headers)
        assert self.receipt() == "sub"

    def publish(self, destination: str, *bodies: str) -> None:
        """Send events, and wait until they are safe."""
        for body in bodies:
            self.send("SEND", f"destination:{destination}", "receipt:pub", body=body)
        for _ in bodies:
            assert self.receipt() == "pub"

    def disconnect(self) -> None:
        """Disconnect in order."""
        self.send("DISCONNECT", "receipt:end")
        while (frame := self.frame_or_end()) is not None:
            assert frame.command in {"MESSAGE", "RECEIPT"}
        self.socket.close()
