"""Receiving over a WebSocket, with acknowledgements on the same connection."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import pytest

from cases import each


@asynccontextmanager
async def socket_of(served, path, **options):
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{served.port}{path}"
        async with session.ws_connect(url, **options) as socket:
            yield socket


def publish(served, topic, *prices):
    events = [{"price": price} for price in prices]
    assert served.ask("POST", f"{topic}/events", events).status == 200


def prepared(served, name, *prices):
    topic = served.topic(name)
    path = served.subscribe(topic, "s", "price < 10")
    publish(served, topic, *prices)
    return path


def test_deliveries_come_and_acknowledgements_go_back(served):
    path = prepared(served, "socket", 1, 20, 2, 3)

    async def talk():
        async with socket_of(served, f"{path}/socket") as socket:
            found = [await socket.receive_json() for _ in range(3)]
            await socket.send_json({"ack": 2})
        return found

    found = asyncio.run(talk())
    assert [one["offset"] for one in found] == [0, 2, 3]
    assert found[0]["event"] == {"price": 1}
    assert found[0]["redelivered"] is False

    async def again():
        async with socket_of(served, f"{path}/socket") as socket:
            return await socket.receive_json()

    found = asyncio.run(again())
    assert (found["offset"], found["redelivered"]) == (3, True)


def test_single_events_are_acknowledged_and_refused(served):
    path = prepared(served, "single", 1, 2, 3)

    async def talk():
        async with socket_of(served, f"{path}/socket") as socket:
            assert [(await socket.receive_json())["offset"] for _ in range(3)] == [0, 1, 2]
            await socket.send_json({"ack": [0, 2], "nack": 1})
            return await socket.receive_json()

    found = asyncio.run(talk())
    assert (found["offset"], found["attempt"]) == (1, 2)


def test_several_deliveries_come_in_one_message_if_asked_for(served):
    path = prepared(served, "batches", 1, 2, 3, 4, 5)

    async def talk():
        async with socket_of(served, f"{path}/socket?batch=100") as socket:
            found = []
            while len(found) < 5:
                found += await socket.receive_json()
            return found

    assert [one["offset"] for one in asyncio.run(talk())] == [0, 1, 2, 3, 4]


@each(
    "word",
    ["x", "5", '{"ack": .5}', '{"ack": "a"}', '{"akc": 1}', '{"ack": 99}', '{"ack":' * 5000],
)
def test_a_wrong_word_is_answered_and_ends_the_connection(served, word):
    path = prepared(served, "wrong")

    async def talk():
        async with socket_of(served, f"{path}/socket") as socket:
            await socket.send_str(word)
            said = await socket.receive_json()
            closing = await socket.receive()
            assert closing.type is aiohttp.WSMsgType.CLOSE
            return said

    assert asyncio.run(talk())["error"] == "bad-option"


def test_a_word_that_is_too_long_ends_the_connection(served):
    path = prepared(served, "long")

    async def talk():
        async with socket_of(served, f"{path}/socket") as socket:
            await socket.send_str(" " * 200_000)
            return await socket.receive()

    assert asyncio.run(talk()).type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}


def test_whoever_is_replaced_is_told(served):
    path = prepared(served, "replaced", 1)

    async def talk():
        async with socket_of(served, f"{path}/socket") as first:
            await first.receive_json()
            async with socket_of(served, f"{path}/socket") as second:
                await second.receive_json()
                return await first.receive()

    closing = asyncio.run(talk())
    assert closing.type is aiohttp.WSMsgType.CLOSE
    assert "took over" in closing.extra


def test_a_plain_request_is_told_where_to_go(served):
    path = prepared(served, "plain")
    answer = served.ask("GET", f"{path}/socket")
    assert answer.status == 400
    assert "WebSockets" in answer.json["message"]


def test_pages_from_elsewhere_may_not_open_sockets(served):
    path = prepared(served, "elsewhere")

    async def talk(origin):
        async with socket_of(served, f"{path}/socket", origin=origin):
            pass

    asyncio.run(talk(f"http://127.0.0.1:{served.port}"))
    asyncio.run(talk("http://localhost:3000"))
    for origin in ("http://evil.example", "null"):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            asyncio.run(talk(origin))
    assert json.loads(served.ask("GET", path).body)["attached"] is False
