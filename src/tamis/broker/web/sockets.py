"""Receiving over a WebSocket: deliveries as JSON, acknowledgements back on the same connection.

A message of the broker is one delivery, or with ``?batch=N`` a JSON array of up to N. A message of
the client is ``{"ack": n}``, which acknowledges everything up to n, or ``{"ack": [n, m]}`` for
single ones; ``{"nack": ...}`` asks for them again.
"""

import asyncio
from contextlib import suppress

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from tamis.broker.attachment import Attachment
from tamis.broker.protocols import sse
from tamis.broker.records import Delivery
from tamis.broker.web.answers import problem_of
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import SocketWord
from tamis.broker.web.streams import MOST_TAKEN, PATIENCE, abort, attached, listening
from tamis.errors import OptionError, TamisError

MOST_WORD = 100_000  # bytes of a message of the client
BEAT = 30.0  # seconds between pings; a client that does not answer them is gone

_word = msgspec.json.Decoder(SocketWord)


async def subscription_socket(call: Call) -> web.StreamResponse:
    """The deliveries of a subscription, over a WebSocket."""
    batch = call.number("batch", 1, MOST_TAKEN)
    socket = web.WebSocketResponse(max_msg_size=MOST_WORD, heartbeat=BEAT, compress=False)
    if not socket.can_prepare(call.request).ok:
        raise OptionError(
            "this path is for WebSockets; .../events is the same as server-sent events"
        )
    attachment = await attached(call)
    async with listening(call, "websocket", attachment):
        await socket.prepare(call.request)
        sending = asyncio.create_task(_send(call, socket, attachment, batch))
        try:
            await _listen(socket, attachment)
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
    return socket


async def _send(
    call: Call, socket: web.WebSocketResponse, attachment: Attachment, batch: int
) -> None:
    try:
        while taken := await attachment.take(MOST_TAKEN):
            for text in _texts(attachment, taken, batch):
                async with asyncio.timeout(PATIENCE):
                    await socket.send_frame(text, WSMsgType.TEXT)
    except ConnectionError:  # the client is gone
        return
    except TimeoutError:  # the client takes nothing
        abort(call)
        return
    reason = attachment.closed_because or ""
    await socket.close(code=WSCloseCode.GOING_AWAY, message=reason.encode()[:120])


def _texts(attachment: Attachment, taken: list[Delivery], batch: int) -> list[bytes]:
    losses = []
    for kind in ("dropped", "expired"):
        count = getattr(attachment, kind)
        if count:
            losses.append(b'{"%b":%d}' % (kind.encode(), count))
    texts = [sse.delivery_json(delivery) for delivery in taken]
    if batch > 1:
        groups = [texts[n : n + batch] for n in range(0, len(texts), batch)]
        texts = [b"[" + b",".join(group) + b"]" for group in groups]
    return losses + texts


async def _listen(socket: web.WebSocketResponse, attachment: Attachment) -> None:
    """Do what the client asks for, until it leaves; a wrong word ends the connection."""
    async for message in socket:
        if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
            return
        try:
            _obey(message.data, attachment)
        except TamisError as error:
            _, problem, _ = problem_of(error)
            await socket.send_frame(msgspec.json.encode(problem), WSMsgType.TEXT)
            await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"bad message")
            return


def _obey(text: str | bytes, attachment: Attachment) -> None:
    try:
        word = _word.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f'expected {{"ack": OFFSET}} or {{"nack": OFFSET}}: {error}') from None
    if isinstance(word.ack, int):
        attachment.ack_up_to(word.ack)
    for offset in word.ack if isinstance(word.ack, list) else ():
        attachment.ack(offset)
    again = [word.nack] if isinstance(word.nack, int) else word.nack
    for offset in again or ():
        attachment.nack(offset)
