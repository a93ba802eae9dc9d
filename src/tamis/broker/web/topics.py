"""Topics over HTTP."""

from aiohttp import web

from tamis.broker.web.answers import json_answer, nothing
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import Topic, TopicRequest, Topics


async def list_topics(call: Call) -> web.Response:
    """The topics that the account may see."""
    return json_answer(Topics([Topic.of(info) for info in call.broker.topics(call.account)]))


async def put_topic(call: Call) -> web.Response:
    """Make a topic, or add attributes to one; the same again changes nothing."""
    asked = await call.json(TopicRequest)
    retention = None if asked.retention is None else asked.retention.retention()
    info = await call.broker.create_topic(
        call.account, call.topic, asked.schema, semantics=asked.semantics,
        defaults=asked.defaults, retention=retention,
    )  # fmt: skip
    return json_answer(Topic.of(info))


async def get_topic(call: Call) -> web.Response:
    """What is known about a topic."""
    return json_answer(Topic.of(call.broker.topic(call.account, call.topic)))


async def delete_topic(call: Call) -> web.Response:
    """Delete a topic with its events and subscriptions."""
    await call.broker.delete_topic(call.account, call.topic)
    return nothing()
