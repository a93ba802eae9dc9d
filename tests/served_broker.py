"""A broker that listens for HTTP in a thread, and a plain client of it."""

import asyncio
import gc
import http.client
import json
import socket
import threading
import warnings
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import quote

from tamis.broker.accounts import Accounts
from tamis.broker.broker import Broker
from tamis.broker.settings import Settings
from tamis.broker.stomp.service import StompService
from tamis.broker.web.listener import WebListener

SCHEMA = {"symbol": "string", "price": "double", "volume": "int"}


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class ServedBroker:
    """A broker and its HTTP server, with a loop of their own."""

    def __init__(self, folder, *, keep_alive=30.0, lingering=0.1, port=0, **settings):
        self.settings = replace(Settings(data=folder), **settings)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.accounts: Accounts = self.settings.new_accounts()
        self.run(self._open(keep_alive, lingering, port))

    async def _open(self, keep_alive, lingering, port):
        self.broker = await Broker.open(self.settings)
        self.listener = WebListener(
            self.broker,
            self.accounts,
            StompService(self.broker),
            keep_alive=keep_alive,
            lingering=lingering,
        )
        self.port = await self.listener.start("127.0.0.1", port)

    def run(self, coroutine):
        """The result of a coroutine that runs in the broker's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def close(self):
        with warnings.catch_warnings():
            # asyncio forgets connections that come at the very moment when a server stops.
            warnings.simplefilter("ignore", ResourceWarning)
            self.run(self.listener.stop())
            self.run(self.broker.close())
            self.accounts.close()
            self.run(_last_connections())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join()
            self.loop.close()
            gc.collect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, method, path, body=None, **headers) -> Answer:
        """The answer to a request; a body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            named.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def topic(self, name, schema=SCHEMA, **more):
        assert self.ask("PUT", f"/topics/{name}", {"schema": schema, **more}).status == 200
        return f"/topics/{name}"

    def subscribe(self, topic, name, filter_text, **more):
        path = f"{topic}/subscriptions/{quote(name, safe='')}"
        answer = self.ask("PUT", path, {"filter": filter_text, **more})
        assert answer.status == 200, answer
        return path

    def listen(self, path, **headers):
        return EventStream(self.port, path, headers)

    def connect(self):
        """A socket, for requests that no client makes."""
        return socket.create_connection(("127.0.0.1", self.port))


async def _last_connections():
    """Let connections end that came while the server stopped."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)


class Message(NamedTuple):
    """A server-sent event."""

    kind: str
    id: str | None
    content: Any


class EventStream:
    """Server-sent events, as they come."""

    def __init__(self, port, path, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **named})
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def __iter__(self):
        fields = {}
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(":")
            if name:
                fields[name] = value.removeprefix(" ")
            elif not line.strip():
                if "data" in fields:
                    content = json.loads(fields["data"])
                    yield Message(fields.get("event", "message"), fields.get("id"), content)
                fields = {}

    def take(self, count):
        """The next messages."""
        messages = iter(self)
        return [next(messages) for _ in range(count)]

    def close(self):
        self.answer.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
