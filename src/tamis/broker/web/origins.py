"""Which web pages may use the broker: its own.

A browser lets any page send requests anywhere, also to this machine; it only keeps the answers from
the page. Where everybody is ``guest``, that would be enough to publish and to read. So a request of
a page from elsewhere is refused if it could change something or opens a WebSocket; pages that are
served on this machine may. And without accounts the broker must be addressed as this machine: a
page whose name was made to point here (DNS rebinding) has its own name in ``Host``.
"""

import ipaddress
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from tamis.errors import Forbidden

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_KNOWN = 100  # hosts that were found to be this machine


class Origins:
    """Refuses what pages of other origins ask for."""

    def __init__(self, *, has_accounts: bool) -> None:
        self._has_accounts = has_accounts
        self._local: set[str] = set()

    def check(self, request: web.Request) -> None:
        """Raise `Forbidden` if a page makes this request that must not."""
        headers = request.headers
        host = headers.get(hdrs.HOST, "")
        if not self._has_accounts and host not in self._local:
            self._check_host(host)
        origin = headers.get(hdrs.ORIGIN)
        if origin is None or (request.method in _SAFE and hdrs.UPGRADE not in headers):
            return
        netloc = origin.partition("://")[2]
        if netloc != host and not (netloc and is_this_machine(netloc)):
            raise Forbidden(
                f"a page of {origin[:100]!r} may not use this broker; its own pages may, and "
                "programs, which send no Origin"
            )

    def _check_host(self, host: str) -> None:
        if not is_this_machine(host):
            raise Forbidden(
                f"without accounts the broker answers only as localhost, not as {host[:100]!r}"
            )
        if len(self._local) < _MOST_KNOWN:
            self._local.add(host)


def is_this_machine(host: str) -> bool:
    """Whether a ``Host`` header names this machine: localhost, or an address of the loopback."""
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    if name is None or name == "localhost":  # HTTP/1.0 knows no Host, and browsers do not speak it
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
