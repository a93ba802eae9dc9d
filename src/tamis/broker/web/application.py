"""The aiohttp application: every request is authenticated, answered, counted.

An error of the library is answered with its status and its message as JSON. A request that changes
something is finished even if its client leaves; one that only listens ends with its connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import hdrs, web

import tamis
from tamis.broker.accounts import Account, Accounts
from tamis.broker.broker import Broker
from tamis.broker.metrics import OTHER
from tamis.broker.stomp.service import StompService
from tamis.broker.web.answers import JSON, json_answer, problem_of, text_answer
from tamis.broker.web.calls import Call
from tamis.broker.web.open_streams import OpenStreams
from tamis.broker.web.openapi import description
from tamis.broker.web.operations import OPERATIONS, Operation
from tamis.broker.web.origins import Origins
from tamis.broker.web.page_files import FILES, page_file
from tamis.broker.web.stomp_socket import stomp_socket
from tamis.errors import OptionError, did_you_mean

NOBODY = Account("nobody")  # may do nothing
_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})
_Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebBroker:
    """A broker as an aiohttp application."""

    def __init__(self, broker: Broker, accounts: Accounts, stomp: StompService) -> None:
        self.broker = broker
        self.accounts = accounts
        self._open_streams = OpenStreams()
        self._stomp = stomp
        self._origins = Origins(has_accounts=accounts.guest is None)
        self.application = web.Application(middlewares=[self._guarded])
        router = self.application.router
        for operation in OPERATIONS:
            path, answer = operation.path, self._answer(operation)
            if operation.method == "GET":  # a stream cannot answer HEAD
                router.add_get(path, answer, allow_head=JSON in operation.answer)
            else:
                router.add_route(operation.method, path, answer)
        self._add_others(router)
        self.application.on_shutdown.append(self._end_listening)

    async def _end_listening(self, _: web.Application) -> None:
        await asyncio.gather(self._open_streams.end(), self._stomp.stop())

    def stop_taking(self) -> None:
        """Say to those who ask that the broker is stopping."""
        self._open_streams.stopping = True

    def _answer(self, operation: Operation) -> _Answer:
        handler = operation.handler
        known = [one.name for one in operation.parameters if one.place == "query"]

        async def answer(request: web.Request) -> web.StreamResponse:
            _check_query(request, known)
            account = await self.accounts.of_header(request.headers.get(hdrs.AUTHORIZATION))
            return await handler(Call(request, self.broker, account, self._open_streams))

        async def finish(request: web.Request) -> web.StreamResponse:
            task = asyncio.create_task(answer(request))
            task.add_done_callback(_look_at_error)
            return await asyncio.shield(task)

        async def answer_all(request: web.Request) -> web.StreamResponse:
            return await handler(Call(request, self.broker, NOBODY, self._open_streams))

        if operation.for_all:
            return answer_all
        return answer if operation.method == "GET" else finish

    def _add_others(self, router: web.UrlDispatcher) -> None:
        async def openapi(_: web.Request) -> web.Response:
            return text_answer(description(tamis.__version__), JSON)

        async def stomp(request: web.Request) -> web.StreamResponse:
            return await stomp_socket(request, self._stomp)

        router.add_get("/openapi.json", openapi)
        router.add_get("/stomp", stomp, allow_head=False)
        for path in FILES:
            router.add_get(path, page_file)

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Answer) -> web.StreamResponse:
        """Answer, or say what is wrong, and count it."""
        metrics = self.broker.metrics
        try:
            self._origins.check(request)
            answer = await handler(request)
        except Exception as error:  # noqa: BLE001 - the client gets an answer, the log the error
            status, problem, headers = problem_of(error)
            answer = json_answer(problem, status)
            answer.headers.update(headers)
            metrics.refusals.of("http", problem.error).add()
        kind = request.method if request.method in _METHODS else OTHER
        metrics.requests.of("http", kind).add()
        return answer


def _check_query(request: web.Request, known: Sequence[str]) -> None:
    """Refuse parameters that nobody would look at: a filter is never ignored."""
    for name in request.query:
        if name not in known:
            hint = did_you_mean(name, known)
            raise OptionError(f"unknown parameter {name[:60]!r}" + (f"; {hint}" if hint else ""))
        if len(request.query.getall(name)) > 1:
            raise OptionError(f"{name} is given twice")


def _look_at_error(task: "asyncio.Task[web.StreamResponse]") -> None:
    """Nobody is told of an error if the client has left; asyncio would log it as forgotten."""
    if not task.cancelled():
        task.exception()
