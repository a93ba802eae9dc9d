"""Receiving over HTTP: server-sent events, for as long as the client listens.

What waits for a client is bounded: by the attachment, and by the connection's buffer, which is
waited for after every piece. A client that takes nothing for a minute is disconnected.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from aiohttp import hdrs, web

from tamis.broker.attachment import Attachment
from tamis.broker.protocols import sse
from tamis.broker.records import Delivery
from tamis.broker.web.answers import JSON, text_answer
from tamis.broker.web.calls import Call
from tamis.errors import Busy
from tamis.language.expression import MATCHES_ALL

MOST_TAKEN = 500  # deliveries at once
PIECE = 64_000  # bytes that are written before the connection is waited for
LARGE = 1_000_000  # bytes of an answer that is written in pieces
SILENCE = 15.0  # seconds after which a comment says that the connection is alive
PATIENCE = 60.0  # seconds for a client to take what waits for it

logger = logging.getLogger(__name__)


async def subscription_events(call: Call) -> web.StreamResponse:
    """The deliveries of a subscription."""
    seen = sse.last_event_id(call.request.headers.get(sse.LAST_EVENT_ID))
    async with listening(call, "sse", await attached(call, seen)) as attachment:
        return await _stream(call, attachment)


async def live_events(call: Call) -> web.StreamResponse:
    """What matches a filter from now on, or from an offset or a time on, without a subscription."""
    seen = sse.last_event_id(call.request.headers.get(sse.LAST_EVENT_ID))
    start = (call.query("from") or "new") if seen is None else seen + 1
    attachment = await call.broker.attach_filter(
        call.account, call.topic, call.query("filter") or MATCHES_ALL, start=start
    )
    async with listening(call, "sse", attachment):
        return await _stream(call, attachment)


async def attached(call: Call, seen: int | None = None) -> Attachment:
    """The attachment of the subscription in the path; what was seen counts as acknowledged."""
    broker, account, topic, key = call.broker, call.account, call.topic, call.subscription
    if seen is not None:
        info = broker.subscription(account, topic, key)
        if not info.durable:
            return await broker.attach_filter(
                account, topic, info.filter, start=seen + 1, options=info.options
            )
        await broker.ack(account, topic, key, seen)
    return await broker.attach(account, topic, key)


@asynccontextmanager
async def listening(call: Call, protocol: str, attachment: Attachment) -> AsyncIterator[Attachment]:
    """Count a connection that listens, and close its attachment when it ends."""
    open_now = call.broker.metrics.connections.of(protocol)
    try:
        if call.open_streams.stopping:
            raise Busy("the broker is stopping")
        call.account.usage.connect()
        open_now.add()
        call.open_streams.add(attachment)
        try:
            yield attachment
        finally:
            call.open_streams.remove(attachment)
            open_now.add(-1)
            call.account.usage.disconnect()
    finally:
        await attachment.close()


async def take(attachment: Attachment, silence: float = SILENCE) -> list[Delivery] | None:
    """The next deliveries; [] when there will be none, None when there was none for a while."""
    taken = attachment.take_nowait(MOST_TAKEN)
    if taken:
        return taken
    with suppress(TimeoutError):
        async with asyncio.timeout(silence):
            return await attachment.take(MOST_TAKEN)
    return None


async def _stream(call: Call, attachment: Attachment) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={
            hdrs.CONTENT_TYPE: sse.CONTENT_TYPE,
            hdrs.CACHE_CONTROL: "no-store",
            "X-Accel-Buffering": "no",  # nginx would hold events back
        }
    )
    await response.prepare(call.request)
    with ended_by_errors(call):
        await _write(call, response, sse.COMMENT)
        while (taken := await take(attachment)) != []:
            for piece in pieces(attachment, taken):
                await _write(call, response, piece)
        if not call.open_streams.stopping:
            await _write(call, response, sse.named("closed", {"reason": attachment.closed_because}))
        await response.write_eof()
    return response


def pieces(attachment: Attachment, taken: list[Delivery] | None) -> "list[bytes]":
    """What is to be written: deliveries, what the client did not get, a sign of life."""
    found = list(_losses(attachment))
    size = 0
    begun: list[bytes] = []
    for delivery in taken or ():
        text = sse.message(delivery)
        begun.append(text)
        size += len(text)
        if size >= PIECE:
            found.append(b"".join(begun))
            begun, size = [], 0
    if begun:
        found.append(b"".join(begun))
    return found or [sse.COMMENT]


def _losses(attachment: Attachment) -> "list[bytes]":
    """Messages about events that the client will not get."""
    losses = []
    for kind in ("dropped", "expired"):
        count = getattr(attachment, kind)
        if count:
            losses.append(sse.named(kind, {kind: count}))
    return losses


async def json_text(call: Call, text: bytes) -> web.StreamResponse:
    """A JSON text as the answer; a large one in pieces that must be taken in time."""
    if len(text) <= LARGE:
        return text_answer(text, JSON)
    response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: JSON})
    response.content_length = len(text)
    await response.prepare(call.request)
    with ended_by_errors(call):
        for start in range(0, len(text), PIECE):
            await _write(call, response, text[start : start + PIECE])
        await response.write_eof()
    return response


async def _write(call: Call, response: web.StreamResponse, piece: bytes) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await response.write(piece)
    except TimeoutError:
        abort(call)
        raise ConnectionAbortedError("the client takes nothing") from None


@contextmanager
def ended_by_errors(call: Call) -> Iterator[None]:
    """End the connection if an answer that has begun cannot go on."""
    try:
        yield
    except ConnectionError:  # the client is gone
        pass
    except Exception:  # its answer has begun, so no status can tell
        logger.exception("a stream failed")
        abort(call)


def abort(call: Call) -> None:
    """End a connection without waiting until what was written is taken."""
    if call.request.transport is not None:
        call.request.transport.abort()
