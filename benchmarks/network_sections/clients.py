"""Clients of a network: subscribers that keep all they get, and publishers."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from broker_sections.wires import stomp_frame
from network_sections.brokers import HOST, TOKEN, NetworkBroker, RunningNetwork

PIECE = 1 << 18
PATIENCE = 60.0  # seconds without anything
DELIVERY = re.compile(rb'MESSAGE\nsubscription:(\d+)\n.*?"number": ?(\d+)', re.DOTALL)
MESSAGE = b"\nmessage-id:"  # once in each delivery


class Subscriber:
    """A client with many subscriptions to a topic, at one broker."""

    def __init__(self, broker: NetworkBroker, topic: str) -> None:
        self.broker = broker
        self.count = 0
        self.bytes = 0
        self.times: list[tuple[float, int]] = []  # when that many had come
        self._topic = topic
        self._pieces: list[bytes] = []
        self._tail = b""
        self._changed = asyncio.Event()
        self._failed = ""

    async def subscribe(self, wanted: Mapping[int, str], *, durable: bool = False) -> None:
        """Subscribe, and return when all is established."""
        self._reader, self._writer = await asyncio.open_connection(
            HOST, self.broker.stomp, limit=1 << 22
        )
        headers = {"accept-version": "1.2", "host": HOST, "passcode": TOKEN}
        if durable:
            headers["client-id"] = "benchmark"
        self._writer.write(stomp_frame("CONNECT", headers))
        for number, text in wanted.items():
            asked = {
                "id": str(number), "destination": f"/topic/{self._topic}", "ack": "auto",
                "receipt": f"s{number}", "selector": text,
            }  # fmt: skip
            if durable:
                asked["durable-subscription-name"] = f"n{number}"
            self._writer.write(stomp_frame("SUBSCRIBE", asked))
        seen = 0
        tail = b""
        while seen < len(wanted):
            piece = await asyncio.wait_for(self._reader.read(PIECE), PATIENCE)
            if not piece or b"ERROR\n" in piece:
                raise SystemExit(f"broker {self.broker.name} said: {piece[-500:]!r}")
            seen += (tail + piece).count(b"receipt-id:")
            tail = piece[-10:]
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while piece := await self._reader.read(PIECE):
            text = self._tail + piece
            self.count += text.count(MESSAGE)
            self._tail = text[-(len(MESSAGE) - 1) :]
            self.bytes += len(piece)
            self._pieces.append(piece)
            self.times.append((time.perf_counter(), self.count))
            self._changed.set()
            if b"ERROR\n" in piece:
                break
        self._failed = f"broker {self.broker.name} ended the connection: {self._tail!r}"
        self._changed.set()

    async def wait_until(self, count: int) -> None:
        """Return when that many deliveries have come."""
        while self.count < count:
            if self._failed:
                raise SystemExit(self._failed)
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), PATIENCE)
            except TimeoutError:
                raise SystemExit(
                    f"at {self.broker.name} came {self.count:,} of {count:,}"
                ) from None

    def got(self) -> Counter[tuple[int, int]]:
        """All deliveries: the numbers of subscription and event."""
        found = DELIVERY.findall(b"".join(self._pieces))
        return Counter((int(one), int(event)) for one, event in found)

    def arrivals(self) -> list[float]:
        """When each delivery came."""
        found: list[float] = []
        for when, count in self.times:
            found += [when] * (count - len(found))
        return found

    def close(self) -> None:
        """Leave."""
        self._task.cancel()
        self._writer.close()


class Publisher:
    """A client that publishes to one broker, many events in a request."""

    def __init__(self, network: RunningNetwork, broker: str, topic: str) -> None:
        self._http = network.http
        self._address = f"{network.brokers[broker].url}/topics/{topic}/events"
        self.bytes = 0

    async def publish(self, events: Sequence[bytes]) -> None:
        """Publish events, and return when they are stored."""
        body = b"\n".join(events)
        self.bytes += len(body)
        headers = {"Content-Type": "application/x-ndjson"}
        async with self._http.post(self._address, data=body, headers=headers) as answer:
            said = await answer.json()
        if said.get("accepted") != len(events):
            raise SystemExit(f"the broker said: {said}")

    async def publish_all(self, events: Sequence[bytes], together: int) -> None:
        """Publish events one request after the other."""
        for start in range(0, len(events), together):
            await self.publish(events[start : start + together])
