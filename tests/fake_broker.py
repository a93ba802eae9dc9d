"""A broker in memory that speaks the shapes of the HTTP protocol, and fails on demand.

It is for what a real one does not do when a test asks for it: lose an answer after storing, cut a
stream after some messages, be busy.
"""

import asyncio
import io
import json
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread

import pyarrow as pa
from aiohttp import web

import tamis


class FakeBroker:
    def __init__(self):
        self.topics = {}
        self.events = {}  # topic: list of (id, event)
        self.subscriptions = {}
        self.requests = []
        self.busy = 0  # requests to answer with 503
        self.lost_answers = 0  # publications to store without an answer
        self.cuts = []  # after how many messages the next streams are cut
        self.starts = []  # of the subscriptions that were made
        self.resumed = []  # Last-Event-ID of the streams
        self.said = []  # messages to send at the beginning of each stream
        self.changed = None
        self.acknowledged = SimpleQueue()  # cursors, as they moved

    def application(self):
        made = web.Application(middlewares=[self.watch], client_max_size=1 << 30)
        made.add_routes(
            [
                web.get("/healthz", self.health),
                web.get("/topics", self.list_topics),
                web.put("/topics/{topic}", self.put_topic),
                web.get("/topics/{topic}", self.get_topic),
                web.delete("/topics/{topic}", self.delete_topic),
                web.post("/topics/{topic}/events", self.publish),
                web.put("/topics/{topic}/subscriptions/{id}", self.subscribe),
                web.get("/topics/{topic}/subscriptions/{id}", self.get_subscription),
                web.delete("/topics/{topic}/subscriptions/{id}", self.unsubscribe),
                web.get("/topics/{topic}/subscriptions/{id}/events", self.stream),
                web.post("/topics/{topic}/subscriptions/{id}/ack", self.ack),
            ]
        )
        return made

    @web.middleware
    async def watch(self, request, handler):
        self.requests.append((request.method, request.path, dict(request.headers)))
        if self.busy and request.path != "/healthz":
            self.busy -= 1
            return problem(503, "busy", "try again")
        try:
            return await handler(request)
        except tamis.ExpressionError as error:
            place = {"line": error.line, "column": error.column}
            return problem(400, "bad-filter", str(error), **place)

    async def health(self, _):
        return web.json_response({"status": "alive"})

    def info(self, name):
        events = len(self.events[name])
        schema = self.topics[name]["schema"]
        if isinstance(schema, str):
            schema = dict(one.split() for one in schema.split(","))
        return self.topics[name] | {
            "schema": schema,
            "name": name, "first_offset": 0, "next_offset": events, "subscriptions": 0,
            "retention": {}, "expired": 0, "damaged": 0,
        }  # fmt: skip

    async def list_topics(self, _):
        return web.json_response({"topics": [self.info(name) for name in self.topics]})

    async def put_topic(self, request):
        name = request.match_info["topic"]
        self.topics[name] = {"semantics": "sql"} | await request.json()
        self.events.setdefault(name, [])
        return web.json_response(self.info(name))

    async def get_topic(self, request):
        name = request.match_info["topic"]
        if name not in self.topics:
            return problem(404, "unknown-topic", f"there is no topic {name!r}")
        return web.json_response(self.info(name))

    async def delete_topic(self, request):
        del self.topics[request.match_info["topic"]]
        return web.Response(status=204)

    async def publish(self, request):
        name = request.match_info["topic"]
        accepted, refused = 0, []
        for row, (key, event) in enumerate(await self.events_of(request)):
            if not isinstance(event, dict):
                refused.append({"row": row, "reason": "it is not a JSON object"})
                continue
            accepted += 1
            if key not in {known for known, _ in self.events[name]}:
                self.events[name].append((key, event))
        async with self.changed:
            self.changed.notify_all()
        if self.lost_answers:
            self.lost_answers -= 1
            request.transport.abort()
            return web.Response()
        answer = {"accepted": accepted, "offset": len(self.events[name]) - 1, "refused": refused}
        if refused and not accepted:
            return problem(400, "bad-event", refused[0]["reason"], refused=refused)
        return web.json_response(answer)

    async def events_of(self, request):
        kind, key = request.headers["Content-Type"], request.headers["Event-Id"]
        body = await request.read()
        if kind == "application/json":
            return [(key, parsed(body))]
        if kind == "application/cloudevents-batch+json":
            return [(one["id"], one["data"]) for one in json.loads(body)]
        if kind == "application/vnd.apache.arrow.stream":
            rows = pa.ipc.open_stream(io.BytesIO(body)).read_all().to_pylist()
        else:
            assert kind == "application/x-ndjson"
            rows = [parsed(line) for line in body.splitlines()]
        return [(f"{key}-{row}", event) for row, event in enumerate(rows)]

    async def subscribe(self, request):
        name, key = request.match_info["topic"], request.match_info["id"]
        wanted = await request.json()
        tamis.parse(wanted["filter"], tamis.Schema(self.topics[name]["schema"]))
        start = wanted["start"]
        self.starts.append(start)
        cursor = {"earliest": 0, "new": len(self.events[name])}.get(start, start)
        known = self.subscriptions.get(key, {"cursor": cursor})
        self.subscriptions[key] = wanted | {"cursor": known["cursor"]}
        return web.json_response(self.subscriptions[key])

    async def get_subscription(self, request):
        key = request.match_info["id"]
        if key not in self.subscriptions:
            return problem(404, "unknown-subscription", f"{key!r} is not subscribed")
        return web.json_response(self.subscriptions[key])

    async def unsubscribe(self, request):
        self.subscriptions.pop(request.match_info["id"], None)
        return web.Response(status=204)

    async def ack(self, request):
        wanted = (await request.json())["offset"]
        self.subscriptions[request.match_info["id"]]["cursor"] = wanted + 1
        self.acknowledged.put(wanted + 1)
        return web.Response(status=204)

    async def stream(self, request):
        topic, key = request.match_info["topic"], request.match_info["id"]
        if key not in self.subscriptions:
            return problem(404, "unknown-subscription", f"{key!r} is not subscribed")
        wanted = self.subscriptions[key]
        last = request.headers.get("Last-Event-ID")
        self.resumed.append(last)
        if last is not None:
            wanted["cursor"] = int(last) + 1
        matcher = tamis.Matcher(self.topics[topic]["schema"])
        matcher.subscribe("it", wanted["filter"])
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        for message in self.said:
            await answer.write(message)
        left = self.cuts.pop(0) if self.cuts else -1
        position = wanted["cursor"]
        while left:
            while position >= len(self.events[topic]):
                async with self.changed:
                    await self.changed.wait()
            event_id, event = self.events[topic][position]
            if matcher.match(event):
                said = {
                    "offset": position, "event": event, "redelivered": False, "id": event_id,
                    "time": "2025-01-01T00:00:00Z",
                }  # fmt: skip
                with suppress(ConnectionError):  # the client has gone
                    await answer.write(f"id: {position}\ndata: {json.dumps(said)}\n\n".encode())
                left -= 1
            position += 1
        if not wanted["durable"]:
            del self.subscriptions[key]
        request.transport.close()
        return answer


def parsed(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


def problem(status, code, message, **more):
    return web.json_response({"error": code, "message": message} | more, status=status)


@contextmanager
def serving():
    """A fake broker that a thread runs, and its address."""
    broker, loop = FakeBroker(), asyncio.new_event_loop()

    async def start():
        broker.changed = asyncio.Condition()
        runner = web.AppRunner(broker.application(), shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, site._server.sockets[0].getsockname()[1]

    runner, port = loop.run_until_complete(start())
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield broker, f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
