"""What is measured: each section gives the rows of one table."""

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from broker_sections import raw_load, stomp_load
from broker_sections.processes import (
    GeneratorError,
    begun,
    generate,
    go_on,
    pin,
    wait_for_line,
)
from broker_sections.servers import Server, missing, running
from broker_sections.stock_alerts import SCHEMA, TOPIC

Row = dict[str, Any]
SLEEPING = "sleeping"  # the topic of subscriptions that sleep


class Extent(NamedTuple):
    """How much is measured."""

    filters: tuple[int, ...] = (0, 100, 1_000, 10_000, 100_000)
    seconds: float = 8.0
    subscribers: tuple[int, ...] = (1, 10)  # of fan-out
    backlog: int = 1_000_000
    returning: int = 1_000
    connections: int = 1_000
    attached: int = 10_000
    sleeping: int = 1_000_000


QUICK = Extent((0, 100, 1_000), 1.5, (1, 4), 20_000, 20, 50, 1_000, 10_000)


def make_topic(server: Server, name: str = TOPIC) -> None:
    """Make the topic at a broker of tamis."""
    request = urllib.request.Request(  # noqa: S310 - our own broker
        f"{server.url}/topics/{name}", json.dumps({"schema": SCHEMA}).encode(), method="PUT"
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - our own broker
        answer.read()


def started(server: Server) -> Server:
    """A broker that is ready: on its core, and with the topic."""
    pin(server)
    if server.name == "tamis":
        make_topic(server)
    return server


def measured(server: Server, module: str, task: Any) -> Row:
    """What a load generator finds, and what the broker needed for it."""
    before = server.cpu()
    try:
        found = {"cpu": None, **generate(module, task._replace(pid=server.process.pid))}
    except GeneratorError as error:
        return {"failed": str(error)}
    if found["cpu"] is None:
        found["cpu"] = server.cpu() - before
    if found.get("seconds"):
        found["events/s"] = found["events"] / found["seconds"]
        found["events/cpu s"] = found["events"] / max(found["cpu"], 0.01)
    return found


def filters(extent: Extent) -> Iterator[Row]:
    """tamis and ActiveMQ with the same clients of stomp.py, by the number of content filters."""
    for count in extent.filters:
        for name in ("tamis", "tamis, HTTP", "activemq"):
            if name in missing():
                continue
            with running(name.partition(",")[0]) as server:
                started(server)
                url = server.url if "HTTP" in name else None
                task = stomp_load.Task(server.stomp, 0, count, extent.seconds, url)
                found = measured(server, "stomp_load", task)
                yield {
                    "contestant": name, "filters": count, **found, "memory": server.resident(),
                }  # fmt: skip


def fan_out(extent: Extent) -> Iterator[Row]:
    """Everything to everybody, raw clients: what the protocols and loops alone can do."""
    for count in extent.subscribers:
        for name in ("tamis", "activemq", "mosquitto", "nats-server"):
            if name in missing():
                continue
            with running(name) as server:
                started(server)
                port = server.stomp or server.other
                task = raw_load.Task(
                    "fan-out", name, port=port, seconds=extent.seconds, clients=count
                )
                found = measured(server, "raw_load", task)
                if "seconds" in found:
                    found["deliveries/s"] = found["deliveries"] / found["seconds"]
                yield {"contestant": name, "subscribers": count, **found}


def publishing(extent: Extent) -> Iterator[Row]:
    """Durable publishing to tamis: every event is synced before its answer."""
    for work in ("receipts", "single", "lines", "arrow"):
        with running("tamis") as server:
            started(server)
            task = raw_load.Task(work, port=server.stomp, url=server.url, seconds=extent.seconds)
            yield {"way": work, **measured(server, "raw_load", task)}


def latency(extent: Extent) -> Iterator[Row]:
    """Latency at half of what pipelined single publications reach with one subscriber."""
    with running("tamis") as server:
        started(server)
        task = raw_load.Task("fan-out", port=server.stomp, seconds=extent.seconds)
        most = measured(server, "raw_load", task)
    if "failed" in most:
        yield most
        return
    for share in (0.1, 0.5):
        with running("tamis") as server:
            started(server)
            rate = share * most["events/s"]
            task = raw_load.Task("latency", port=server.stomp, seconds=extent.seconds, rate=rate)
            yield {"load": share, **measured(server, "raw_load", task)}


def backlog(extent: Extent) -> Iterator[Row]:
    """Durable subscribers who return, and find that much has happened."""
    with running("tamis") as server:
        started(server)
        task = raw_load.Task("backlog", port=server.stomp, url=server.url,
                             clients=extent.returning, events=extent.backlog)  # fmt: skip
        yield {"subscribers": extent.returning, **measured(server, "raw_load", task),
               "memory": server.resident()}  # fmt: skip


def memory(extent: Extent) -> Iterator[Row]:
    """Bytes per connection and per attached subscription, by what the process grows."""
    with running("tamis") as server:
        started(server)
        grown(server, 10, 10)  # the first ones load code, which is not what one more costs
        before, connected, subscribed = grown(server, extent.connections, extent.attached)
        yield {
            "what": "connection", "count": extent.connections,
            "bytes": (connected - before) / extent.connections,
        }  # fmt: skip
        yield {
            "what": "attached subscription", "count": extent.attached,
            "bytes": (subscribed - connected) / extent.attached,
        }  # fmt: skip


def grown(server: Server, connections: int, attached: int) -> tuple[int, int, int]:
    """The memory of a broker before there are connections, with them, and with subscriptions."""
    task = raw_load.Task("idle", port=server.stomp, clients=connections, events=attached)
    sizes = [server.resident()]
    with begun("raw_load", task) as generator:
        for _ in range(2):
            wait_for_line(generator)
            sizes.append(server.resident())
            go_on(generator)
        generator.communicate()
    before, connected, subscribed = sizes
    return before, connected, subscribed


def start_up(extent: Extent) -> Iterator[Row]:
    """The start of a broker with no durable subscription, and with very many that sleep."""
    with tempfile.TemporaryDirectory(prefix="bench-start-") as temporary:
        folder = Path(temporary)
        with running("tamis", folder=folder) as server:
            make_topic(server, SLEEPING)
        for count in (0, extent.sleeping):
            if count:
                put_to_sleep(folder / "data" / "catalogue.sqlite", count)
            for _ in range(2):  # the second time, the file is in the page cache
                with running("tamis", folder=folder) as server:
                    yield {"sleeping": count, "seconds": server.seconds,
                           "memory": server.resident()}  # fmt: skip


def put_to_sleep(path: Path, count: int) -> None:
    """Write durable subscriptions straight into the catalogue of a broker that does not run."""
    from tamis.broker.catalogue import Catalogue, SubscriptionRow, put_subscription
    from tamis.broker.delivery.progress import starting_at
    from tamis.broker.records import DeliveryOptions

    catalogue = Catalogue(path)
    try:
        number = next(row.number for row in catalogue.topics() if row.name == SLEEPING)
        options, progress = DeliveryOptions(), starting_at(0)
        for begin in range(0, count, 10_000):
            catalogue.commit(
                put_subscription(
                    SubscriptionRow(
                        number, "guest", f"sleeper{n}", f"symbol = 'S{n}'", options, progress
                    )
                )
                for n in range(begin, min(begin + 10_000, count))
            )
    finally:
        catalogue.close()


SECTIONS = {
    "filters": filters, "fan-out": fan_out, "publishing": publishing, "latency": latency,
    "backlog": backlog, "memory": memory, "start-up": start_up,
}  # fmt: skip
