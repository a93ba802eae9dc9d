"""The aiohttp application: every request is authenticated, answered, counted.

An error of the library is answered with its status and its message as JSON. A request that changes
something is finished even if its client leaves; one that only listens ends with its connection.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from tamis.broker.accounts import Accounts
from tamis.broker.broker import Broker
from tamis.broker.metrics import OTHER
from tamis.broker.stomp.service import StompService
from tamis.broker.web import watching
from tamis.broker.web.answers import problem_answer
from tamis.broker.web.calls import Call
from tamis.broker.web.listeners import Listeners
from tamis.broker.web.operations import OPERATIONS, Handler
from tamis.broker.web.origins import Origins
from tamis.broker.web.stomp_socket import stomp_socket

_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})
_Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebBroker:
    """A broker as an aiohttp application."""

    def __init__(self, broker: Broker, accounts: Accounts) -> None:
        self.broker = broker
        self.accounts = accounts
        self._listeners = Listeners()
        self._stomp = StompService(broker)
        self._origins = Origins(has_accounts=accounts.guest is None)
        self.application = web.Application(middlewares=[self._guarded])
        for operation in OPERATIONS:
            answer = self._answer(operation.handler, changes=operation.method != "GET")
            self.application.router.add_route(operation.method, operation.path, answer)
        self._add_watching()
        self.application.on_shutdown.append(self._end_listening)

    async def _end_listening(self, _: web.Application) -> None:
        await asyncio.gather(self._listeners.end(), self._stomp.stop())

    def stop_taking(self) -> None:
        """Say to those who ask that the broker is stopping."""
        self._listeners.stopping = True

    def _answer(self, handler: Handler, *, changes: bool) -> _Answer:
        async def answer(request: web.Request) -> web.StreamResponse:
            account = await self.accounts.of_header(request.headers.get(hdrs.AUTHORIZATION))
            return await handler(Call(request, self.broker, account, self._listeners))

        async def finish(request: web.Request) -> web.StreamResponse:
            return await asyncio.shield(answer(request))

        return finish if changes else answer

    def _add_watching(self) -> None:
        async def metrics(request: web.Request) -> web.Response:
            account = await self.accounts.of_header(request.headers.get(hdrs.AUTHORIZATION))
            return watching.metrics(self.broker, account)

        async def healthz(_: web.Request) -> web.Response:
            return watching.healthz()

        async def readyz(_: web.Request) -> web.Response:
            return watching.readyz(stopping=self._listeners.stopping)

        async def openapi(_: web.Request) -> web.Response:
            return watching.openapi()

        async def page(request: web.Request) -> web.Response:
            return watching.page(request.path)

        async def stomp(request: web.Request) -> web.StreamResponse:
            return await stomp_socket(request, self._stomp)

        router = self.application.router
        router.add_get("/stomp", stomp, allow_head=False)
        router.add_get("/metrics", metrics)
        router.add_get("/healthz", healthz)
        router.add_get("/readyz", readyz)
        router.add_get("/openapi.json", openapi)
        for path in watching.PAGES:
            router.add_get(path, page)

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Answer) -> web.StreamResponse:
        """Answer, or say what is wrong, and count it."""
        metrics = self.broker.metrics
        try:
            self._origins.check(request)
            answer = await handler(request)
        except Exception as error:  # noqa: BLE001 - the client gets an answer, the log the error
            answer = problem_answer(error)
            metrics.refusals.of("http", str(answer.status)).add()
        kind = request.method if request.method in _METHODS else OTHER
        metrics.requests.of("http", kind).add()
        return answer
