"""Events over HTTP: publishing, and reading the log."""

import asyncio

from aiohttp import web

from tamis.broker.protocols.event_bodies import ARROW, event_key, events_of, media_type
from tamis.broker.protocols.sse import record_json
from tamis.broker.records import Published
from tamis.broker.web.answers import json_answer
from tamis.broker.web.arrow_bodies import events_of_stream
from tamis.broker.web.calls import Call
from tamis.broker.web.shapes import Problem, Publication
from tamis.broker.web.streams import json_text

MOST_READ = 10_000  # events in one answer


async def publish(call: Call) -> web.Response:
    """Publish the events of the body; the answer comes when they are safe on disk."""
    headers = {name.lower(): value for name, value in call.request.headers.items()}
    body = await call.body()
    if media_type(headers) == ARROW:
        batch = await asyncio.to_thread(events_of_stream, body, event_key(headers))
    else:
        batch = events_of(headers, body)
    # Without events, this still finds out whether there is such a topic.
    outcome = await call.broker.publish(call.account, call.topic, batch.events)
    return _answer(batch.outcome(outcome))


async def read_log(call: Call) -> web.StreamResponse:
    """Events of the log that match a filter, from an offset or a time on."""
    most = call.number("limit", 100, MOST_READ)
    start = call.query("from") or "earliest"
    end = call.broker.topic(call.account, call.topic).next_offset
    records = await call.broker.read(
        call.account, call.topic, call.query("filter") or None, start=start, most=most
    )
    following = records[-1].offset + 1 if records else end
    events = b",".join(map(record_json, records))
    return await json_text(call, b'{"events":[%b],"next":%d}' % (events, following))


def _answer(outcome: Published) -> web.Response:
    """The answer to a publication: an error if every event was refused."""
    said = Publication.of(outcome)
    if outcome.accepted or not outcome.refused:
        return json_answer(said)
    first = outcome.refused[0]
    more = f" (and {len(outcome.refused) - 1:,} more)" if len(outcome.refused) > 1 else ""
    problem = Problem(
        "bad-event", first.reason + more, accepted=0, offset=None, refused=said.refused
    )
    return json_answer(problem, 400)
