"""What anybody wants, told to publishers over STOMP: SUBSCRIBE to ``/wanted/NAME``.

Each MESSAGE has the filter as its body, and a version. Its ACK confirms that version; the next
MESSAGE, which comes when there is another version or after a while, says by ``granted`` which ACK
has begun a lease: for ``lease`` seconds from before that ACK was sent, events that do not match the
filter may be dropped. Without ``granted``, nothing may be dropped by it that could not be before.
"""

import asyncio
from typing import TYPE_CHECKING

from tamis.broker.protocols.stomp.frames import escaped
from tamis.broker.protocols.stomp.requests import Ack, Quench, Subscription
from tamis.broker.stomp.deliveries import FrameOutput
from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.broker.accounts import Account
    from tamis.broker.broker import Broker
    from tamis.broker.quenching import Wanted

RENEW = 1.0  # seconds after which the same filter is told again, to be confirmed again


class QuenchingSubscription:
    """One subscription to what is wanted of a topic."""

    def __init__(self, quench: Quench, publisher: str) -> None:
        self.subscription = quench.subscription
        self.topic = quench.topic
        self.publisher = publisher
        self.confirmed = asyncio.Event()  # the last MESSAGE
        self.task: asyncio.Task[None] | None = None


class Quenches:
    """All such subscriptions of one connection."""

    def __init__(
        self, broker: "Broker", account: "Account", version: str, output: FrameOutput, session: str
    ) -> None:
        self._broker = broker
        self._account = account
        self._version = version
        self._output = output
        self._session = session  # a name that no other connection has
        self._by_number: dict[int, QuenchingSubscription] = {}

    async def add(self, quench: Quench) -> None:
        """Tell a publisher what is wanted, from now on."""
        number = quench.subscription.number
        one = QuenchingSubscription(quench, f"{self._session}-{number}")
        first = await self._confirm(one, None, 0.0)
        self._by_number[number] = one
        one.task = asyncio.create_task(self._tell(one, first))

    def acknowledge(self, acks: list[Ack]) -> list[Ack]:
        """Take confirmations; returns the other acknowledgements."""
        others = []
        for ack in acks:
            one = self._by_number.get(ack.subscription.number)
            if one is None:
                others.append(ack)
            elif ack.accepted and ack.offset == one.subscription.highest:
                one.confirmed.set()
        return others

    def remove(self, subscription: Subscription) -> None:
        """A publisher drops nothing any more, and says so."""
        one = self._by_number.pop(subscription.number, None)
        if one is not None and one.task is not None:
            one.task.cancel()
            self._broker.quench_no_more(self._account, one.topic, one.publisher)

    def close(self) -> None:
        """The connection is lost. Its publisher may not know that: its leases end by themselves."""
        for one in self._by_number.values():
            if one.task is not None:
                one.task.cancel()

    async def _confirm(
        self, one: QuenchingSubscription, version: str | None, wait: float
    ) -> "Wanted":
        return await self._broker.quench(self._account, one.topic, one.publisher, version, wait)

    async def _tell(self, one: QuenchingSubscription, wanted: "Wanted") -> None:
        number, granted = 0, ""
        try:
            while True:
                one.subscription.highest = number
                one.confirmed.clear()
                self._output.write(self._message(one, number, wanted, granted))
                await one.confirmed.wait()
                wanted = await self._confirm(one, wanted.version, RENEW)
                granted = f"\ngranted:{number}" if wanted.granted else ""
                number += 1
        except TamisError as error:
            self._output.fail(error)

    def _message(
        self, one: QuenchingSubscription, number: int, wanted: "Wanted", granted: str
    ) -> bytes:
        subscription, body = one.subscription, wanted.filter.encode()
        head = (
            f"\nack:{subscription.number}-{number}\ndestination:{subscription.topic}"
            f"\nmessage-id:{subscription.topic}@{number}"
            f"\nversion:{escaped(wanted.version, self._version)}\nsemantics:{wanted.semantics}"
            f"\nlease:{wanted.lease:g}{granted}\ncontent-type:text/plain"
            f"\ncontent-length:{len(body)}\n\n"
        )
        return subscription.opening + head.encode() + body + b"\0"
