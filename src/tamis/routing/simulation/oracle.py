"""The oracle: knows what every client must get, and complains about everything else.

It sees all that clients say and hear and what each router makes of it, and evaluates filters one by
one. Its rules:

1. A client gets a publication at most once, and only if one of its subscriptions matches; the
   subscriptions that match are named exactly.
2. A publication under an established advertisement (if the strategy has advertisements) reaches
   every client with an established subscription that matches. Where it stops on its way, the edge
   ahead, or one on the way, was not trusted (`trust`): such a loss is *excused* and counted. One
   whose subscription ended on the way is *waived*.
3. A request is answered: by Refused at once if it cannot be, and then nothing has changed; else by
   one Ack.
4. When the network is settled, no request is open, neighbours agree on what one has told the
   other, and with advertisements no subscription is held where nothing of the kind is published.
   When everybody has left, all tables are empty.
5. Queues stay within their limit. Where nothing is lost for t2, no link ever fails.
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
from tamis.routing.simulation.clients import Member, Request, Standing
from tamis.routing.simulation.filters import NEVER, condition, row_of, some_event_matches
from tamis.routing.simulation.journeys import Journeys, Publication
from tamis.routing.simulation.outcome import Outcome, Violation
from tamis.routing.simulation.scenario import Scenario
from tamis.routing.simulation.table_checks import differences, needless, remains
from tamis.routing.simulation.topology import Topology
from tamis.routing.simulation.trusted_links import Trust

ACK, REFUSE, EITHER = "an Ack", "Refused", "an answer"


@dataclass(slots=True, eq=False)
class Question:
    """A request that a broker is handling, and what has to come of it."""

    request: Request
    expected: str = ACK
    answered: bool = False
    replaced: Standing | None = None  # what had the id before
    waiting: Request | None = None  # an earlier request of the id without an answer
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
        self.members = {client.name: Member(client) for client in scenario.clients}
        self.trust = Trust(topology)
        self.now = 0.0
        self.step = 0
        self._outcome = outcome
        self._established = established  # is told of each Ack of a subscription or advertisement
        self._counts = outcome.counts
        self._topology = topology
        self._semantics = scenario.semantics
        self._most_waiting = scenario.waiting
        self._may_fail = scenario.faulty == "crashing"
        self._advertised = scenario.strategy.startswith("advertisements")
        self._journeys = Journeys(
            topology, self.trust, outcome.counts, self.complain, may_fail=self._may_fail
        )
        self._question: Question | None = None

    def complain(self, kind: str, explanation: str) -> None:
        self._outcome.violations.append(Violation(self.now, kind, explanation))

    # --- what a client says

    def asked(self, member: Member, message: Message, router: Any) -> None:
        """A broker is about to handle a client's message."""
        self._question = None
        if isinstance(message, Connect | Disconnect):
            member.leave()
            return
        if not isinstance(message, Request):
            raise TypeError(f"a client does not send {message}")
        question = Question(message)
        if isinstance(message, Publish):
            question.expected = self._publish(member, message)
        elif isinstance(message, Subscribe | Advertise):
            self._begin(member, message, question)
        else:
            self._end(member, message, question)
        if question.expected == REFUSE:
            question.tables = router.tables()
        else:
            question.waiting = member.pending.get(message.id)
            member.pending[message.id] = message
        self._counts["requests"] += 1
        self._question = question

    def _begin(self, member: Member, message: Subscribe | Advertise, question: Question) -> None:
        matches = condition(message.filter, self._semantics)
        if matches is None or message.filter in NEVER:
            question.expected = REFUSE
            return
        standings = member.standings(message)
        question.replaced = standings.get(message.id)
        standings[message.id] = Standing(message.id, message.filter, matches)
        if not some_event_matches(message.filter, self._semantics):
            question.expected = EITHER

    @staticmethod
    def _end(member: Member, message: Unsubscribe | Unadvertise, question: Question) -> None:
        standing = member.standings(message).get(message.id)
        if standing is None or standing.ending:
            question.expected = REFUSE
        else:
            standing.ending = True

    def _publish(self, member: Member, message: Publish) -> str:
        row = row_of(message.event, self._semantics)
        key = f"{message.sender}/{message.id}"
        publication = Publication(key, message.event, row, self.step + 1)
        self._journeys.known[key] = publication
        if row is None:
            return REFUSE
        under = [one for one in member.advertisements.values() if one.matches(row)]
        if self._advertised and not under:
            return REFUSE
        established = [one for one in under if one.established is not None and not one.ending]
        if established or not self._advertised:
            source = member.client.broker
            self._journeys.owe(publication, row, source, self.members.values())
        return ACK if not self._advertised or any(not one.ending for one in under) else EITHER

    # --- what a client hears

    def told(self, member: Member, message: Message) -> None:
        """A client gets a message from its broker."""
        if isinstance(message, Deliver):
            self._delivered(member, message)
        elif isinstance(message, Ack):
            self._acknowledged(member, message)
        elif isinstance(message, Refused):
            self._refused(member, message)
        else:
            self.complain("misaddressed", f"{member.client.name} was sent {message}")

    def _delivered(self, member: Member, message: Deliver) -> None:
        name = member.client.name
        publication = self._journeys.known.get(message.id)
        what = f"{name} got {message.id} {message.event}"
        if publication is None or publication.row is None or publication.refused:
            self.complain("invented", f"{what}, which was never published")
            return
        self._counts["deliveries"] += 1
        if message.event != publication.event:
            self.complain("altered", f"{what}, which was published as {publication.event}")
        if message.id in member.got:
            self.complain("twice", f"{what} for the second time")
        member.got.add(message.id)
        row = publication.row
        matching = {one.id: one for one in member.subscriptions.values() if one.matches(row)}
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

    def _acknowledged(self, member: Member, message: Ack) -> None:
        request = member.pending.get(message.id)
        question = self._question
        if question is not None and question.is_answered_by(message):
            question.answered = True
            if question.expected == REFUSE:
                self.complain("accepted", f"{question.request} was accepted, but it cannot be")
                return
        if request is None or type(request).__name__ != message.what:
            self.complain("unasked", f"{member.client.name} was sent {message} for nothing")
            return
        del member.pending[message.id]
        if isinstance(request, Publish):
            return
        standings = member.standings(request)
        if isinstance(request, Subscribe | Advertise):
            standings[message.id].established = self.step
            self._established(f"{request.sender}/{message.id}")
        else:
            standings.pop(message.id).ended = True

    def _refused(self, member: Member, message: Refused) -> None:
        self._counts["refusals"] += 1
        question = self._question
        if question is None or not question.is_answered_by(message):
            self.complain("unasked", f"{member.client.name} was sent {message} for nothing")
            return
        request = question.request
        question.answered = True
        if question.expected == ACK:
            self.complain("refused", f"{request} was refused: {message.reason}")
        if question.expected != REFUSE:
            del member.pending[message.id]
            if question.waiting is not None:
                member.pending[message.id] = question.waiting
        if isinstance(request, Publish):
            publication = self._journeys.known[f"{request.sender}/{request.id}"]
            publication.refused = True
            publication.due.clear()
        elif isinstance(request, Subscribe | Advertise):
            self._undo(member, request, question)

    @staticmethod
    def _undo(member: Member, request: Subscribe | Advertise, question: Question) -> None:
        """What was there before a request that was refused is still there."""
        standings = member.standings(request)
        if question.expected != REFUSE:
            standings.pop(request.id).ended = True
            if question.replaced is not None:
                standings[request.id] = question.replaced
        member.wanted.pop(request.id, None)
        if request.id in standings:  # the client keeps what it had
            member.wanted[request.id] = replace(request, filter=standings[request.id].text)

    # --- what a broker does

    def handled(self, broker: str, message: Message, sends: Sends, router: Any) -> None:
        """A broker has handled a message, and clients have heard their part of the answer."""
        self.trust.look(broker, router, self.step)
        member = self.members.get(message.sender)
        if member is not None:
            self._check_answer(member, router)
        self._journeys.handled(broker, message, sends, self.step)

    def _check_answer(self, member: Member, router: Any) -> None:
        question, self._question = self._question, None
        if question is None:
            return
        at_once = question.expected == REFUSE or isinstance(question.request, Publish)
        if at_once and not question.answered:
            self.complain("unanswered", f"{question.request} got no answer at once")
        before = question.replaced
        if before is not None and before not in member.standings(question.request).values():
            before.ended = True
        if question.tables is not None and router.tables() != question.tables:
            self.complain("changed", f"{question.request} was refused, but changed the tables")

    def crashed(self, broker: str) -> None:
        """A broker has died, and with it what its clients had there."""
        self.trust.died(broker, self.step)
        for member in self.members.values():
            if member.client.broker == broker:
                member.leave()

    # --- when nothing happens any more

    def settled(self, routers: dict[str, Any]) -> None:
        """Nothing is on its way."""
        self._journeys.finish()
        tables = {broker: router.tables() for broker, router in routers.items()}
        findings = list(differences(self._topology, tables))
        if self._advertised:
            findings += needless(self._topology, tables, self._semantics)
        for finding in findings:
            self.complain(*finding)
        for member in self.members.values():
            for request in member.pending.values():
                self.complain("unanswered", f"{request} never got an answer")
            member.pending.clear()
        self._outcome.longest = self.trust.longest
        if self.trust.longest > self._most_waiting:
            self.complain("too long", f"{self.trust.longest} packets waited for one neighbour")
        if not self._may_fail and self.trust.changes:
            self.complain("needless failure", "a link failed although nothing was lost for t2")

    def left(self, routers: dict[str, Any]) -> None:
        """Everybody has left."""
        for finding in remains({broker: router.tables() for broker, router in routers.items()}):
            self.complain(*finding)
