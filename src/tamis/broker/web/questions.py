"""Questions over HTTP: is this filter right, and why did it match?"""

from aiohttp import web

from tamis.broker.web.answers import json_answer
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import CheckRequest, FilterReading, WhyRequest


async def check(call: Call) -> web.Response:
    """How a filter is understood; an error with its place if it is wrong."""
    asked = await call.json(CheckRequest)
    found = await call.broker.check(call.account, call.topic, asked.filter)
    return json_answer(FilterReading.of(found))


async def why(call: Call) -> web.Response:
    """Why a subscription or a filter matches an event, or the event at an offset, or not."""
    asked = await call.json(WhyRequest)
    found = await call.broker.why(call.account, call.topic, **asked.given())
    return json_answer(found.to_dict())
