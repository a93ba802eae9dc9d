"""The filters of a broker's own clients, on their way into the network.

Filters that come and go wait in a line. Some of them are served together, and then the event loop
has its turn: links stay alive meanwhile, and peers get news of many filters at once. Of one id only
the latest filter counts.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator

from tamis.broker.network.routes import Routes
from tamis.errors import TamisError
from tamis.language.expression import Expression

AT_ONCE = 100  # filters that are served before the event loop has its turn


class OwnFilters:
    """The filters of clients by their ids, and who waits for them to be established."""

    def __init__(self, served: Callable[[], None]) -> None:
        """`served` is called after some of those who waited were served."""
        self._served = served
        self._texts: dict[str, str] = {}  # of those that were passed on
        self._line: OrderedDict[str, Expression | None] = OrderedDict()  # None: it is gone
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._routes: Routes | None = None

    def use(self, routes: Routes) -> None:
        """Pass filters on to these routes from now on, those that were passed on before as well."""
        self._routes = routes
        for id_, text in self._texts.items():
            routes.want(id_, text)

    def texts(self) -> Iterator[str]:
        """The filters that were passed on."""
        return iter(self._texts.values())

    def load(self, id_: str, text: str) -> None:
        """Pass on a filter that the catalogue has; nobody waits for it."""
        assert self._routes is not None  # noqa: S101 - `use` comes first
        self._texts[id_] = text
        self._routes.want(id_, text)

    async def want(self, id_: str, expression: Expression) -> None:
        """Return when a filter is established, as far as the network is reached."""
        self._finish(id_)  # whoever waits for an earlier filter of this id
        done = self.expect(id_)
        self.put(id_, expression)
        await done

    def expect(self, id_: str) -> asyncio.Future[None]:
        """A future that is done when the filter of an id is established."""
        self._waiting[id_] = asyncio.get_running_loop().create_future()
        return self._waiting[id_]

    def unwant(self, id_: str) -> None:
        """Forget a filter, if there is one."""
        if id_ in self._texts or id_ in self._line:
            self._finish(id_)
            self.put(id_, None)

    def established(self, id_: str) -> None:
        """Note that a filter is established."""
        if id_ not in self._line:  # else somebody waits for a later one
            self._finish(id_)

    def fail(self, error: TamisError) -> None:
        """Let nobody wait any more, because of an error."""
        self._line.clear()
        for id_ in list(self._waiting):
            self._finish(id_, error)

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody waits for a filter to be established."""
        return bool(self._waiting or self._line)

    def finish_advertisements(self) -> None:
        """End the waiting for advertisements; the ids of clients' filters have a slash."""
        for id_ in [id_ for id_ in self._waiting if "/" not in id_]:
            self._finish(id_)

    def _finish(self, id_: str, error: TamisError | None = None) -> None:
        done = self._waiting.pop(id_, None)
        if done is not None and not done.done():
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

    def put(self, id_: str, expression: Expression | None) -> None:
        """Let a filter wait to be passed on, or to be forgotten."""
        if not self._line:
            asyncio.get_running_loop().call_soon(self._serve)
        self._line[id_] = expression

    def _serve(self) -> None:
        for _ in range(min(AT_ONCE, len(self._line))):
            id_, expression = self._line.popitem(last=False)
            try:
                self._pass_on(id_, expression)
            except TamisError as error:
                self._finish(id_, error)
        self._served()
        if self._line:
            asyncio.get_running_loop().call_soon(self._serve)

    def _pass_on(self, id_: str, expression: Expression | None) -> None:
        assert self._routes is not None  # noqa: S101 - `use` comes first
        if expression is not None:
            text = str(expression)
            self._routes.want(id_, text)
            self._texts[id_] = text
        elif self._texts.pop(id_, None) is not None:
            self._routes.unwant(id_)
