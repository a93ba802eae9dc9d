"""The brokers that this one is linked with, over HTTP."""

from aiohttp import web

from tamis.broker.network.peer_states import PeerState
from tamis.broker.web.answers import json_answer, nothing
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import Amount, Peer, Peers, PeerSavings, TopicSavings


async def list_peers(call: Call) -> web.Response:
    """The peers, whether they are linked, and how far behind they are."""
    found = call.broker.peers(call.account)
    return json_answer(Peers(list(map(_peer, found))))


async def show_peer(call: Call) -> web.Response:
    """One peer, and what covering and merging save of the filters that it is told."""
    state, savings = await call.broker.savings(call.account, call.request.match_info["peer"])
    topics = [
        TopicSavings(
            topic, Amount(*one.all), Amount(*one.covering), Amount(*one.announced), one.mergers
        )
        for topic, one in sorted(savings.items())
    ]
    return json_answer(PeerSavings(_peer(state), topics))


def _peer(state: PeerState) -> Peer:
    return Peer(
        state.name, state.is_linked, state.lag, state.lost, state.filters_held,
        state.filters_announced, **vars(state.traffic),
    )  # fmt: skip


async def remove_peer(call: Call) -> web.Response:
    """Forget a peer that is gone for good, with its filters and what waits for it."""
    await call.broker.forget_peer(call.account, call.request.match_info["peer"])
    return nothing()
