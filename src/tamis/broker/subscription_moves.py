"""The subscriptions of one topic that move between brokers: what is stored of them at both ends.

At the new broker a subscription begins to hold what comes (`arrive`), gets what it had not got at
the old one (`store`), and then goes on with the log here. At the old one it stops (`depart`), is
read (`part`), and is deleted when the new one has everything. `network/moves.py` carries it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.broker import move_rows
from tamis.broker.catalogue import SubscriptionRow, put_subscription, store_progress
from tamis.broker.delivery.progress import Progress, starting_at
from tamis.broker.log_matcher import LogMatcher
from tamis.broker.move_rows import (
    ASKING,
    DONE,
    STORED,
    Departing,
    MovedRow,
    MoveRow,
    SubscriptionKey,
    forget_moves,
    put_departing,
    put_move,
    put_moved,
)
from tamis.broker.moved_backlog import MovedBacklog, progress_after
from tamis.broker.workers import MATCH
from tamis.errors import Busy, Conflict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.broker.accounts import Account
    from tamis.broker.catalogue import Catalogue
    from tamis.broker.catalogue_change import CatalogueChange
    from tamis.broker.records import DeliveryOptions, Record
    from tamis.broker.subscriptions import Subscriptions
    from tamis.broker.topic import Topic
    from tamis.language.expression import Expression

MOST_EVENTS = 8192  # of the log that are looked at together
MOST_BYTES = 2_000_000


class UnacknowledgedPart(NamedTuple):
    """Some of what a subscription has not acknowledged, in order."""

    events: Sequence[MovedRow]
    after: int  # the offset up to which everything was looked at
    is_last: bool
    expired: int = 0  # events that were removed before


class SubscriptionMoves:
    """The moves of one topic's subscriptions."""

    def __init__(
        self, subscriptions: "Subscriptions", topic: "Topic", catalogue: "Catalogue"
    ) -> None:
        self._subscriptions = subscriptions
        self._topic = topic
        self._tables = catalogue
        self._moving = move_rows.moving(catalogue, topic.number)

    def _key(self, account: str, id_: str) -> SubscriptionKey:
        return SubscriptionKey(self._topic.number, account, id_)

    # --- looking

    def move(self, account: str, id_: str) -> MoveRow | None:
        """How far a subscription has come on its way here, if it came from elsewhere."""
        if (account, id_) not in self._moving:
            return None
        return move_rows.move(self._tables, self._key(account, id_))

    def departing(self, account: str, id_: str) -> Departing | None:
        """Where a subscription goes, if it goes elsewhere."""
        if (account, id_) not in self._moving:
            return None
        return move_rows.departing(self._tables, self._key(account, id_))

    def words(self, account: str, id_: str) -> str:
        """Where a subscription comes from, or goes to; "" if it is here."""
        gone, move = self.departing(account, id_), self.move(account, id_)
        if gone is not None:
            return f"to {gone.target}"
        return f"from {move.origin}" if move is not None and move.state == ASKING else ""

    def check_here(self, account: str, id_: str) -> None:
        """Raise an error if a subscription is on its way."""
        gone, move = self.departing(account, id_), self.move(account, id_)
        if gone is not None:
            raise Conflict(f"subscription {id_!r} moves to broker {gone.target!r}; go there")
        if move is not None and move.state == ASKING:
            raise Busy(
                f"subscription {id_!r} still moves here from broker {move.origin!r}; its events "
                "are kept, try again"
            )

    def backlog(self, account: str, id_: str) -> MovedBacklog | None:
        """What a subscription brought along, if it came from elsewhere."""
        move = self.move(account, id_)
        if move is None:
            return None
        return MovedBacklog(self._tables, move, self._topic.host.network.prefix(self._topic.name))

    def forgetting(self, account: str, id_: str) -> "Iterable[CatalogueChange]":
        """The changes that forget the moves of a subscription that is deleted."""
        if (account, id_) not in self._moving:
            return ()
        return forget_moves(self._key(account, id_))

    def forgot(self, account: str, id_: str) -> None:
        """Note that these changes are committed: if they fail, a move is still under way."""
        self._moving.discard((account, id_))

    # --- at the new broker

    async def arrive(
        self, account: "Account", id_: str, text: str, options: "DeliveryOptions", origin: str
    ) -> MoveRow:
        """Hold what comes for a subscription from now on; it is not delivered yet."""
        topic, key = self._topic, self._key(account.name, id_)
        interest = await self._subscriptions.interest(account, id_, text)
        async with self._subscriptions.alone(account.name, id_):
            known = self.move(account.name, id_)
            if known is not None and known.origin == origin:
                return known
            if self._tables.subscription(*key) is not None:
                raise Conflict(f"there is a subscription {id_!r} here already; delete it first")
            resume = topic.dispatched  # what is not handed out yet comes from the log here
            row = SubscriptionRow(*key, text, options, starting_at(resume))
            move = MoveRow(*key, origin, resume=resume)
            account.usage.subscribe()
            try:
                await topic.host.commits.commit(put_subscription(row), put_move(move))
            except Busy:
                account.usage.unsubscribe()
                raise
            self._moving.add((account.name, id_))
            await self._subscriptions.want(account.name, id_, interest)
        return move

    async def store(self, move: MoveRow, part: UnacknowledgedPart) -> MoveRow:
        """Store a part of what a subscription has not got; with the last one it is here."""
        events = move.events + len(part.events)
        new = move._replace(after=part.after, events=events)
        changes = [
            put_moved(move.key, move.events + n, event) for n, event in enumerate(part.events)
        ]
        row = self._tables.subscription(*move.key) if part.expired else None
        if row is not None:
            changes.append(store_progress(row._replace(expired=row.expired + part.expired)))
        await self._topic.host.commits.commit(*changes, put_move(new))
        return await self.finish(new) if part.is_last else new

    async def finish(self, move: MoveRow, problem: str = "") -> MoveRow:
        """Deliver from now on: what came with a subscription, then what the log has."""
        new = move._replace(state=DONE if problem else STORED, problem=problem)
        async with self._subscriptions.alone(move.account, move.id):
            row = self._tables.subscription(*move.key)
            if row is None:  # it was deleted meanwhile
                return new._replace(state=DONE)
            progress = progress_after(self._tables, move.key, move.events, move.resume)
            row = row._replace(progress=progress)
            await self._topic.host.commits.commit(store_progress(row), put_move(new))
        return new

    async def done(self, move: MoveRow) -> MoveRow:
        """Note that the old broker has forgotten the subscription."""
        new = move._replace(state=DONE)
        if self.move(move.account, move.id) is not None:
            await self._topic.host.commits.commit(put_move(new))
        return new

    # --- at the old broker

    async def depart(self, account: "Account", id_: str, target: str) -> Departing:
        """Stop delivering a subscription: it goes elsewhere."""
        topic, key = self._topic, self._key(account.name, id_)
        async with self._subscriptions.alone(account.name, id_):
            row = self._subscriptions.row(account.name, id_)
            known = self.departing(account.name, id_)
            if known is not None and known.target == target:
                return known
            self.check_here(account.name, id_)
            move = self.move(account.name, id_)
            if move is not None and move.state == STORED:
                # Else the broker it came from would have it for ever.
                raise Busy(f"broker {move.origin!r} does not know yet that {id_!r} is here")
            if not self._subscriptions.is_durable(row):
                raise Conflict(f"subscription {id_!r} is not durable, and only durable ones move")
            one = topic.attached(account.name, id_)
            if one is not None:
                row = one.row(attached=False)
                topic.remove(one, f"the subscription moves to broker {target!r}")
            gone = Departing(*key, target, topic.dispatched)
            await topic.host.commits.commit(store_progress(row), put_departing(gone))
            self._moving.add((account.name, id_))
            return gone

    async def part(self, account: "Account", id_: str, after: int | None) -> UnacknowledgedPart:
        """What follows after an offset of that which a departing subscription has not got."""
        gone = self.departing(account.name, id_)
        row = self._subscriptions.row(account.name, id_)
        if gone is None:
            raise Conflict(f"subscription {id_!r} does not move")
        start = row.progress.cursor if after is None else after + 1
        moved = self.backlog(account.name, id_)
        interest = await self._subscriptions.interest(account, id_, row.filter)
        if moved is not None and start < moved.resume:
            return self._moved_part(row, gone, moved, start, interest.filter)
        first = self._topic.log.first_offset
        expired = max(0, first - start)
        start = max(start, first)
        if start >= gone.stop:
            return UnacknowledgedPart((), gone.stop - 1, True, expired)
        found = await self._topic.host.workers.run(
            MATCH, self._find, start, gone.stop, interest.filter
        )
        records, stop = found
        if moved is not None:
            records = [one for one in records if moved.is_new(one)]
        events = self._events(records, row.progress)
        return UnacknowledgedPart(events, stop - 1, stop >= gone.stop, expired)

    def _moved_part(
        self, row: SubscriptionRow, gone: Departing, moved: MovedBacklog, start: int,
        expression: "Expression",
    ) -> UnacknowledgedPart:  # fmt: skip
        if start >= 0:
            return UnacknowledgedPart((), moved.resume - 1, moved.resume >= gone.stop)
        found = moved.read(start)
        holds = self._topic.condition(expression)
        records = [record for record in found.records if holds(record)]
        is_last = found.stop >= gone.stop
        return UnacknowledgedPart(
            self._events(records, row.progress), found.stop - 1, is_last, found.lost
        )

    def _events(self, records: "list[Record]", progress: Progress) -> list[MovedRow]:
        """Those of matching records that are not acknowledged."""
        prefix = self._topic.host.network.prefix(self._topic.name)
        position, maybe_sent, unacknowledged = progress
        return [
            MovedRow(
                one.time, one.id or f"{prefix}{one.offset}", one.headers, one.body,
                unacknowledged.get(one.offset, 0), position <= one.offset < maybe_sent,
            )
            for one in records
            if one.offset >= position or one.offset in unacknowledged
        ]  # fmt: skip

    def _find(self, start: int, stop: int, expression: "Expression") -> "tuple[list[Record], int]":
        """In a thread: what matches in a part of the log, and where it ends."""
        chunk = self._topic.log.read(start, min(stop - start, MOST_EVENTS), MOST_BYTES)
        end = max(start + 1, min(stop, chunk.next_offset))
        count = int(np.searchsorted(chunk.offsets, end))
        if not count:
            return [], end
        matcher = LogMatcher(self._topic.new_matcher)
        matcher.subscribe(0, expression)
        return chunk.take(matcher.match(chunk, count).events.tolist()), end
