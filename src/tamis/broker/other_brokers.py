"""What a topic asks of the network: that events published elsewhere come here, too."""

from typing import TYPE_CHECKING, Protocol

from tamis.broker.catalogue_change import CatalogueChange
from tamis.language.expression import Expression

if TYPE_CHECKING:
    from tamis.broker.topic import Topic


class OtherBrokers(Protocol):
    """The other brokers, as the topics and subscriptions of this one see them."""

    async def opened(self, topic: "Topic") -> None:
        """A topic was made, or found when the broker started."""

    def changed(self, topic: "Topic") -> None:
        """A topic got more attributes."""

    def births(self) -> tuple[str, ...]:
        """The births of a topic that is being made here; none without a network."""

    def deletion(self, topic: "Topic") -> list[CatalogueChange]:
        """What the catalogue is to remember when a topic is deleted."""

    async def deleted(self, topic: "Topic") -> None:
        """A topic is deleted: the catalogue knows it, and its log is about to be closed."""

    async def want(self, topic: str, id_: str, expression: Expression) -> None:
        """A client subscribes; returns when that is known as far as the network is reached."""

    def unwant(self, topic: str, id_: str) -> None:
        """A subscription is gone."""

    def tick(self) -> None:
        """Some time has passed."""

    def prefix(self, topic: str) -> str:
        """What the ids begin with of events that are published here without one."""

    def wanted(self, topic: str) -> list[str]:
        """The filters of all peers: what anybody wants who is not here."""


class NoOtherBrokers:
    """No other brokers."""

    async def opened(self, topic: "Topic") -> None:
        """Nobody is to be told."""

    def changed(self, topic: "Topic") -> None:
        """Nobody is to be told."""

    def births(self) -> tuple[str, ...]:
        """Nobody needs to know."""
        return ()

    def deletion(self, topic: "Topic") -> list[CatalogueChange]:  # noqa: ARG002 - whatever topic it is
        """Nobody else would make it again."""
        return []

    async def deleted(self, topic: "Topic") -> None:
        """Nobody is to be told."""

    async def want(self, topic: str, id_: str, expression: Expression) -> None:
        """Everything is here."""

    def unwant(self, topic: str, id_: str) -> None:
        """Nobody is to be told."""

    def tick(self) -> None:
        """Nothing waits for a time."""

    def prefix(self, topic: str) -> str:  # noqa: ARG002 - of whatever topic
        """Nobody else names them."""
        return ""

    def wanted(self, topic: str) -> list[str]:  # noqa: ARG002 - of whatever topic
        """Nobody is elsewhere."""
        return []
