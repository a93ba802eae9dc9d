"""The load generator of raw clients: fan-out, publishing, latency and backlog.

In: a `Task` as JSON on the command line. Out: the result as JSON.
"""

import asyncio
import json
import re
import resource
import sys
import time
from itertools import islice
from typing import Any, NamedTuple

import aiohttp

from broker_sections.raw_client import RawClient
from broker_sections.stock_alerts import MARK, TOPIC, Alerts, lines
from broker_sections.stopwatch import WARM_UP, Stopwatch
from broker_sections.wires import stomp_connect, stomp_send, stomp_subscribe, wire_of

ROUND = 500  # events that are sent together
ON_THE_WAY = 5_000  # events that are published and not yet delivered, or without their receipt
IN_A_REQUEST = 1_000
REQUESTS_AT_ONCE = 4
SINGLE_AT_ONCE = 64
STAMPED = re.compile(MARK.encode() + rb"(\d+\.\d+)#")


class Task(NamedTuple):
    """What to do."""

    work: str  # fan-out, receipts, lines, arrow, single, latency, backlog, idle
    contestant: str = "tamis"
    pid: int = 0  # of the broker
    port: int = 0  # of STOMP, or of the contestant's own protocol
    url: str = ""
    seconds: float = 5.0
    clients: int = 1
    rate: float = 0.0  # of latency: events per second
    events: int = 0  # of backlog


async def fan_out(task: Task) -> dict[str, Any]:
    """Publish to several subscribers who want everything."""
    listeners = [RawClient(task.port) for _ in range(task.clients)]
    for number, client in enumerate(listeners):
        wire = wire_of(task.contestant, number)
        await client.open(wire.opening, wire.opened)
        await client.ask(wire.subscribing, wire.subscribed)
        client.listen().add_done_callback(lambda _: None)
    wire = wire_of(task.contestant, task.clients)
    publisher = RawClient(task.port)
    await publisher.open(wire.opening, wire.opened)
    publisher.listen().add_done_callback(lambda _: None)
    batch = b"".join(wire.publication(quote.json()) for quote in islice(Alerts(0).quotes(), ROUND))
    sent, watch = 0, Stopwatch(task.pid, task.seconds)
    while watch.goes_on(sent):
        publisher.writer.write(batch)
        await publisher.writer.drain()
        sent += ROUND
        for client in listeners:
            await client.wait_until(sent - ON_THE_WAY)
    for client in listeners:
        await client.wait_until(sent)
    result = watch.result(sent)
    if any(client.count != sent for client in listeners):
        raise SystemExit(f"of {sent} events came {[client.count for client in listeners]}")
    return {**result, "deliveries": result["events"] * task.clients}


async def receipts(task: Task) -> dict[str, Any]:
    """Publish events one by one over STOMP, each with a receipt, without waiting for each."""
    client = RawClient(task.port, counted=b"RECEIPT\n")
    await client.open(stomp_connect(), b"CONNECTED")
    client.listen().add_done_callback(lambda _: None)
    quotes = [quote.json() for quote in islice(Alerts(100).quotes(), ROUND)]
    batch = b"".join(stomp_send(quote, f"r{n}") for n, quote in enumerate(quotes))
    sent, watch = 0, Stopwatch(task.pid, task.seconds)
    while watch.goes_on(sent):
        client.writer.write(batch)
        await client.writer.drain()
        sent += ROUND
        await client.wait_until(sent - ON_THE_WAY)
    await client.wait_until(sent)
    return dict(watch.result(sent))


async def posted(task: Task) -> dict[str, Any]:
    """Publish over HTTP: JSON lines in batches, or one event per request."""
    is_single = task.work == "single"
    quotes = list(islice(Alerts(100).quotes(), 1 if is_single else IN_A_REQUEST))
    kind = "application/json" if is_single else "application/x-ndjson"
    body, sent = lines(quotes), 0
    watch = Stopwatch(task.pid, task.seconds)

    async def post(session: aiohttp.ClientSession) -> None:
        nonlocal sent
        while watch.goes_on(sent):
            async with session.post(
                f"{task.url}/topics/{TOPIC}/events", data=body, headers={"Content-Type": kind}
            ) as answer:
                said = await answer.json()
            if said.get("accepted") != len(quotes):
                raise SystemExit(f"the broker said: {said}")
            sent += len(quotes)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        at_once = SINGLE_AT_ONCE if is_single else REQUESTS_AT_ONCE
        await asyncio.gather(*(post(session) for _ in range(at_once)))
    return dict(watch.result(sent))


