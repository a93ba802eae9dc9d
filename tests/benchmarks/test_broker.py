"""The benchmark of the broker: its workload is what it says, and a wrong answer is noticed."""

import asyncio
from collections import Counter
from itertools import islice
from types import SimpleNamespace

import pytest

import broker
import tamis
from broker_sections import raw_load, sections, servers, stopwatch
from broker_sections.processes import GeneratorError
from broker_sections.raw_client import RawClient
from broker_sections.stock_alerts import MARK, SCHEMA, Alerts, lines
from broker_sections.wires import stomp_send, wire_of
from cases import each
from tamis.broker.catalogue import Catalogue, TopicRow, put_topic


def test_the_counts_are_those_of_a_matcher():
    alerts = Alerts(20)
    matcher = tamis.Matcher(SCHEMA)
    matcher.subscribe_many([(number, alerts.filter(number)) for number in range(20)])
    quotes = list(islice(alerts.quotes(), 200))
    counts: Counter[int] = Counter()
    total = alerts.count(quotes, counts)
    found = [matcher.match(text.decode()) for text in lines(quotes).split(b"\n")]
    assert Counter(number for numbers in found for number in numbers) == counts
    assert 0.6 < total / 200 < 0.9


def test_without_filters_one_subscriber_gets_everything():
    counts: Counter[int] = Counter()
    assert Alerts(0).count(list(islice(Alerts(0).quotes(), 5)), counts) == 5
    assert counts == {0: 5}


@each(
    ("contestant", "expected"),
    [
        ("mosquitto", b"0\x0c\x00\x06quotesbody"),
        ("nats-server", b"PUB quotes 4\r\nbody\r\n"),
        ("activemq", stomp_send(b"body")),
    ],
)
def test_publications_on_the_wire(contestant, expected):
    assert wire_of(contestant, 1).publication(b"body") == expected


def test_a_long_packet_of_mqtt():
    assert wire_of("mosquitto", 1).publication(b"x" * 300)[:4] == b"0\xb4\x02\x00"


@each("size", [1, 3, 5, 1000])
def test_events_are_counted_over_pieces_of_any_size(size):
    text = (b"head " + MARK.encode() + b" tail") * 10

    async def count():
        async def serve(reader, writer):
            await reader.readline()
            writer.write(b"opened")
            await writer.drain()
            for begin in range(0, len(text), size):
                writer.write(text[begin : begin + size])
                await writer.drain()
                await asyncio.sleep(0)  # so that the pieces come one by one
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = RawClient(server.sockets[0].getsockname()[1])
        client._reader, client.writer = await asyncio.open_connection(
            *server.sockets[0].getsockname()
        )
        client.writer.write(b"open\n")
        await client._reader.readexactly(6)
        await client.listen()
        client.writer.close()
        server.close()
        return client.count, client.failed

    assert asyncio.run(count()) == (10, "the broker closed the connection")


def test_a_generator_that_fails_is_a_row_that_says_so(monkeypatch):
    class Idle:
        cpu = staticmethod(lambda: 0.0)
        process = SimpleNamespace(pid=1)

    def fail(*_):
        raise GeneratorError("why")

    monkeypatch.setattr(sections, "generate", fail)
    assert sections.measured(Idle(), "raw_load", raw_load.Task("fan-out")) == {"failed": "why"}


def test_a_run_is_measured_after_its_warm_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr(stopwatch, "cpu_seconds", lambda _: now[0] / 2)
    watch = stopwatch.Stopwatch(1, 8.0)
    seen = []
    for done in range(0, 1000, 100):
        if not watch.goes_on(done):
            break
        seen.append(done)
        now[0] += 2.0
    assert seen == [0, 100, 200, 300, 400]
    assert watch.result(500) == {"events": 400, "seconds": 8.0, "cpu": 4.0}


def test_contestants_that_are_not_installed_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(servers, "ACTIVEMQ", tmp_path / "none")
    monkeypatch.setattr(servers, "_program", lambda _: None)
    assert set(servers.missing()) == {"activemq", "mosquitto", "nats-server"}


def test_rates_are_compared_under_the_same_conditions():
    best: dict[object, float] = {}
    rows = [
        {"contestant": "tamis", "filters": 10, "events/s": 100.0},
        {"contestant": "activemq", "filters": 10, "events/s": 25.0},
        {"contestant": "activemq", "filters": 20, "events/s": 25.0},
    ]
    for row in rows:
        broker.compare(row, best)
    assert [row.get("of tamis") for row in rows] == [1.0, 0.25, None]
    assert broker.shown(rows[1], "of tamis") == "0.25"
    assert broker.shown({"p50": 0.0012}, "p50") == "1.20 ms"
    assert broker.shown({"memory": 2e6}, "memory") == "2 MB"
    assert broker.shown({}, "cpu") == broker.DASH


def test_subscriptions_are_put_to_sleep(tmp_path):
    path = tmp_path / "catalogue.sqlite"
    catalogue = Catalogue(path)
    catalogue.commit([put_topic(TopicRow(1, sections.SLEEPING, SCHEMA, "sql", None, None))])
    catalogue.close()
    sections.put_to_sleep(path, 5)
    catalogue = Catalogue(path)
    found = catalogue.subscriptions(1, "guest", None, 10)
    catalogue.close()
    assert [row.id for row in found] == [f"sleeper{number}" for number in range(5)]


@pytest.mark.parametrize("section", list(sections.SECTIONS))
def test_every_section_has_a_table(section):
    assert broker.COLUMNS[section]
