"""STOMP over a WebSocket."""

import asyncio

import aiohttp

from cases import each


async def until(socket, text):
    """What comes, up to a frame with this text."""
    found = ""
    while text not in found or not found.rstrip("\n").endswith("\0"):
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise AssertionError(message, found)
        found += message.data
    return found


def talk(served, conversation, **options):
    async def run():
        url = f"http://127.0.0.1:{served.port}/stomp"
        async with aiohttp.ClientSession() as session, session.ws_connect(url, **options) as socket:
            return await conversation(socket)

    return asyncio.run(run())


CONNECT = "CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"


@each("offered, chosen", [
    (("v12.stomp",), "v12.stomp"), (("v10.stomp", "v11.stomp"), "v11.stomp"), ((), None),
])  # fmt: skip
def test_the_protocol_is_agreed_on(served, offered, chosen):
    async def conversation(socket):
        await socket.send_str(CONNECT)
        assert "version:1.2" in await until(socket, "CONNECTED")
        return socket.protocol

    found = talk(served, conversation, protocols=offered)
    assert found in ({chosen} if chosen == "v12.stomp" else {*offered, chosen})


def test_what_is_sent_is_received_with_a_selector(served):
    served.topic("stomp")

    async def conversation(socket):
        await socket.send_str(CONNECT)
        await until(socket, "CONNECTED")
        subscribe = (
            "SUBSCRIBE\nid:0\ndestination:/topic/stomp\nselector:price < 10\nreceipt:r\n\n\0"
        )
        for piece in (subscribe[:20], subscribe[20:]):  # a frame in two messages
            await socket.send_bytes(piece.encode())
        await until(socket, "RECEIPT")
        for price in (20, 5):
            await socket.send_str(f'SEND\ndestination:/topic/stomp\n\n{{"price": {price}}}\0')
        found = await until(socket, "MESSAGE")
        await socket.send_str("DISCONNECT\nreceipt:bye\n\n\0")
        await until(socket, "bye")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        return found

    found = talk(served, conversation)
    assert '{"price": 5}' in found
    assert '{"price": 20}' not in found


def test_a_body_that_is_not_text_comes_in_a_binary_message(served):
    served.topic("binary")

    async def conversation(socket):
        await socket.send_str(CONNECT)
        await until(socket, "CONNECTED")
        await socket.send_str("SUBSCRIBE\nid:0\ndestination:/topic/binary\nreceipt:r\n\n\0")
        await until(socket, "RECEIPT")
        head = b"SEND\ndestination:/topic/binary\nprice:5\ncontent-length:3\n\n"
        await socket.send_bytes(head + b"\xff\0\xfe\0")
        return await socket.receive()

    message = talk(served, conversation)
    assert message.type is aiohttp.WSMsgType.BINARY
    assert message.data.endswith(b"\n\n\xff\0\xfe\0")


def test_a_bad_frame_is_answered_and_ends_the_connection(served):
    async def conversation(socket):
        await socket.send_str("NONSENSE\n\n\0")
        found = await until(socket, "ERROR")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        return found

    assert talk(served, conversation).startswith("ERROR")


def test_a_client_that_vanishes_leaves_nothing(served):
    head = (
        b"GET /stomp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    for more in (b"", b"\x81\xfe\xff"):  # half of a message
        with served.connect() as connection:
            connection.sendall(head)
            assert connection.recv(1000).startswith(b"HTTP/1.1 101")
            connection.sendall(more)
    assert served.ask("GET", "/healthz").status == 200


def test_a_plain_request_is_refused(served):
    assert served.ask("GET", "/stomp").status == 400
