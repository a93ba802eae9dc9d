"""What anybody wants of a topic, for publishers that drop the rest at the source."""

from aiohttp import web

from tamis.broker.web.answers import json_answer, nothing
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import QuenchRequest, Wanted


async def get_wanted(call: Call) -> web.Response:
    """What is wanted now; nobody is told when it changes."""
    return json_answer(Wanted.of(await call.broker.wanted(call.account, call.topic)))


async def quench(call: Call) -> web.Response:
    """Take the confirmation of a version, and answer when there is another one."""
    asked = await call.json(QuenchRequest)
    found = await call.broker.quench(
        call.account, call.topic, _publisher(call), asked.version, asked.wait
    )
    return json_answer(Wanted.of(found))


async def quench_no_more(call: Call) -> web.Response:
    """Note that a publisher drops nothing any more."""
    call.broker.quench_no_more(call.account, call.topic, _publisher(call))
    return nothing()


def _publisher(call: Call) -> str:
    return call.request.match_info["publisher"]
