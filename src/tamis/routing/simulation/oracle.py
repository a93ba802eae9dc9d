"""The oracle: knows what every client must get, and reports everything else as a violation.

It sees what clients say and hear and what each router does with it, and evaluates filters one by
one. Its rules:

1. A client gets a publication at most once, and only if one of its subscriptions matches; the
   subscriptions that match are named exactly.
2. A publication under an established advertisement (if the strategy has advertisements) reaches
   every client with an established subscription that matches. It may stop on its way only if the
   link ahead, or one that it came over, was not trusted (`trusted_links.py`): such a loss is
   *excused* and counted. If the subscription ended before it arrived, it is *waived*.
3. A request is answered: at once by Refused if it cannot be granted, and then nothing has changed;
   otherwise by one Ack.
4. When the network is settled, no request is open, neighbours agree on what one has told the
   other, and with advertisements no subscription is held where no event for it is advertised.
   When all clients have left, all tables are empty.
5. Queues stay within their limit. Where messages are lost for less than t2, no link ever fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tamis.routing.messages import (
    Ack,
    Advertise,
    Connect,
    Deliver,
    Disconnect,
    Message,
    Publish,
    Refused,
    Sends,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.simulation.clients import HeldFilter, Request, SimulatedClient
from tamis.routing.simulation.filters import NEVER, condition, row_of, some_event_matches
from tamis.routing.simulation.outcome import Outcome, Violation
from tamis.routing.simulation.publication_tracker import PublicationTracker, TrackedPublication
from tamis.routing.simulation.scenario import Scenario
from tamis.routing.simulation.table_checks import disagreements, leftovers, needless_filters
from tamis.routing.simulation.topology import Topology
from tamis.routing.simulation.trusted_links import TrustedLinks

ACK, REFUSE, EITHER = "an Ack", "Refused", "an answer"


@dataclass(slots=True, eq=False)
class ExpectedAnswer:
    """A request that a broker is handling, and the answer that it must get."""

    request: Request
    answer: str = ACK
    answered: bool = False
    replaced: HeldFilter | None = None  # the filter that had the id before
    waiting: Request | None = None  # an earlier request with the id and without an answer
    tables: Any = None  # of the broker, if they must not change

    @property
    def id(self) -> str:
        return self.request.id

    def is_answered_by(self, message: Ack | Refused) -> bool:
        """Whether an answer is about this request."""
        return (message.id, message.what) == (self.id, type(self.request).__name__)


class Oracle:
    """Watches one simulation."""

    def __init__(
        self,
        scenario: Scenario,
        topology: Topology,
        outcome: Outcome,
        established: Callable[[str], None],
    ) -> None:
        self.clients = {client.name: SimulatedClient(client) for client in scenario.clients}
        self.trusted_links = TrustedLinks(topology)
        self.now = 0.0
        self.step = 0
        self._outcome = outcome
        self._established = established  # called after each Ack of a subscription or advertisement
        self._counts = outcome.counts
        self._topology = topology
        self._semantics = scenario.semantics
        self._queue_limit = scenario.waiting
        self._may_fail = scenario.faulty == "crashing"
        self._has_advertisements = scenario.strategy.startswith("advertisements")
        self._publications = PublicationTracker(
            topology, self.trusted_links, outcome.counts, self.complain, may_fail=self._may_fail
        )
        self._handling: ExpectedAnswer | None = None

    def complain(self, kind: str, explanation: str) -> None:
        self._outcome.violations.append(Violation(self.now, kind, explanation))

    # --- what a client says

    def before_request(self, client: SimulatedClient, message: Message, router: Any) -> None:
        """A broker is about to handle a client's message."""
        self._handling = None
        if isinstance(message, Connect | Disconnect):
            client.leave()
            return
        if not isinstance(message, Request):
            raise TypeError(f"a client does not send {message}")
        expected = ExpectedAnswer(message)
        if isinstance(message, Publish):
            expected.answer = self._publish(client, message)
        elif isinstance(message, Subscribe | Advertise):
            self._begin(client, message, expected)
        else:
            self._end(client, message, expected)
        if expected.answer == REFUSE:
            expected.tables = router.tables()
        else:
            expected.waiting = client.pending.get(message.id)
            client.pending[message.id] = message
        self._counts["requests"] += 1
        self._handling = expected

    def _begin(
        self, client: SimulatedClient, message: Subscribe | Advertise, expected: ExpectedAnswer
    ) -> None:
        matches = condition(message.filter, self._semantics)
        if matches is None or message.filter in NEVER:
            expected.answer = REFUSE
            return
        filters = client.filters_of_kind(message)
        expected.replaced = filters.get(message.id)
        filters[message.id] = HeldFilter(message.id, message.filter, matches)
        if not some_event_matches(message.filter, self._semantics):
            expected.answer = EITHER

    @staticmethod
    def _end(
        client: SimulatedClient, message: Unsubscribe | Unadvertise, expected: ExpectedAnswer
    ) -> None:
        held = client.filters_of_kind(message).get(message.id)
        if held is None or held.ending:
            expected.answer = REFUSE
        else:
            held.ending = True

    def _publish(self, client: SimulatedClient, message: Publish) -> str:
        row = row_of(message.event, self._semantics)
        key = f"{message.sender}/{message.id}"
        publication = TrackedPublication(key, message.event, row, self.step + 1)
        self._publications.by_key[key] = publication
        if row is None:
            return REFUSE
        covering = [one for one in client.advertisements.values() if one.matches(row)]
        if self._has_advertisements and not covering:
            return REFUSE
        established = [one for one in covering if one.established is not None and not one.ending]
        if established or not self._has_advertisements:
            source = client.broker
            self._publications.owe(publication, row, source, self.clients.values())
        return (
            ACK
            if not self._has_advertisements or any(not one.ending for one in covering)
            else EITHER
        )

    # --- what a client hears

    def after_answer(self, client: SimulatedClient, message: Message) -> None:
        """A client gets a message from its broker."""
        if isinstance(message, Deliver):
            self._delivered(client, message)
        elif isinstance(message, Ack):
            self._acknowledged(client, message)
        elif isinstance(message, Refused):
            self._refused(client, message)
        else:
            self.complain("misaddressed", f"{client.name} was sent {message}")

    def _delivered(self, client: SimulatedClient, message: Deliver) -> None:
        name = client.name
        publication = self._publications.by_key.get(message.id)
        what = f"{name} got {message.id} {message.event}"
        if publication is None or publication.row is None or publication.refused:
            self.complain("invented", f"{what}, which was never published")
            return
        self._counts["deliveries"] += 1
        if message.event != publication.event:
            self.complain("altered", f"{what}, which was published as {publication.event}")
        if message.id in client.received:
            self.complain("twice", f"{what} for the second time")
        client.received.add(message.id)
        row = publication.row
        matching = {one.id: one for one in client.subscriptions.values() if one.matches(row)}
        lasting = {number for number, one in matching.items() if not one.ending}
        named = set(message.subscriptions)
        if not matching or not named:
            self.complain("false positive", f"{what} for {sorted(named)}, of which none matches")
        elif not lasting <= named <= matching.keys() or len(named) != len(message.subscriptions):
            self.complain(
                "wrong names",
                f"{what} for {list(message.subscriptions)}, but {sorted(matching)} match",
            )
        publication.due.pop(name, None)

    def _acknowledged(self, client: SimulatedClient, message: Ack) -> None:
        request = client.pending.get(message.id)
        expected = self._handling
        if expected is not None and expected.is_answered_by(message):
            expected.answered = True
            if expected.answer == REFUSE:
                self.complain("accepted", f"{expected.request} was accepted, but must be refused")
                return
        if request is None or type(request).__name__ != message.what:
            self.complain("unasked", f"{client.name} was sent {message} for nothing")
            return
        del client.pending[message.id]
        if isinstance(request, Publish):
            return
        filters = client.filters_of_kind(request)
        if isinstance(request, Subscribe | Advertise):
            filters[message.id].established = self.step
            self._established(f"{request.sender}/{message.id}")
        else:
            filters.pop(message.id).ended = True

    def _refused(self, client: SimulatedClient, message: Refused) -> None:
        self._counts["refusals"] += 1
        expected = self._handling
        if expected is None or not expected.is_answered_by(message):
            self.complain("unasked", f"{client.name} was sent {message} for nothing")
            return
        request = expected.request
        expected.answered = True
        if expected.answer == ACK:
            self.complain("refused", f"{request} was refused: {message.reason}")
        if expected.answer != REFUSE:
            del client.pending[message.id]
            if expected.waiting is not None:
                client.pending[message.id] = expected.waiting
        if isinstance(request, Publish):
            publication = self._publications.by_key[f"{request.sender}/{request.id}"]
            publication.refused = True
            publication.due.clear()
        elif isinstance(request, Subscribe | Advertise):
            self._undo(client, request, expected)

    @staticmethod
    def _undo(
        client: SimulatedClient, request: Subscribe | Advertise, expected: ExpectedAnswer
    ) -> None:
        """After a refusal the client has what it had before."""
        filters = client.filters_of_kind(request)
        if expected.answer != REFUSE:
            filters.pop(request.id).ended = True
            if expected.replaced is not None:
                filters[request.id] = expected.replaced
        client.wanted.pop(request.id, None)
        if request.id in filters:  # the client keeps what it had
            client.wanted[request.id] = replace(request, filter=filters[request.id].text)

    # --- what a broker does

    def after_step(self, broker: str, message: Message, sends: Sends, router: Any) -> None:
        """A broker has handled a message, and its clients have got what it sent them."""
        self.trusted_links.observe(broker, router, self.step)
        client = self.clients.get(message.sender)
        if client is not None:
            self._check_answer(client, router)
        self._publications.after_step(broker, message, sends, self.step)

    def _check_answer(self, client: SimulatedClient, router: Any) -> None:
        expected, self._handling = self._handling, None
        if expected is None:
            return
        at_once = expected.answer == REFUSE or isinstance(expected.request, Publish)
        if at_once and not expected.answered:
            self.complain("unanswered", f"{expected.request} got no answer at once")
        before = expected.replaced
        if before is not None and before not in client.filters_of_kind(expected.request).values():
            before.ended = True
        if expected.tables is not None and router.tables() != expected.tables:
            self.complain("changed", f"{expected.request} was refused, but changed the tables")

    def crashed(self, broker: str) -> None:
        """A broker has crashed, and its clients have lost what they had there."""
        self.trusted_links.crashed(broker, self.step)
        for client in self.clients.values():
            if client.broker == broker:
                client.leave()

    # --- when nothing happens any more

    def settled(self, routers: dict[str, Any]) -> None:
        """No message is on its way; check everything that must be so then."""
        self._publications.finish()
        tables = {broker: router.tables() for broker, router in routers.items()}
        findings = list(disagreements(self._topology, tables))
        if self._has_advertisements:
            findings += needless_filters(self._topology, tables, self._semantics)
        for finding in findings:
            self.complain(*finding)
        for client in self.clients.values():
            for request in client.pending.values():
                self.complain("unanswered", f"{request} never got an answer")
            client.pending.clear()
        self._outcome.longest_queue = self.trusted_links.longest_queue
        if self.trusted_links.longest_queue > self._queue_limit:
            self.complain(
                "too long", f"{self.trusted_links.longest_queue} packets waited for one neighbour"
            )
        if not self._may_fail and self.trusted_links.changes:
            self.complain("needless failure", "a link failed although no loss lasted for t2")

    def left(self, routers: dict[str, Any]) -> None:
        """All clients have left; check that nothing remains of them."""
        for finding in leftovers({broker: router.tables() for broker, router in routers.items()}):
            self.complain(*finding)
