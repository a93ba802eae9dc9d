"""A request on its way through the broker: who asks, its body in bounded time and memory."""

import asyncio
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from aiohttp import web

from tamis.broker.accounts import Account
from tamis.broker.broker import Broker
from tamis.broker.web.open_streams import OpenStreams
from tamis.errors import BrokerError, OptionError

# A body has this many seconds, and one more for each BODY_RATE bytes that have come.
BODY_SECONDS = 20.0
BODY_RATE = 10_000

R = TypeVar("R")


class BodyTooLarge(BrokerError):
    """A body that is larger than the account may send."""

    status = 413
    code = "body-too-large"


class BodyTooSlow(BrokerError):
    """A body that did not come in time."""

    status = 408
    code = "body-too-slow"


@dataclass(frozen=True, slots=True)
class Call:
    """A request, who makes it, and the broker."""

    request: web.Request
    broker: Broker
    account: Account
    open_streams: OpenStreams

    @property
    def topic(self) -> str:
        """The topic in the path."""
        return self.request.match_info["topic"]

    @property
    def subscription(self) -> str:
        """The id of the subscription in the path."""
        return self.request.match_info["subscription"]

    def query(self, name: str, usual: str | None = None) -> str | None:
        """A parameter of the query."""
        return self.request.query.get(name, usual)

    def number(self, name: str, usual: int, most: int) -> int:
        """A parameter of the query that is a whole number from 1."""
        text = self.query(name)
        if text is None:
            return usual
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:19]) <= most):
            raise OptionError(f"{name} is a whole number from 1 to {most:,}, not {text[:40]!r}")
        return int(text)

    async def body(self) -> bytes:
        """The body, if it is not too large for the account and comes in time."""
        return await read_body(self.request, self.account.limits.body_bytes)

    async def json(self, shape: type[R]) -> R:
        """The body as JSON of this shape."""
        text = await self.body()
        try:
            return msgspec.json.decode(text, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OptionError(f"the body is not as expected: {error}") from None


async def read_body(request: web.Request, most: int) -> bytes:
    """The body of a request; raises an error if it is too large or comes too slowly."""
    length = request.content_length
    if length is not None and length > most:
        raise _too_large(most)
    content = request.content
    if content.is_eof():  # all of it has come: the usual case
        return _bounded(content.read_nowait(), most)
    pieces: list[bytes] = []
    size = 0
    started = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(started + BODY_SECONDS) as limit:
            while piece := await content.readany():
                size += len(piece)
                if size > most:
                    raise _too_large(most)
                pieces.append(piece)
                limit.reschedule(started + BODY_SECONDS + size / BODY_RATE)
    except TimeoutError:
        raise BodyTooSlow(
            f"only {size:,} bytes of the body came; it must begin within {BODY_SECONDS:g} seconds "
            f"and come with {BODY_RATE:,} bytes per second"
        ) from None
    except web.RequestPayloadError as error:
        raise OptionError(f"the body cannot be read: {error}") from None
    return b"".join(pieces)


def _bounded(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise _too_large(most)
    return body


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"the body is larger than {most:,} bytes, which this account may send")
