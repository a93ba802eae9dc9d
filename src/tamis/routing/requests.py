"""Requests of hops that are not answered yet: each gets its Ack when all it led to is done."""

from collections.abc import Callable
from dataclasses import dataclass

from tamis.routing.kinds import FilterKind, kind_of
from tamis.routing.messages import FilterMessage


@dataclass(slots=True, eq=False)
class Request:
    """A message of a hop that adds or removes a filter, and how much it still waits for."""

    hop: str
    message: FilterMessage
    pending: int = 0  # announcements to neighbours that are not live, or not gone, yet

    @property
    def id(self) -> str:
        return self.message.id

    @property
    def kind(self) -> FilterKind:
        return kind_of(self.message)

    @property
    def what(self) -> str:
        """The kind of message, as the Ack names it."""
        return type(self.message).__name__


class OpenRequests:
    """The requests without an answer, at most one per hop, kind and id: the latest."""

    def __init__(self, answer: Callable[[Request], None]) -> None:
        self._answer = answer
        self._open: dict[tuple[str, str, FilterKind], Request] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, hop: str, message: FilterMessage) -> Request:
        """A new request; an earlier one with the same id is never answered."""
        request = Request(hop, message)
        self._open[hop, request.id, request.kind] = request
        return request

    def finish(self, request: Request) -> None:
        """Answer a request, unless a later one has taken its place or its hop has gone."""
        key = request.hop, request.id, request.kind
        if self._open.get(key) is request:
            del self._open[key]
            self._answer(request)

    def forget(self, hop: str) -> None:
        """Answer nothing to a hop that has gone."""
        for key in [key for key in self._open if key[0] == hop]:
            del self._open[key]
