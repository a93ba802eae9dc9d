"""A broker and publishers that quench, played at random against an oracle.

Time stands still between steps. Requests of publishers arrive late, and answers late or never; the
broker is stopped and started again. The oracle: an event that matches a subscription which was
acknowledged before it was published is never dropped.
"""

import asyncio
import json
import random

import tamis
from brokers import QUOTES, Clock, open_broker
from tamis.broker.schema_text import schema_of
from tamis.client.quench_filter import QuenchFilter
from tamis.errors import TamisError

FILTERS = ["price < 1", "price < 5", "price > 8", "price = 3 AND symbol = 'A'", "symbol = 'B'",
           "price BETWEEN 2 AND 4", "symbol IS NULL", "symbol LIKE 'C%'"]  # fmt: skip
EVENTS = [{"symbol": s, "price": p} for s in ("A", "B", "Cx", None) for p in (0.5, 3.0, 6.0, 9.0)]

MATCHER = tamis.Matcher(schema_of(QUOTES))
CONDITIONS = {
    text: MATCHER.meaning.condition(tamis.parse(text, MATCHER.schema)) for text in FILTERS
}


class PlayedPublisher:
    """A publisher whose requests and answers are on their way for as long as the run likes."""

    def __init__(self, name):
        self.name = name
        self.known = QuenchFilter()
        self.asked = None  # version and moment of a request on its way
        self.answer = None  # and the answer, on its way back


class QuenchedRun:
    """One run."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)  # noqa: S311 - not for secrets
        self.folder = folder
        self.clock = Clock()
        self.publishers = [PlayedPublisher(f"p{n}") for n in range(2)]
        self.texts = {}  # of subscriptions that were asked for, by id
        self.tasks = {}
        self.acknowledged = {}
        self.dropped = self.waited = 0

    async def play(self, steps):
        await self.start()
        steps_of = [self.ask, self.arrive, self.deliver, *[self.exchange] * 4, self.subscribe,
                    self.unsubscribe, self.wait, self.refresh]  # fmt: skip
        for _ in range(steps):
            step = self.restart if self.random.random() < 0.03 else self.random.choice(steps_of)
            await step()
            await asyncio.sleep(0)
            self.note()
            self.publish()
        await self.stop()

    async def start(self):
        self.broker = await open_broker(self.folder, self.clock)
        self.guest = self.broker.accounts.guest
        await self.broker.create_topic(self.guest, "quotes", QUOTES)

    async def stop(self):
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        self.note()
        self.tasks.clear()
        await self.broker.close()

    async def restart(self):
        await self.stop()
        await self.start()

    # --- publishers

    async def ask(self):
        one = self.random.choice(self.publishers)
        one.asked, one.answer = (one.known.version, self.clock()), None

    async def arrive(self):
        one = self.random.choice(self.publishers)
        if one.asked is not None:
            await self._arrive(one)

    async def _arrive(self, one):
        answer = await self.broker.quench(self.guest, "quotes", one.name, one.asked[0], 0)
        one.answer = answer._asdict() | {"schema": dict(answer.schema)}, one.asked[1]
        one.asked = None

    async def deliver(self):
        one = self.random.choice(self.publishers)
        if one.answer is not None:
            if self.random.random() < 0.9:
                one.known.answered(*one.answer)
            one.answer = None

    async def exchange(self):
        """A request and its answer, without any delay."""
        one = self.random.choice(self.publishers)
        for _ in range(2):
            one.asked = one.known.version, self.clock()
            await self._arrive(one)
            one.known.answered(*one.answer)
        one.answer = None

    # --- subscribers

    async def subscribe(self):
        id_, text = self.random.choice("abcd"), self.random.choice(FILTERS)
        if id_ in self.tasks:
            return
        self.acknowledged.pop(id_, None)
        self.texts[id_] = text
        work = self.broker.put_subscription(self.guest, "quotes", id_, text)
        self.tasks[id_] = asyncio.create_task(work)
        await asyncio.wait([self.tasks[id_]], timeout=0.005)
        self.waited += not self.tasks[id_].done()

    async def unsubscribe(self):
        id_ = self.random.choice("abcd")
        if id_ not in self.tasks and self.acknowledged.pop(id_, None):
            await self.broker.delete_subscription(self.guest, "quotes", id_)

    def note(self):
        for id_ in [id_ for id_, task in self.tasks.items() if task.done()]:
            task = self.tasks.pop(id_)
            if not task.cancelled() and task.exception() is None:
                self.acknowledged[id_] = self.texts[id_]

    # --- time

    async def wait(self):
        self.clock.seconds += self.random.choice([0.3, 1.0, 3.0])
        for one in self.broker._host.quenching._quenched.values():
            one.wake_waiters()
        await asyncio.sleep(0.002)

    async def refresh(self):
        quenching = self.broker._host.quenching
        for one in quenching._quenched.values():
            one.is_dirty = True
            quenching._refresh_now(one)
            if one.refreshing is not None:
                await one.refreshing

    # --- the oracle

    def publish(self):
        event = self.random.choice(EVENTS)
        body = json.dumps({n: v for n, v in event.items() if v is not None}).encode()
        wanting = self.matching(body)
        for one in self.publishers:
            if not one.known.wants([body], self.clock())[0]:
                self.dropped += 1
                if wanting:
                    raise Dropped(f"{event} was dropped by {one.name}, and {wanting} want it")

    def matching(self, body):
        row = MATCHER.reader.row(body)
        return [id_ for id_, text in self.acknowledged.items() if CONDITIONS[text](row)]


class Dropped(AssertionError):
    """The promise is broken."""


def play(folder, seed, steps=80):
    """Play one run; returns it, for its counts."""
    run = QuenchedRun(folder / str(seed), seed)
    asyncio.run(run.play(steps))
    return run


def is_caught(folder, seeds, steps=80):
    """Whether one of some seeds breaks the promise."""
    for seed in seeds:
        try:
            play(folder, seed, steps)
        except Dropped:
            return True
        except TamisError:
            raise
    return False
