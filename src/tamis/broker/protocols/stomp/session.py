"""One client's side of the conversation: its bytes become requests.

Rules:

- The first frame is CONNECT (or STOMP). After it the session waits until `accept` is called: only
  then is it known who the client is, and how much it may send.
- What was sent or acknowledged in a transaction is kept here until its COMMIT, within limits.
- The first frame that cannot be processed ends the session: a `Failure` is the last request.
- SEND frames that come one after the other are one `Publish`, acknowledgements one `Acknowledge`.
"""

from typing import NamedTuple

from tamis.broker.protocols.stomp import header_values
from tamis.broker.protocols.stomp.frames import Frame, FrameError, FrameLimits, FrameParser
from tamis.broker.protocols.stomp.messages import opening
from tamis.broker.protocols.stomp.requests import (
    AUTO,
    Ack,
    Acknowledge,
    Confirm,
    Connect,
    Disconnect,
    Failure,
    Publish,
    Quench,
    Request,
    Send,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from tamis.broker.protocols.stomp.transactions import TransactionLimits, Transactions
from tamis.errors import TamisError
from tamis.language.expression import MATCHES_ALL


class SessionLimits(NamedTuple):
    """How much one client may send."""

    # A selector is a header, and may be as long as a filter.
    frame: FrameLimits = FrameLimits(head=1_100_000, headers=1000, body=1_000_000)
    transactions: TransactionLimits = TransactionLimits()


class Session:
    """The state of one client's connection."""

    def __init__(self, before_connect: FrameLimits | None = None) -> None:
        self.version: str | None = None  # None until CONNECT
        self.client_beats = (0.0, 0.0)  # seconds: how often the client sends, and wants to hear
        self.subscriptions: dict[str, Subscription] = {}  # by the client's ids
        self.ended = False  # after DISCONNECT or a failure nothing more is read
        self._accepted = False
        self._client_id: str | None = None
        self._by_number: dict[int, Subscription] = {}
        self._parser = FrameParser(before_connect or FrameLimits())
        self._transactions = Transactions()
        self._given = 0  # the highest number of a subscription

    def receive(self, data: bytes) -> None:
        """Take bytes of the client; `requests` then gives what they ask for."""
        if not self.ended:
            self._parser.feed(data)

    @property
    def waiting(self) -> int:
        """How many bytes are kept."""
        return self._parser.waiting

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return not self.ended and self._parser.inside

    def accept(self, limits: SessionLimits) -> None:
        """The client is who it says it is; from here on these limits hold."""
        self._accepted = True
        self._parser.limits = limits.frame
        self._transactions.limits = limits.transactions

    def requests(self) -> list[Request]:
        """What the complete frames ask for, in their order."""
        found: list[Request] = []
        while not self.ended and (self._accepted or self.version is None):
            frame = None
            try:
                frame = self._parser.next_frame()
                if frame is None:
                    break
                self._handle(frame, found)
            except TamisError as error:
                self.ended = True
                found.append(Failure(error, frame.headers.get("receipt") if frame else None))
        return found

    def forget(self, subscription: Subscription) -> None:
        """The subscription has ended; to acknowledge what it sent is not an error."""
        self._by_number.pop(subscription.number, None)
        self.subscriptions.pop(subscription.key, None)

    def _handle(self, frame: Frame, found: list[Request]) -> None:
        command, headers, body = frame
        receipt = headers.get("receipt")
        if self.version is None:
            found.append(self._connect(command, headers))
            return
        match command:
            case "SEND":
                send = Send(header_values.topic(headers), headers, body, receipt)
                self._send(send, found)
            case "ACK" | "NACK":
                self._acknowledge(command, headers, receipt, found)
            case "SUBSCRIBE":
                found.append(self._subscribe(headers, receipt))
            case "UNSUBSCRIBE":
                found.append(self._unsubscribe(headers, receipt))
            case "BEGIN":
                self._transactions.begin(headers.get("transaction"))
                _confirm(receipt, found)
            case "COMMIT":
                found.append(self._transactions.commit(headers.get("transaction"), receipt))
            case "ABORT":
                self._transactions.abort(headers.get("transaction"))
                _confirm(receipt, found)
            case "DISCONNECT":
                self.ended = True
                found.append(Disconnect(receipt))
            case _:
                raise FrameError(f"a client does not send {command} here")

    def _send(self, send: Send, found: list[Request]) -> None:
        if "transaction" in send.headers:
            self._transactions.send(send.headers["transaction"], send)
            _confirm(send.receipt, found)
            return
        last = found[-1] if found else None
        if isinstance(last, Publish):
            last.sends.append(send)
        else:
            found.append(Publish([send]))

    def _connect(self, command: str, headers: dict[str, str]) -> Connect:
        if command not in {"CONNECT", "STOMP"}:
            raise FrameError(f"the first frame is {command}, expected CONNECT")
        version = header_values.version(headers)
        if version != "1.0":
            self.client_beats = header_values.heart_beats(headers)
        self.version = self._parser.version = version
        self._client_id = headers.get("client-id")
        authorization = headers.get("Authorization", headers.get("authorization"))
        return Connect(headers.get("login"), headers.get("passcode"), authorization)

    def _subscribe(self, headers: dict[str, str], receipt: str | None) -> Subscribe | Quench:
        wanted, identifier = header_values.wanted_topic(headers), headers.get("id")
        # Of what is wanted, the whole destination: no topic has a slash in its name.
        topic = header_values.topic(headers) if wanted is None else headers["destination"]
        if identifier is None and self.version != "1.0":
            raise FrameError("SUBSCRIBE needs the header id")
        key = headers["destination"] if identifier is None else identifier
        if key in self.subscriptions:
            raise FrameError(f"this connection has a subscription {key[:60]!r} already")
        self._given += 1
        subscription = Subscription(self._given, key, topic, header_values.ack_mode(headers))
        subscription.opening = opening(identifier, self.version)
        if wanted is not None:
            if subscription.ack == AUTO:
                raise FrameError("what is wanted is confirmed: ack:client or ack:client-individual")
            self.subscriptions[key] = self._by_number[self._given] = subscription
            return Quench(subscription, wanted, receipt)
        request = Subscribe(
            subscription,
            filter=headers.get("selector", MATCHES_ALL),
            durable=header_values.durable_name(headers, self._client_id),
            start=header_values.start(headers),
            window=header_values.window(headers),
            slow=headers.get("slow"),
            receipt=receipt,
        )
        self.subscriptions[key] = self._by_number[self._given] = subscription
        return request

    def _unsubscribe(self, headers: dict[str, str], receipt: str | None) -> Unsubscribe:
        key = headers.get("id", headers.get("destination", ""))
        durable = header_values.durable_name(headers, self._client_id)
        subscription = self.subscriptions.get(key)
        if subscription is not None:
            self.forget(subscription)
            return Unsubscribe(subscription, durable, subscription.topic, receipt)
        if durable is None:
            raise FrameError(
                f"this connection has no subscription {key[:60]!r}"
                if key
                else "UNSUBSCRIBE needs the header id"
            )
        topic = header_values.topic(headers) if "destination" in headers else None
        return Unsubscribe(None, durable, topic, receipt)

    def _acknowledge(
        self, command: str, headers: dict[str, str], receipt: str | None, found: list[Request]
    ) -> None:
        if command == "NACK" and self.version == "1.0":
            raise FrameError("STOMP 1.0 has no NACK; connect with accept-version:1.2")
        acks = [
            Ack(subscription, offset, command == "ACK")
            for subscription, offset in self._acknowledged(headers)
            if subscription.ack != AUTO
        ]
        if "transaction" in headers:
            self._transactions.acknowledge(headers["transaction"], acks)
            _confirm(receipt, found)
            return
        last = found[-1] if found else None
        if not isinstance(last, Acknowledge):
            last = Acknowledge([], [])
            found.append(last)
        last.acks.extend(acks)
        if receipt is not None:
            last.receipts.append(receipt)

    def _acknowledged(self, headers: dict[str, str]) -> list[tuple[Subscription, int]]:
        """The subscription and the offset that an ACK names; nothing if that one has ended."""
        if self.version == "1.2":
            number, offset = header_values.ack_id(headers)
            one = self._by_number.get(number)
            if one is None and 0 < number <= self._given:
                return []
            if one is None or offset > one.highest:
                raise header_values.unknown_ack(headers["id"])
            return [(one, offset)]
        topic, offset = header_values.message_id(headers)
        key = headers.get("subscription")
        if key is None and self.version == "1.1":
            raise FrameError("an ACK of STOMP 1.1 needs the header subscription")
        # A client of 1.0 names no subscription: it means all that sent the message.
        named = self.subscriptions.values() if key is None else [self.subscriptions.get(key)]
        return [
            (one, offset)
            for one in named
            if one is not None and one.topic == topic and offset <= one.highest
        ]


def _confirm(receipt: str | None, found: list[Request]) -> None:
    if receipt is not None:
        found.append(Confirm(receipt))
