"""Durable subscriptions that move to another broker, and lose nothing on the way.

::

    new broker                    brokers between             old broker
    look   ------------------------------------------------>  filter and options
    (holds what comes, established)
    begin  --> each passes it on when the next one has -----> stops delivering, notes where
               all that was stored before, and the filter     its log ends
    more   ------------------------------------------------>  what is not acknowledged, in parts
    (everything is stored, and delivered from now on)
    done   ------------------------------------------------>  deletes it

Rules (docs/decisions/0026):

1. The new broker holds before the old one stops: an event comes to at least one of them. What comes
   to both is known by its id.
2. "begin" does not overtake events. An event that passed a broker before the new filter was there
   is on its way to the old broker; when "begin" comes there, the event has come, too.
3. Every step is in a catalogue before the next one begins, and can be asked for again. Whoever asks
   does so until there is an answer.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tamis.broker.move_rows import DONE, STORED, MovedRow, MoveRow, moves_under_way
from tamis.broker.network.messages import Move, Moved, MovedEvent
from tamis.broker.records import DeliveryOptions
from tamis.broker.subscription_moves import UnacknowledgedPart
from tamis.errors import Busy, Conflict, OptionError, TamisError, UnknownSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.broker.accounts import Account
    from tamis.broker.network.network import Network
    from tamis.broker.peer_rows import RowSource
    from tamis.broker.topics import OpenTopic, Topics

LOOK, BEGIN, MORE, END = "look", "begin", "more", "done"
ANSWER = 5.0  # seconds that an answer is waited for
PAUSE = 0.5  # seconds until it is asked for again
GLANCE = 0.02  # seconds between looks whether events have passed

logger = logging.getLogger("tamis.broker")


class Name(NamedTuple):
    """Which subscription, as all brokers know it."""

    topic: str
    account: str
    id: str


class Moves:
    """The moves of one broker, in both directions, and those that it passes on."""

    def __init__(self, network: "Network", tables: "RowSource") -> None:
        self._network = network
        self._tables = tables
        self._topics: Topics
        self._accounts: Iterable[Account] = ()  # those of now, whenever it is asked
        self._answers: dict[Name, tuple[Move, asyncio.Future[Moved]]] = {}
        self._running: dict[Name, asyncio.Task[None]] = {}
        self._busy: set[tuple[str, Name]] = set()  # what is being answered or passed on
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, topics: "Topics", accounts: "Iterable[Account]") -> None:
        """Go on with what was under way."""
        self._topics = topics
        self._accounts = accounts
        by_number = {found.topic.number: found for found in topics}
        for move in moves_under_way(self._tables):
            if move.topic in by_number:
                self._run_soon(by_number[move.topic], move)

    async def stop(self) -> None:
        """Stop; what is under way goes on with the next start."""
        tasks = [*self._tasks, *self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- at the new broker

    async def fetch(
        self, account: "Account", found: "OpenTopic", id_: str, origin: str, *,
        text: str | None, options: DeliveryOptions | None, wait: float,
    ) -> MoveRow:  # fmt: skip
        """Fetch a subscription from another broker; returns how far it is after `wait` seconds."""
        name = Name(found.topic.name, account.name, id_)
        if origin == self._network.name:
            raise OptionError(f"this is broker {origin!r}: a subscription moves from another one")
        move = found.subscriptions.moves.move(account.name, id_)
        if move is None or move.origin != origin:
            text, options = await self._described(name, origin, text, options, wait)
            move = await found.subscriptions.moves.arrive(account, id_, text, options, origin)
        if move.state != DONE and name not in self._running:
            self._run_soon(found, move)
        running = self._running.get(name)
        if running is not None:
            await asyncio.wait([running], timeout=wait)
        move = found.subscriptions.moves.move(account.name, id_)
        if move is None:
            raise UnknownSubscription(f"subscription {id_!r} was deleted while it moved")
        return move

    async def _described(
        self, name: Name, origin: str, text: str | None, options: DeliveryOptions | None,
        wait: float,
    ) -> tuple[str, DeliveryOptions]:  # fmt: skip
        """Filter and options: what is asked for, or those of the old broker."""
        answer = await self._ask(origin, name, LOOK, 0, wait if text is None else min(wait, 2.0))
        if answer is not None and answer.problem:
            raise Conflict(f"broker {origin!r} says: {answer.problem}")
        if answer is None:
            if text is None:
                raise Busy(
                    f"broker {origin!r} cannot be reached now; with a filter, a subscription that "
                    "moves from there begins without it"
                )
            return text, options or DeliveryOptions()
        known = msgspec.convert(answer.options, DeliveryOptions)
        return answer.filter if text is None else text, options or known

    def _run_soon(self, found: "OpenTopic", move: MoveRow) -> None:
        name = Name(found.topic.name, move.account, move.id)
        task = asyncio.create_task(self._run(found, move), name=f"tamis moves {move.id}")
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name, None))

    async def _run(self, found: "OpenTopic", move: MoveRow) -> None:
        while move.state != DONE:
            if found.subscriptions.moves.move(move.account, move.id) is None:
                return  # it was deleted
            try:
                move, is_on = await self._step(found, move)
            except Busy as error:
                logger.warning("subscription %r has to wait on its way: %s", move.id, error)
                is_on = False
            if not is_on:
                await asyncio.sleep(PAUSE)

    async def _step(self, found: "OpenTopic", move: MoveRow) -> tuple[MoveRow, bool]:
        """Take the next step; returns how far the move is then, and whether the step was taken."""
        moves = found.subscriptions.moves
        name = Name(found.topic.name, move.account, move.id)
        after = 0 if move.after is None else move.after
        step = BEGIN if move.after is None else MORE
        answer = await self._ask(move.origin, name, END if move.state == STORED else step, after)
        if answer is None:
            return move, False
        if move.state == STORED:
            logger.info("subscription %r has come from broker %r", move.id, move.origin)
            return await moves.done(move), True
        if answer.problem:
            logger.error(
                "subscription %r does not come from broker %r: %s; it goes on with what is here",
                move.id, move.origin, answer.problem,
            )  # fmt: skip
            return await moves.finish(move, answer.problem), True
        events = [MovedRow(*event) for event in answer.events]
        return await moves.store(
            move, UnacknowledgedPart(events, answer.after, answer.is_last, answer.expired)
        ), True

    async def _ask(
        self, origin: str, name: Name, step: str, after: int, wait: float | None = None
    ) -> Moved | None:
        """The answer of another broker, None if it does not come."""
        asked = Move(origin, self._network.name, *name, step, after)
        future: asyncio.Future[Moved] = asyncio.get_running_loop().create_future()
        self._answers[name] = asked, future
        try:
            if not self.take(asked):
                return None
            async with asyncio.timeout(ANSWER if wait is None else wait):
                return await future
        except TimeoutError:
            return None
        finally:
            if self._answers.get(name, (None,))[0] is asked:
                del self._answers[name]

    # --- messages

    def take(self, message: Move | Moved) -> bool:
        """Do what a message says, or pass it on; returns whether there is a way."""
        if message.target != self._network.name:
            return self._pass_on(message)
        name = Name(message.topic, message.account, message.id)
        if isinstance(message, Moved):
            asked, future = self._answers.get(name, (None, None))
            if asked is not None and future is not None and not future.done():
                is_answer = (asked.target, asked.step, asked.after) == (
                    message.sender, message.step, message.asked,
                )  # fmt: skip
                if is_answer:
                    future.set_result(message)
        else:
            self._once((message.sender, name), self._answer(message, name))
        return True

    def _pass_on(self, message: Move | Moved) -> bool:
        link = self._network.towards(message.target)
        if link is None:
            return False
        if isinstance(message, Move) and message.step == BEGIN:
            name = Name(message.topic, message.account, message.id)
            self._once((message.sender, name), self._follow_events(message, link.peer))
        else:
            link.send(message)
        return True

    def _once(self, key: tuple[str, Name], work: Coroutine[Any, Any, None]) -> None:
        """Do something, unless it is being done for the same request."""
        if key in self._busy:
            work.close()
            return
        self._busy.add(key)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._busy.discard(key))

    async def _follow_events(self, message: Move, peer: str) -> None:
        """Pass a request on after all events that were stored here before it came."""
        has_passed = self._network.passed_check(message.topic, peer)
        until = asyncio.get_running_loop().time() + ANSWER
        while not has_passed():
            if asyncio.get_running_loop().time() > until:
                return  # it is asked for again
            await asyncio.sleep(GLANCE)
        link = self._network.towards(message.target)
        if link is not None and link.peer == peer:
            link.send(message)

    # --- at the old broker

    async def _answer(self, move: Move, name: Name) -> None:
        try:
            fields = await self._answer_fields(move, name)
        except Busy as error:
            logger.warning("subscription %r cannot move yet: %s", move.id, error)
            return
        except TamisError as error:
            fields = {"problem": str(error)}
        here = self._network.name
        self.take(Moved(move.sender, here, *name, move.step, move.after, **fields))

    async def _answer_fields(self, move: Move, name: Name) -> Mapping[str, Any]:
        found = self._topics.get(name.topic)
        account = next((one for one in self._accounts if one.name == name.account), None)
        if found is None or account is None:
            what = f"topic {name.topic!r}" if found is None else f"account {name.account!r}"
            raise Conflict(f"there is no {what} here")
        moves = found.subscriptions.moves
        if move.step == END:
            gone = moves.departing(name.account, name.id)
            if gone is not None and gone.target == move.sender:
                await found.subscriptions.delete(account, name.id)
            return {}
        row = found.subscriptions.row(name.account, name.id)
        await found.subscriptions.interest(account, name.id, row.filter)  # it may receive it
        if move.step == LOOK:
            return {"filter": row.filter, "options": msgspec.to_builtins(row.options)}
        if move.step == BEGIN:
            await moves.depart(account, name.id, move.sender)
        part = await moves.part(account, name.id, None if move.step == BEGIN else move.after)
        events = [MovedEvent(*event) for event in part.events]
        return {
            "after": part.after, "is_last": part.is_last, "events": events,
            "expired": part.expired,
        }  # fmt: skip
