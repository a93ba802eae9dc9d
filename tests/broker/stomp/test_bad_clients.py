"""Clients that send nonsense, too much, too slowly or nothing: they go, and nobody else notices."""

import json
import socket
from collections.abc import Iterator

import pytest

from cases import each
from stomp_brokers import StompBroker, stomp_broker
from tamis.broker.protocols.stomp.time_limits import TimeSettings
from tamis.broker.stomp.connection import HIGH_WATER
from tamis.broker.stomp.deliveries import BATCH_BYTES

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


def unread(running):
    """How many bytes are kept for clients that do not read."""
    wires = [connection._wire for connection in running.service.connections]
    return sum(wire._transport.get_write_buffer_size() for wire in wires)


def test_a_client_that_does_not_read_costs_one_batch_and_is_cut(impatient):
    body = json.dumps({"price": 1, "text": "x" * 10_000})
    lazy = impatient.raw()
    lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.subscribe("/topic/t", name="lazy")
    eager, sender = impatient.raw(), impatient.raw()
    eager.subscribe("/topic/t", "selector:price = 1")
    most = 0
    for _ in range(50):
        sender.publish("/topic/t", *[body] * 20)
        eager.messages(20)
        most = max(most, impatient.ask(lambda: unread(impatient)))
    assert most < 2 * BATCH_BYTES
    while impatient.ask(lambda: len(impatient.service.connections)) > 2:  # until it is cut
        eager.publish("/topic/t", body)
        eager.messages(1)
    eager.disconnect()
    sender.disconnect()


def send_for_ever(sock, data):
    for _ in range(1000):
        sock.send(data)


def test_a_client_that_sends_and_does_not_read_its_receipts_has_to_wait(tmp_path):
    with stomp_broker(tmp_path) as running:
        running.create_topic("t")
        client = running.raw()
        client.socket.setblocking(False)
        frame = b"SEND\ndestination:/topic/t\nreceipt:" + b"r" * 10_000 + b'\n\n{"price":1}\0'
        with pytest.raises(BlockingIOError):
            send_for_ever(client.socket, frame * 20)
        waiting = running.ask(
            lambda: sum(one._session.waiting for one in running.service.connections)
        )
        assert waiting <= 2 * HIGH_WATER
        client.socket.close()


def test_a_slow_subscriber_is_told_how_many_events_it_lost(tmp_path):
    with stomp_broker(tmp_path) as running:
        topic = running.create_topic("t")
        lazy, sender = running.raw(), running.raw()
        lazy.subscribe(topic)
        body = json.dumps({"price": 1, "text": "x" * 200_000})
        count = 200  # 40 MB; sockets take a few, the buffer 16
        for _ in range(count // 10):
            sender.publish(topic, *[body] * 10)
        got = lost = 0
        while got + lost < count:
            message = lazy.frame("MESSAGE")
            got += 1
            lost += int(message.headers.get("dropped", 0))
        assert lost > 0
        assert message.headers["offset"] == str(count - 1)


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