async def tables(task: Task) -> dict[str, Any]:
    """Publish Arrow tables with the client of tamis."""
    import pyarrow as pa

    import tamis

    rows = [json.loads(quote.json()) for quote in islice(Alerts(100).quotes(), 20_000)]
    table, sent = pa.Table.from_pylist(rows), 0
    async with tamis.aio.connect(task.url) as broker:
        watch = Stopwatch(task.pid, task.seconds)
        while watch.goes_on(sent):
            sent += (await broker.publish_many(TOPIC, table)).accepted
        return dict(watch.result(sent))


async def latency(task: Task) -> dict[str, Any]:
    """Publish at a fixed rate; from before an event is sent until its subscriber has it."""
    listener = RawClient(task.port, kept=STAMPED)
    await listener.open(stomp_connect(), b"CONNECTED")
    await listener.ask(stomp_subscribe("0"), b"RECEIPT")
    listener.listen().add_done_callback(lambda _: None)
    publisher = RawClient(task.port)
    await publisher.open(stomp_connect(), b"CONNECTED")
    publisher.listen().add_done_callback(lambda _: None)
    clock = asyncio.get_running_loop().time
    begun, sent = clock(), 0
    while (passed := clock() - begun) < task.seconds:
        due = int(passed * task.rate) - sent
        for _ in range(due):
            # From when it was due, not from when this process came to it.
            stamp = begun + sent / task.rate
            body = b'{"symbol":"S1","level":"top","mark":"%b%.6f#"}' % (MARK.encode(), stamp)
            publisher.writer.write(stomp_send(body))
            sent += 1
        await publisher.writer.drain()
        await asyncio.sleep(0.0005)
    await listener.wait_until(sent)
    stamps = ((when, float(stamp)) for when, stamp in listener.found)
    warm = begun + WARM_UP * task.seconds
    times = sorted(when - stamp for when, stamp in stamps if stamp > warm)
    return {
        "events": sent, "rate": sent / task.seconds, "measured": len(times),
        "p50": times[len(times) // 2], "p99": times[int(len(times) * 0.99)], "most": times[-1],
    }  # fmt: skip


async def backlog(task: Task) -> dict[str, Any]:
    """Subscribe durably, leave, publish, come back, and count until all have everything."""
    import tamis

    names = [f"returning{number}" for number in range(task.clients)]

    async def come(number: int) -> RawClient:
        client = RawClient(task.port)
        await client.open(stomp_connect(**{"client-id": names[number]}), b"CONNECTED")
        return client

    def subscription(number: int) -> bytes:
        wanted = {"selector": f"symbol = 'S{number}'", "durable_subscription_name": "all"}
        return stomp_subscribe("0", **wanted)

    for number in range(task.clients):
        client = await come(number)
        await client.ask(subscription(number), b"RECEIPT")
        client.writer.close()
    expected = [0] * task.clients
    quotes = Alerts(task.clients).quotes()
    async with tamis.aio.connect(task.url) as broker:
        begun = time.perf_counter()
        left = task.events
        while left:
            some = list(islice(quotes, min(left, 20_000)))
            for symbol, _ in some:
                expected[int(symbol[1:])] += 1
            await broker.publish_many(TOPIC, [quote.json() for quote in some])
            left -= len(some)
        publishing = time.perf_counter() - begun
    clients = [await come(number) for number in range(task.clients)]
    begun = time.perf_counter()
    for number, client in enumerate(clients):
        client.writer.write(subscription(number))
        client.listen().add_done_callback(lambda _: None)
    for client, least in zip(clients, expected, strict=True):
        await client.wait_until(least)
    seconds = time.perf_counter() - begun
    if [client.count for client in clients] != expected:
        raise SystemExit("some subscribers got more than they should")
    return {"events": task.events, "publishing": publishing, "seconds": seconds}


async def idle(task: Task) -> dict[str, Any]:
    """Open connections, then subscribe; say when each is done, and wait for a line."""
    clients = [RawClient(task.port, counted=b"RECEIPT\n") for _ in range(task.clients)]
    for client in clients:
        await client.open(stomp_connect(), b"CONNECTED")
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    alerts, first = Alerts(task.events), clients[0]
    first.listen().add_done_callback(lambda _: None)
    for number in range(task.events):
        first.writer.write(stomp_subscribe(str(number), selector=alerts.filter(number)))
        await first.wait_until(number - ROUND)
    await first.wait_until(task.events)
    print("subscribed", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    return {}


WORKS = {
    "fan-out": fan_out, "receipts": receipts, "lines": posted, "single": posted, "arrow": tables,
    "latency": latency, "backlog": backlog, "idle": idle,
}  # fmt: skip


def main() -> None:
    """Do the task of the command line."""
    task = Task(**json.loads(sys.argv[1]))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(json.dumps(asyncio.run(WORKS[task.work](task))), flush=True)


if __name__ == "__main__":
    main()
