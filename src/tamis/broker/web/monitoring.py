"""Monitoring a broker: metrics, health, readiness."""

from aiohttp import web

from tamis.broker.web.answers import json_answer, text_answer
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import Health
from tamis.errors import Busy, Forbidden

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(call: Call) -> web.Response:
    """The metrics, for Prometheus."""
    if not call.account.metrics:
        raise Forbidden(
            f"account {call.account.name!r} may not see the metrics, which name subscriptions of "
            "all accounts; metrics = true allows it"
        )
    return text_answer(call.broker.metrics.text().encode(), PROMETHEUS)


async def healthz(_: Call) -> web.Response:
    """Say that the broker runs."""
    return json_answer(Health("ok"))


async def readyz(call: Call) -> web.Response:
    """Say that the broker accepts requests, or refuse while it is stopping."""
    if call.open_streams.stopping:
        raise Busy("the broker is stopping")
    return json_answer(Health("ready"))
