"""Subscriptions over HTTP, as resources of the account that made them."""

import msgspec
from aiohttp import web

from tamis.broker.web.answers import json_answer, nothing
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import (
    AckRequest,
    MoveAnswer,
    MoveRequest,
    Subscription,
    SubscriptionRequest,
    Subscriptions,
)
from tamis.broker.web.streams import json_text

MOST_LISTED = 1_000


async def list_subscriptions(call: Call) -> web.StreamResponse:
    """Subscriptions of the account, in the order of their ids."""
    most = call.number("limit", 100, MOST_LISTED)
    found = call.broker.subscriptions(
        call.account, call.topic, after=call.query("after"), most=most
    )
    listed = Subscriptions([Subscription.of(info) for info in found])
    return await json_text(call, msgspec.json.encode(listed))


async def put_subscription(call: Call) -> web.Response:
    """Subscribe; with another filter, change it: the cursor stays where it is."""
    asked = await call.json(SubscriptionRequest)
    info = await call.broker.put_subscription(
        call.account, call.topic, call.subscription, asked.filter, durable=asked.durable,
        start=asked.start, options=asked.options(),
    )  # fmt: skip
    return json_answer(Subscription.of(info))


async def get_subscription(call: Call) -> web.Response:
    """What is known about a subscription."""
    info = call.broker.subscription(call.account, call.topic, call.subscription)
    return json_answer(Subscription.of(info))


async def delete_subscription(call: Call) -> web.Response:
    """Unsubscribe."""
    await call.broker.delete_subscription(call.account, call.topic, call.subscription)
    return nothing()


async def move_subscription(call: Call) -> web.Response:
    """Fetch a durable subscription from another broker, with what it has not got there."""
    asked = await call.json(MoveRequest)
    move = await call.broker.move_subscription(
        call.account, call.topic, call.subscription, asked.origin,
        None if asked.filter is msgspec.UNSET else asked.filter,
        options=asked.options() if asked.given() else None, wait=asked.wait,
    )  # fmt: skip
    return json_answer(MoveAnswer.of(move))


async def acknowledge(call: Call) -> web.Response:
    """Acknowledge everything up to an offset."""
    asked = await call.json(AckRequest)
    await call.broker.ack(call.account, call.topic, call.subscription, asked.offset)
    return nothing()
