"""The process of a broker: opens its data, listens, and stops when it is told to.

A listener is one protocol at one address. Listeners start after the broker has opened its data and
stop before it closes, so that whatever they have accepted is finished. What links brokers to each
other is one more listener, which also calls.
"""

import asyncio
import contextlib
import gc
import logging
import resource
import secrets
import signal
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from tamis.broker import logs
from tamis.broker.broker import Broker
from tamis.broker.renewal import Renewal
from tamis.broker.settings import Address, Settings
from tamis.broker.stomp.service import StompService
from tamis.broker.stomp_server import StompServer
from tamis.broker.tls import peer_context, server_context
from tamis.broker.web.listener import WebListener
from tamis.errors import FileError
from tamis.matcher import Matcher

if TYPE_CHECKING:
    from tamis.broker.network.connections import Connections
    from tamis.broker.network.network import Network

_LOG = logging.getLogger(__name__)
_STOPS = signal.SIGTERM, signal.SIGINT
MANY = 6000  # filters, more than are ever evaluated one by one
# Objects that are made and not given back before the collector looks for cycles among them. Events
# on their way are many and in no cycle: they should be gone by then, not looked at.
GARBAGE = 50_000


class Listener(Protocol):
    """One protocol at one address."""

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen, and return the port, which is a free one if 0 was asked for."""

    async def stop(self) -> None:
        """Take no more connections, finish what is under way, and end the connections."""


def serve(settings: Settings, read: Callable[[], Settings]) -> None:
    """Run a broker until SIGTERM or SIGINT comes; say on standard output when it is ready.

    `read` reads the settings again, when SIGHUP comes.
    """
    logs.configure(settings.log_level, settings.log_format)
    allow_many_connections()
    gc.set_threshold(GARBAGE, 10, 10)
    asyncio.run(_serve(settings, Renewal(settings, read)))


async def _serve(settings: Settings, renewal: Renewal) -> None:
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    tls = None if settings.tls is None else server_context(settings.tls)

    def stop() -> None:
        told.set()
        for number in _STOPS:  # the second signal ends the process at once
            loop.remove_signal_handler(number)

    for number in _STOPS:
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, renewal.soon)
    async with running(settings, tls, renewal) as addresses:
        # Programs wait for this line, and read the ports from it.
        shown = {name: str(address) for name, address in addresses.items()}
        print("ready", *(f"{name}={text}" for name, text in shown.items()), flush=True)  # noqa: T201
        _LOG.info("ready", extra=shown)
        # In the background, and not waited for at the end: what is imported and made ready here
        # would make the first event wait.
        threading.Thread(target=_warm_up, name="tamis-rehearsal", daemon=True).start()
        await told.wait()
        _LOG.info("stopping")
    _LOG.info("stopped")


@contextlib.asynccontextmanager
async def running(
    settings: Settings, tls: ssl.SSLContext | None = None, renewal: Renewal | None = None
) -> AsyncIterator[dict[str, Address]]:
    """A broker that listens, and its true addresses by the names of their settings."""
    try:
        broker = await Broker.open(settings)
    except OSError as error:
        raise FileError(
            f"the data folder {settings.data} cannot be used: {error.strerror}: {error.filename}"
        ) from None
    renewal = Renewal(settings, lambda: settings) if renewal is None else renewal
    renewal.renew_context(tls)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(broker.close)
        stomp = StompService(broker)
        renewal.of(broker, stomp)
        listeners: dict[str, Listener] = {
            "http": WebListener(broker, broker.accounts, stomp),
            "stomp": StompServer(stomp),
        }
        found: dict[str, Address] = {}
        for name, listener in listeners.items():
            stack.push_async_callback(listener.stop)
            found[name] = await _listen(listener, name, getattr(settings, name), tls)
        if broker.network is not None and settings.network is not None:
            calling_tls = peer_context(settings, is_caller=True)
            renewal.renew_context(calling_tls, for_peers=True)
            links = _links(broker.network, settings, calling_tls)
            stack.push_async_callback(links.stop)
            if settings.network.listen is not None:
                tls = peer_context(settings, is_caller=False)
                renewal.renew_context(tls, for_peers=True)
                found["listen"] = await _listen(links, "listen", settings.network.listen, tls)
            for peer, described in settings.network.peers.items():
                links.call(peer, described.address)
        yield found


def _links(
    network: "Network", settings: Settings, calling_tls: ssl.SSLContext | None
) -> "Connections":
    from tamis.broker.network.connections import Connections
    from tamis.broker.network.link import Manners

    known = settings.network
    assert known is not None  # noqa: S101 - there is a network
    own = {n: one.secret.encode() for n, one in known.peers.items() if one.secret is not None}
    manners = Manners(known.name, own, known.secret.encode(), known.beat, known.patience)
    return Connections(network, manners, time.monotonic, secrets.token_bytes, calling_tls)


async def _listen(
    listener: Listener, name: str, address: Address, tls: ssl.SSLContext | None
) -> Address:
    try:
        port = await listener.start(address.host, address.port, tls)
    except OSError as error:
        raise FileError(
            f"{name} cannot listen on {address}: {error.strerror or error}; "
            f"choose another address with --{name} HOST:PORT"
        ) from None
    return Address(address.host, port)


def _warm_up() -> None:
    rehearse()
    # Most of what there is now are modules and compiled functions, which stay: the collector need
    # not look at them again.
    gc.collect()
    gc.freeze()


def rehearse() -> None:
    """Match what nobody has sent, so that the first event is matched as fast as the others.

    This compiles the kernels, if they are not kept; events that come meanwhile need not wait.
    """
    matcher = Matcher({"price": "double", "symbol": "string"})
    matcher.subscribe_many({n: f"price < {n} AND symbol = 'S{n}'" for n in range(MANY)})
    matcher.match_rows([(9.5, "IBM")])
    matcher.match_batch(pa.table({"price": [9.5], "symbol": ["IBM"]}))


def allow_many_connections() -> None:
    """Let this process have as many open files, and so connections, as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # an unlimited hard limit, on some systems
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
