"""Clients that send nonsense, too much, too slowly or nothing: they go, and nobody else notices."""

import json
import socket
from collections.abc import Iterator

import pytest

from cases import each
from stomp_brokers import StompBroker, stomp_broker
from tamis.broker.protocols.stomp.time_limits import TimeSettings

IMPATIENT = TimeSettings(connect=0.3, frame=0.3, write=0.3)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StompBroker]:
    folder = tmp_path_factory.mktemp("impatient")
    with stomp_broker(folder, times=IMPATIENT, most_half_open=20, most_connections=60) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture(scope="module")
def patient(running: StompBroker) -> StompBroker:
    running.create_topic("t")
    return running


def works(running):
    """A client that does everything right gets what it asks for."""
    client = running.raw()
    client.subscribe("/topic/t", "selector:price = 42")
    client.publish("/topic/t", json.dumps({"price": 42}))
    client.messages(1)
    client.disconnect()


@each(
    ("data", "problem"),
    [
        (b"\0", "empty line"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not a command"),
        (b"\x16\x03\x01\x02\x00" + b"\0" * 100, "empty line"),
        (b"SEND\n\n\0", "expected CONNECT"),
        (b"CONNECT\naccept-version:9\n\n\0", "no common version"),
        (b"CONNECT\n" + b"x:" + b"y" * 20_000, "more than 16,000 bytes"),
        (b"CONNECT\ncontent-length:1000000000\n\n", "too long"),
        (b"CONNECT\n" + b"a:b\n" * 200 + b"\n\0", "100 headers"),
    ],
)
def test_what_is_not_a_connect_is_an_error(patient, data, problem):
    client = patient.raw(version=None)
    client.send_bytes(data)
    assert problem in client.error().headers["message"]


@each(
    ("data", "problem"),
    [
        (b"SEND\ndestination:/topic/t\ncontent-length:1000001\n\n", "limit is 1,000,000"),
        (b"SEND\ndestination:/topic/t\n\n" + b"x" * 1_100_000, "limit is 1,000,000"),
        (b"SUBSCRIBE\nid:a\nselector:" + b"price = 1 OR " * 1_000_000, "more than 1,100,000"),
        (
            b"SUBSCRIBE\nid:a\ndestination:/topic/t\nselector:" + b"price=1 OR " * 90_000
            + b"price=2\n\n\0", "20,000",
        ),
        (b"SEND\n" + b"a:b\n" * 2000 + b"\n\0", "1,000 headers"),
        (b"SEND\ndestination:/topic/t\ncontent-length:2\n\n{}}\0", "NUL"),
        (b"SUBSCRIBE\nid:a\ndestination:/topic/t\nslow:maybe\n\n\0", "drop-oldest"),
    ],
)  # fmt: skip
def test_a_bad_frame_ends_its_connection_only(patient, data, problem):
    client = patient.raw()
    client.send_bytes(data)
    assert problem in client.error().body.decode()


def test_the_others_did_not_notice(patient):
    works(patient)


def test_a_client_that_takes_its_time_is_cut(impatient):
    silent, half, slow = (impatient.raw(version=None) for _ in range(3))
    half.send_bytes(b"CONNECT\naccept-")
    slow.send_bytes(b"\n")
    inside = impatient.raw()
    inside.send_bytes(b"SEND\ndestination:/topic/t\n\n{")
    for client in (silent, half, slow):
        assert "no CONNECT within" in client.error().headers["message"]
    assert "half a frame" in inside.error().headers["message"]
    works(impatient)


def test_those_who_connect_and_say_nothing_do_not_keep_others_out(impatient):
    before = impatient.ask(lambda: len(impatient.service.connections))
    sockets = [socket.create_connection(("127.0.0.1", impatient.port)) for _ in range(100)]
    works(impatient)
    half_open = impatient.ask(lambda: len(impatient.service.connections))
    assert half_open <= before + 20
    for one in sockets:
        one.close()


def test_there_is_a_most_of_connections(impatient):
    clients = [impatient.raw() for _ in range(60)]
    refused = impatient.raw(version=None)
    assert "60 connections" in refused.error().headers["message"]
    for client in clients:
        client.disconnect()
    works(impatient)


def test_a_window_bounds_what_is_unacknowledged(tmp_path):
    with stomp_broker(tmp_path) as running:
        topic = running.create_topic("t")
        client = running.raw(client_id="c")
        name = "durable-subscription-name:d"
        client.subscribe(topic, "ack:client", name, "prefetch-count:2")
        client.publish(topic, *['{"price":1}'] * 5)
        first, second = client.messages(2)
        client.publish(topic, '{"price":2}')
        assert not [frame for frame in client.kept if frame.command == "MESSAGE"]
        client.send("ACK", f"id:{second.headers['ack']}")
        assert [frame.headers["offset"] for frame in client.messages(2)] == ["2", "3"]
        assert first.headers["offset"] == "0"


def test_clients_are_told_that_the_broker_stops(tmp_path):
    with stomp_broker(tmp_path) as running:
        client = running.raw()
        running.run(running.service.stop())
        assert "the broker stops" in client.error().headers["message"]
