"""Clients that are slow, large, many or silent: an error for them, nothing for the others."""

import gzip
import json
import socket
import struct
import time
from contextlib import suppress

import pytest

from served_broker import ServedBroker
from tamis.broker.limits import AccountLimits
from tamis.broker.records import NewEvent
from tamis.broker.web import calls, streams

HEAD = b"POST /topics/t/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    limits = AccountLimits(body_bytes=100_000, event_bytes=50_000, connections=3)
    with ServedBroker(tmp_path_factory.mktemp("data"), keep_alive=0.3, limits=limits) as broker:
        broker.topic("t")
        yield broker


def all_of(connection):
    """Everything that comes, until the server closes the connection."""
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.long
def test_a_head_that_comes_slowly_ends_the_connection(served):
    for begun in (b"", b"GET / HTTP/1.1\r\n", HEAD):
        with served.connect() as connection:
            connection.sendall(begun)
            assert all_of(connection) == b""


def test_a_connection_that_sends_byte_after_byte_ends(served):
    with served.connect() as connection:
        with suppress(OSError):  # until it is closed or reset
            while True:
                connection.sendall(b"x")
                time.sleep(0.05)  # a slow client
        assert served.ask("GET", "/healthz").status == 200


def test_a_body_that_comes_slowly_is_refused(served, monkeypatch):
    monkeypatch.setattr(calls, "BODY_SECONDS", 0.2)
    with served.connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
        answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body-too-slow" in answer


@pytest.mark.long
def test_a_body_that_is_too_large_is_refused(served):
    answer = served.ask("POST", "/topics/t/events", {"symbol": "x" * 200_000})
    assert (answer.status, answer.json["error"]) == (413, "body-too-large")
    with served.connect() as connection:  # its length is not said
        connection.sendall(HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(30):
            connection.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert all_of(connection).startswith(b"HTTP/1.1 413")
    bomb = gzip.compress(b'{"symbol": "' + b"x" * 20_000_000 + b'"}')
    assert len(bomb) < 100_000
    answer = served.ask(
        "POST", "/topics/t/events", bomb, Content_Type="application/json", Content_Encoding="gzip"
    )
    assert answer.status == 413


def test_an_event_that_is_too_large_is_refused(served):
    answer = served.ask("POST", "/topics/t/events", {"symbol": "x" * 60_000})
    assert answer.status == 400
    assert "60,0" in answer.json["message"]


def test_a_compressed_body_is_read(served):
    body = gzip.compress(b'{"symbol": "IBM"}')
    answer = served.ask(
        "POST", "/topics/t/events", body, Content_Type="application/json", Content_Encoding="gzip"
    )
    assert answer.json["accepted"] == 1
    answer = served.ask(
        "POST", "/topics/t/events", b"x", Content_Type="application/json", Content_Encoding="gzip"
    )
    assert answer.status == 400


def test_bytes_that_are_not_http_are_refused_and_do_not_fill_the_log(served, caplog):
    for text in (b"\x00\xff" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"x" * 100_000):
        with served.connect() as connection:
            connection.sendall(text)
            assert all_of(connection).startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert not caplog.records
    assert served.ask("GET", "/healthz").status == 200


def test_idle_connections_disturb_nobody_and_end(served):
    idle = [served.connect() for _ in range(500)]
    assert served.ask("GET", "/healthz").status == 200
    assert served.ask("POST", "/topics/t/events", {"price": 1}).status == 200
    for connection in idle:
        with connection:
            assert all_of(connection) == b""


def test_an_account_may_listen_only_as_often_as_its_limit_says(served):
    open_now = [served.listen("/topics/t/live") for _ in range(3)]
    assert [stream.status for stream in open_now] == [200] * 3
    answer = served.ask("GET", "/topics/t/live")
    assert (answer.status, answer.json["error"]) == (429, "limit-reached")
    for stream in open_now:
        stream.close()


@pytest.mark.long
def test_a_reader_that_takes_nothing_is_disconnected_and_costs_little(served, monkeypatch):
    monkeypatch.setattr(streams, "PATIENCE", 0.3)
    before = served.broker.metrics.connections.of("sse").value
    topic = served.topic("slow")
    with served.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.sendall(f"GET {topic}/live HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        event = NewEvent(json.dumps({"symbol": "x" * 40_000}).encode())
        guest = served.accounts.guest
        served.run(served.broker.publish(guest, "slow", [event] * 400))
        while served.broker.metrics.connections.of("sse").value > before:
            time.sleep(0.05)  # until the server has given up
