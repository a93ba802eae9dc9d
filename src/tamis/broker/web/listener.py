"""The HTTP server: listens, bounds what a connection may cost, and stops in order.

A connection has `KEEP_ALIVE` seconds for the head of each request, and as long between requests:
whoever sends it byte by byte, or nothing, is disconnected. `calls.py` does the same for bodies,
`streams.py` for answers that nobody takes.
"""

import logging
import ssl

from aiohttp import web
from aiohttp.http import HttpProcessingError

from tamis.broker.accounts import Accounts
from tamis.broker.broker import Broker
from tamis.broker.stomp.service import StompService
from tamis.broker.web.application import WebBroker

KEEP_ALIVE = 30.0
LINGERING = 5.0  # seconds to take what a refused client still sends, so that it reads the answer
STOPPING = 10.0  # seconds for requests that are under way
BACKLOG = 1024
# A filter in a query is as long as a line may be.
MOST_LINE, MOST_HEADER, MOST_HEADERS = 65_536, 16_384, 100


logger = logging.getLogger(__name__)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Whether a line of aiohttp belongs into the log: bytes that are not HTTP could fill it."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


logger.addFilter(_is_worth_saying)


class WebListener:
    """A broker that answers over HTTP."""

    def __init__(
        self, broker: Broker, accounts: Accounts, stomp: StompService, *,
        keep_alive: float = KEEP_ALIVE, lingering: float = LINGERING,
    ) -> None:  # fmt: skip
        """`stomp` is for STOMP over WebSockets: what it counts is counted with that over TCP."""
        self._web = WebBroker(broker, accounts, stomp)
        self._runner = web.AppRunner(
            self._web.application, access_log=None, logger=logger, keepalive_timeout=keep_alive,
            lingering_time=lingering, shutdown_timeout=STOPPING, handler_cancellation=True,
            max_line_size=MOST_LINE, max_field_size=MOST_HEADER, max_headers=MOST_HEADERS,
        )  # fmt: skip

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port, which is a free one if 0 was asked for."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls, backlog=BACKLOG)
        await site.start()
        taken: int = self._runner.addresses[0][1]
        return taken

    async def stop(self) -> None:
        """Take no more connections, finish what is under way, end what listens."""
        self._web.stop_taking()
        await self._runner.cleanup()
