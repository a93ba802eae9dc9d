"""Clients of every protocol, for `network_chaos.py`: each sends or receives until it is cut off.

A publisher has `send`, which returns whether the broker has acknowledged all events. A receiver is
an asynchronous context with the deliveries of a durable subscription, which can be acknowledged
one by one where the protocol has that, or all up to one.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple, Protocol

import aiohttp

import tamis.aio
from broker_process import BrokerProcess
from tamis.broker.protocols.stomp.frames import Frame, FrameLimits, FrameParser
from tamis.errors import TamisError

LOST = aiohttp.ClientError, OSError, EOFError, TimeoutError, TamisError
PATIENCE = 20.0  # seconds without an answer, after which a client tries again
TOPIC = "load"


class Taken(NamedTuple):
    """An event that came."""

    event: dict[str, Any]
    redelivered: bool
    token: Any  # by which it is acknowledged


class Receiver(Protocol):
    """The deliveries of a durable subscription, over one connection."""

    def __aiter__(self) -> AsyncIterator[Taken]: ...

    async def ack(self, tokens: Sequence[Any]) -> None:
        """Acknowledge events: each of them, or all up to the last, as the receiver was made."""


class Wanted(NamedTuple):
    """A durable subscription, and how it is acknowledged."""

    broker: BrokerProcess
    name: str
    filter: str
    one_by_one: bool


# --- frames of STOMP, over TCP and over a WebSocket


class StompLine:
    """A connection that carries frames."""

    def __init__(self, write: Callable[[bytes], Any], read: Callable[[], Any]) -> None:
        self._write, self._read = write, read
        self._parser = FrameParser(FrameLimits(1_000_000, 1000, 10_000_000))
        self._parser.version = "1.2"

    async def send(self, *frames: tuple[str, dict[str, str], bytes]) -> None:
        pieces = []
        for command, headers, body in frames:
            head = "\n".join([command, *(f"{n}:{v}" for n, v in headers.items()), "", ""])
            pieces.append(head.encode() + body + b"\0")
        await self._write(b"".join(pieces))

    async def frame(self) -> Frame:
        while (found := self._parser.next_frame()) is None:
            async with asyncio.timeout(PATIENCE):
                self._parser.feed(await self._read())
        if found.command == "ERROR":
            raise ConnectionError(found.headers.get("message", "") + repr(found.body))
        return found

    async def greet(self) -> None:
        await self.send(("CONNECT", {"accept-version": "1.2", "host": "x"}, b""))
        assert (await self.frame()).command == "CONNECTED"


@contextlib.asynccontextmanager
async def stomp_tcp(broker: BrokerProcess) -> AsyncIterator[StompLine]:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.stomp)

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    async def read() -> bytes:
        data = await reader.read(1 << 16)
        if not data:
            raise EOFError
        return data

    line = StompLine(write, read)
    try:
        await line.greet()
        yield line
    finally:
        writer.transport.abort()


@contextlib.asynccontextmanager
async def stomp_socket(broker: BrokerProcess) -> AsyncIterator[StompLine]:
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{broker.url}/stomp", protocols=["v12.stomp"], max_msg_size=0) as socket,
    ):

        async def read() -> bytes:
            message = await socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                return message.data.encode()
            if message.type is aiohttp.WSMsgType.BINARY:
                return message.data
            raise EOFError

        line = StompLine(socket.send_bytes, read)
        await line.greet()
        yield line


STOMP_LINES = {"stomp": stomp_tcp, "stomp-ws": stomp_socket}


# --- publishers


class HttpPublisher:
    """Batches of CloudEvents."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    async def send(self, events: Sequence[dict[str, Any]], ids: Sequence[str]) -> bool:
        batch = [
            {"specversion": "1.0", "type": "t", "source": "chaos", "data": event, "id": id_}
            for event, id_ in zip(events, ids, strict=True)
        ]
        kind = {"Content-Type": "application/cloudevents-batch+json"}
        limit = aiohttp.ClientTimeout(PATIENCE)
        async with (
            aiohttp.ClientSession(timeout=limit) as http,
            http.post(
                f"{self._broker.url}/topics/{TOPIC}/events", data=json.dumps(batch), headers=kind
            ) as answer,
        ):
            return answer.status == 200 and (await answer.json())["accepted"] == len(batch)


class StompPublisher:
    """SEND frames, each with a receipt, over a connection that is kept."""

    def __init__(self, broker: BrokerProcess, protocol: str) -> None:
        self._broker, self._protocol = broker, protocol
        self._stack = contextlib.AsyncExitStack()
        self._line: StompLine | None = None

    async def send(self, events: Sequence[dict[str, Any]], ids: Sequence[str]) -> bool:
        try:
            if self._line is None:
                line = STOMP_LINES[self._protocol](self._broker)
                self._line = await self._stack.enter_async_context(line)
            return await self._send(self._line, events, ids)
        except BaseException:
            self._line = None
            await self._stack.aclose()
            raise

    async def _send(
        self, line: StompLine, events: Sequence[dict[str, Any]], ids: Sequence[str]
    ) -> bool:
        frames = [
            (
                "SEND",
                {"destination": f"/topic/{TOPIC}", "event-id": id_, "receipt": id_},
                json.dumps(event).encode(),
            )
            for event, id_ in zip(events, ids, strict=True)
        ]
        await line.send(*frames)
        for id_ in ids:
            answer = await line.frame()
            assert (answer.command, answer.headers["receipt-id"]) == ("RECEIPT", id_)
        return True

    async def close(self) -> None:
        await self._stack.aclose()


