"""Watching a broker: metrics, health, its description, and the page for people."""

from importlib.resources import files

from aiohttp import hdrs, web

import tamis
from tamis.broker.accounts import Account
from tamis.broker.broker import Broker
from tamis.broker.web.answers import JSON, json_answer, text_answer
from tamis.broker.web.openapi import description
from tamis.broker.web.shapes import Health
from tamis.errors import Busy, Forbidden

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def metrics(broker: Broker, account: Account) -> web.Response:
    """The metrics, for Prometheus."""
    if not account.metrics:
        raise Forbidden(
            f"account {account.name!r} may not see the metrics, which name subscriptions of all "
            "accounts; metrics = true allows it"
        )
    return text_answer(broker.metrics.text().encode(), PROMETHEUS)


def healthz() -> web.Response:
    """That the broker lives."""
    return json_answer(Health("ok"))


def readyz(*, stopping: bool) -> web.Response:
    """That the broker takes requests."""
    if stopping:
        raise Busy("the broker is stopping")
    return json_answer(Health("ready"))


def openapi() -> web.Response:
    """The OpenAPI description."""
    return text_answer(description(tamis.__version__), JSON)


def page(path: str) -> web.Response:
    """A file of the page for people."""
    name, kind = _FILES[path]
    text = files("tamis.broker.web").joinpath("page", name).read_bytes()
    return web.Response(body=text, headers={hdrs.CONTENT_TYPE: kind, **_PAGE_HEADERS})


PAGES = tuple(_FILES)
