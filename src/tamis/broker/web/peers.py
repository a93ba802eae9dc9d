"""The brokers that this one is linked with, over HTTP."""

from aiohttp import web

from tamis.broker.web.answers import json_answer, nothing
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import Peer, Peers


async def list_peers(call: Call) -> web.Response:
    """The peers, whether they are linked, and how far behind they are."""
    found = call.broker.peers(call.account)
    return json_answer(Peers([Peer(p.name, p.is_linked, p.lag, p.lost) for p in found]))


async def remove_peer(call: Call) -> web.Response:
    """Forget a peer that is gone for good, with its filters and what waits for it."""
    await call.broker.forget_peer(call.account, call.request.match_info["peer"])
    return nothing()
