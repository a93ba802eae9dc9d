"""Requests to one broker: made again until it answers, with refusals as errors."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from tamis.client.error_answers import error_of
from tamis.errors import (
    BrokerUnreachable,
    Busy,
    LimitReached,
    MissingDependency,
    OptionError,
    TamisError,
)
from tamis.events.event_reader import exact_number

if TYPE_CHECKING:
    import aiohttp

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between attempts
CONNECTING = 10.0  # seconds for a connection
ANSWERING = 60.0  # seconds for a sign of life; a stream without events has comments more often


class Attempts:
    """When to try again, and when to give up: pauses that double, for `patience` seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.begin_again()

    def begin_again(self) -> None:
        """Forget the failures: the broker has answered."""
        self._failed_since: float | None = None
        self._pause = FIRST_PAUSE

    @property
    def is_first(self) -> bool:
        """Whether the next failure is the first one since the broker has answered."""
        return self._failed_since is None

    async def pause(self, error: TamisError) -> None:
        """Wait before the next attempt; raises the error if there has been enough of them."""
        now = asyncio.get_running_loop().time()
        if self._failed_since is None:
            self._failed_since = now
        left = self._failed_since + self._patience - now
        if left <= 0:
            raise error
        # Clients that lost the same broker do not all come back at the same moment.
        await asyncio.sleep(min(left, self._pause * random.uniform(0.5, 1.0)))  # noqa: S311
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


class BrokerSession:
    """The way to one broker.

    A request that gets no answer, or "not now", is made again for `patience` seconds: every request
    of a client can be repeated, because an event has the same id each time.
    """

    def __init__(self, url: str, token: str | None, patience: float) -> None:
        self.url = checked_url(url)
        self.patience = patience
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make sure that a broker answers, without any patience: perhaps none was started."""
        aiohttp = _aiohttp()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECTING, sock_read=ANSWERING)
        self._http = aiohttp.ClientSession(
            headers=self._headers, timeout=timeout, connector=aiohttp.TCPConnector(limit=0)
        )
        try:
            async with self._answer("GET", "/healthz") as answer:
                await answer.read()
        except BaseException:  # whatever ends it, nothing is left open
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()
            await asyncio.sleep(0)  # sockets are closed in the next turn of the loop

    async def request(  # noqa: PLR0913 - all but two by name
        self, method: str, path: str, *, json_body: Any = None, data: bytes | None = None,
        headers: Mapping[str, str] | None = None, params: Mapping[str, str] | None = None,
        filter_text: str | None = None, patience: float | None = None,
    ) -> Any:  # fmt: skip
        """The JSON of the answer, None if it has none; `patience` replaces that of the session."""
        sent = dict(headers or {})
        if json_body is not None:
            data = json.dumps(json_body, default=str).encode()
            sent["Content-Type"] = "application/json"
        attempts = Attempts(self.patience if patience is None else patience)
        while True:
            try:
                async with self._answer(
                    method, path, data=data, headers=sent, params=params, filter_text=filter_text
                ) as answer:
                    body = await answer.read()
                return json.loads(body, parse_float=exact_number) if body else None
            except TamisError as error:
                if not is_transient(error):
                    raise
                await attempts.pause(error)

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of an answer that does not end; not tried again."""
        async with self._answer("GET", path, headers=dict(headers)) as answer:
            yield answer.content.iter_any()

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, filter_text: str | None = None, **request: Any
    ) -> "AsyncIterator[aiohttp.ClientResponse]":
        """One answer; refusals and lost connections are raised as errors, also while reading it."""
        aiohttp = _aiohttp()
        if self._http is None or self._http.closed:
            raise BrokerUnreachable("the connection is closed")
        try:
            async with self._http.request(method, self.url + path, **request) as answer:
                if answer.status >= 400:
                    error = error_of(answer.status, await answer.read(), filter_text)
                    # Set on any error, because `is_transient` asks for it.
                    error.retry_after = answer.headers.get("Retry-After")  # type: ignore[attr-defined]
                    raise error
                yield answer
        except aiohttp.InvalidURL as problem:
            raise OptionError(f"{problem} is not the address of a broker") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            if isinstance(problem, TamisError):
                raise
            raise self._unreachable(problem) from None

    def _unreachable(self, problem: Exception) -> BrokerUnreachable:
        aiohttp = _aiohttp()
        message = f"no broker answers at {self.url}"
        if isinstance(problem, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
            return BrokerUnreachable(f"{message}: {problem}")
        if isinstance(problem, TimeoutError):
            return BrokerUnreachable(f"{message} within {ANSWERING:.0f} seconds")
        if isinstance(problem, aiohttp.ClientConnectorError):
            return BrokerUnreachable(f"{message}; start one with `tamis serve`")
        return BrokerUnreachable(f"the connection to {self.url} was lost")


def is_transient(error: TamisError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, LimitReached):  # a rate passes, a number of subscriptions does not
        return getattr(error, "retry_after", None) is not None
    return isinstance(error, BrokerUnreachable | Busy)


def checked_url(url: str) -> str:
    """The address of a broker without a slash at the end; raises an error if it is not one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise OptionError(
            f"{url!r} is not the address of a broker; it looks like http://127.0.0.1:8420"
        )
    return url.rstrip("/")


def path_of(*parts: str) -> str:
    """The path of a resource: ``/topics/quotes/events``."""
    return "".join("/" + quote(part, safe="") for part in parts)


def _aiohttp() -> Any:
    try:
        import aiohttp
    except ImportError:
        raise MissingDependency(
            "clients of a broker need aiohttp: pip install 'tamis[broker]'"
        ) from None
    return aiohttp