class PythonPublisher:
    """The client of tamis, a new one for each call."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker

    async def send(self, events: Sequence[dict[str, Any]], ids: Sequence[str]) -> bool:
        async with asyncio.timeout(PATIENCE), tamis.aio.connect(self._broker.url) as client:
            answer = await client.publish_many(TOPIC, events, ids)
            return answer.accepted == len(events)


def publisher(protocol: str, broker: BrokerProcess) -> Any:
    """A publisher to a broker."""
    if protocol in STOMP_LINES:
        return StompPublisher(broker, protocol)
    return HttpPublisher(broker) if protocol == "http" else PythonPublisher(broker)


PUBLISHERS = ("http", "stomp", "stomp-ws", "python")

# --- receivers


class SseReceiver:
    """Server-sent events, acknowledged by requests of their own: all up to an offset."""

    def __init__(self, wanted: Wanted, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._url = f"{wanted.broker.url}/topics/{TOPIC}/subscriptions/{wanted.name}"

    async def __aiter__(self) -> AsyncIterator[Taken]:
        limits = aiohttp.ClientTimeout(None, sock_read=PATIENCE)
        async with self._http.get(f"{self._url}/events", timeout=limits) as answer:
            async for line in answer.content:
                if line.startswith(b"data:"):
                    found = json.loads(line[5:])
                    if "offset" in found:
                        yield Taken(found["event"], found["redelivered"], found["offset"])

    async def ack(self, tokens: Sequence[Any]) -> None:
        async with self._http.post(f"{self._url}/ack", json={"offset": tokens[-1]}):
            pass


class SocketReceiver:
    """The broker's WebSocket."""

    def __init__(self, wanted: Wanted, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._one_by_one = socket, wanted.one_by_one

    async def __aiter__(self) -> AsyncIterator[Taken]:
        while True:
            async with asyncio.timeout(PATIENCE):
                message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                return
            found = json.loads(message.data)
            for one in found if isinstance(found, list) else [found]:
                if "offset" in one:
                    yield Taken(one["event"], one["redelivered"], one["offset"])

    async def ack(self, tokens: Sequence[Any]) -> None:
        await self._socket.send_json({"ack": list(tokens) if self._one_by_one else tokens[-1]})


class StompReceiver:
    """MESSAGE frames."""

    def __init__(self, wanted: Wanted, line: StompLine) -> None:
        self._line, self._one_by_one = line, wanted.one_by_one

    async def __aiter__(self) -> AsyncIterator[Taken]:
        while True:
            frame = await self._line.frame()
            if frame.command == "MESSAGE":
                again = frame.headers.get("redelivered") == "true"
                yield Taken(json.loads(frame.body), again, frame.headers["ack"])

    async def ack(self, tokens: Sequence[Any]) -> None:
        chosen = tokens if self._one_by_one else tokens[-1:]
        await self._line.send(*(("ACK", {"id": token}, b"") for token in chosen))


class PythonReceiver:
    """The client of tamis, which resumes by itself."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription

    async def __aiter__(self) -> AsyncIterator[Taken]:
        while True:
            async with asyncio.timeout(PATIENCE):
                some = await self._subscription.take(100)
            for one in some:
                yield Taken(one.event, one.redelivered, one.offset)

    async def ack(self, tokens: Sequence[Any]) -> None:
        self._subscription.ack(tokens[-1])


@contextlib.asynccontextmanager
async def receiver(protocol: str, wanted: Wanted) -> AsyncIterator[Receiver]:
    """A receiver of a subscription, until it is left."""
    async with contextlib.AsyncExitStack() as stack:
        if protocol == "python":
            client = await stack.enter_async_context(tamis.aio.connect(wanted.broker.url))
            made = client.subscribe(TOPIC, wanted.filter, durable=wanted.name, manual_ack=True)
            yield PythonReceiver(await stack.enter_async_context(made))
        elif protocol in STOMP_LINES:
            line = await stack.enter_async_context(STOMP_LINES[protocol](wanted.broker))
            headers = {
                "id": "0", "destination": f"/topic/{TOPIC}", "selector": wanted.filter,
                "durable-subscription-name": wanted.name,
                "ack": "client-individual" if wanted.one_by_one else "client",
            }  # fmt: skip
            await line.send(("SUBSCRIBE", headers, b""))
            yield StompReceiver(wanted, line)
        else:
            http = await stack.enter_async_context(aiohttp.ClientSession())
            if protocol == "sse":
                yield SseReceiver(wanted, http)
                return
            url = f"{wanted.broker.url}/topics/{TOPIC}/subscriptions/{wanted.name}/socket?batch=20"
            yield SocketReceiver(wanted, await stack.enter_async_context(http.ws_connect(url)))


RECEIVERS = ("sse", "stomp", "websocket", "python", "stomp-ws")
