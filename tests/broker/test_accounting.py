"""Each subscriber gets exactly what a small model says, whatever happens in which order.

The model keeps, for each subscription, its filter, the first event that it has not passed, and what
was sent and not acknowledged. A broker in a folder is driven beside it: it is restarted, and killed
by going on with a copy of the folder.
"""

import asyncio
import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from brokers import Clock, open_broker, settled
from tamis.broker.records import DeliveryOptions, NewEvent

FILTERS = {"price < 5": lambda p: p < 5, "price >= 3": lambda p: p >= 3, "TRUE": lambda _: True}
OPTIONS = DeliveryOptions(window=3, ack_timeout=10.0, most_attempts=3)
NAMES = ("a", "b")


class Model:
    """What each subscription is owed."""

    def __init__(self) -> None:
        self.log: list[int] = []
        self.dead: set[tuple[str, int]] = set()
        self.subscriptions: dict[str, Subscription] = {}


class Subscription:
    """The model: ten lines that say what one subscriber gets."""

    def __init__(self, text: str, position: int) -> None:
        self.text, self.position, self.maybe = text, position, position
        self.sent: dict[int, int] = {}  # offsets that were sent, and how often
        self.again: list[int] = []  # of those, the ones to send again
        self.attached = False

    def take(self, log: list[int], most: int) -> list[tuple[int, int]]:
        """Offsets and attempts: first those that come again, then in the order of the log."""
        taken = []
        while len(taken) < most and len(self.sent) - len(self.again) < OPTIONS.window:
            if self.again:
                offset = self.again.pop(0)
            else:
                self.pass_over(log)
                if self.position == len(log):
                    break
                offset, self.position = self.position, self.position + 1
                self.sent[offset] = int(offset < self.maybe)
            self.sent[offset] = self.sent.pop(offset) + 1
            taken.append((offset, self.sent[offset]))
        return taken

    def pass_over(self, log: list[int]) -> None:
        """Pass what does not match."""
        while self.position < len(log) and not FILTERS[self.text](log[self.position]):
            self.position += 1

    def repeat(self, offsets: list[int]) -> list[int]:
        """Send some again; those that were sent as often as they may be are given up."""
        dead = [n for n in offsets if self.sent[n] >= OPTIONS.most_attempts]
        self.again += [n for n in offsets if n not in dead]
        for n in dead:
            del self.sent[n]
        return dead

    def change(self, text: str, log: list[int]) -> None:
        """Have another filter, for what was not sent and what comes."""
        self.pass_over(log)
        self.text = text
        self.sent = {n: s for n, s in self.sent.items() if FILTERS[text](log[n])}
        self.again = [n for n in self.again if n in self.sent]


names = st.sampled_from(NAMES)
numbers = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.integers(0, 9), min_size=1, max_size=4)),
        st.tuples(st.just("publish"), st.lists(st.integers(0, 9), min_size=1, max_size=4)),
        st.tuples(st.just("take"), names, st.integers(1, 4)),
        st.tuples(st.just("take"), names, st.integers(1, 4)),
        st.tuples(st.just("put"), names, st.sampled_from(list(FILTERS)), st.booleans()),
        st.tuples(st.just("attach"), names),
        st.tuples(st.just("attach"), names),
        st.tuples(st.just("detach"), names),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("ack"), names, numbers),
        st.tuples(st.just("ack_up_to"), names, numbers),
        st.tuples(st.just("nack"), names, numbers),
        st.tuples(st.just("timeout")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("crash"), st.booleans()),
    ),
    max_size=40,
)


class Driver:
    """Does each step with a broker and with the model, and compares."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.model = Model()
        self.attachments = {}
        self.crashes = 0

    async def run(self, steps) -> None:
        """Do all steps, and compare what is left at the end."""
        await self.open()
        await self.broker.create_topic(self.guest, "quotes", "price int")
        for step, *arguments in steps:
            await getattr(self, step)(*arguments)
            await self.settle()
        for name in NAMES:
            await self.attach(name)
            await self.take(name, 1000)
        await self.compare_dead_letters()
        await self.broker.close()

    async def open(self) -> None:
        self.broker = await open_broker(self.folder, self.clock)
        self.guest = self.broker.accounts.guest
        assert not self.broker.damage

    async def settle(self) -> None:
        await settled(self.broker)
        while self.broker._dead_letter_tasks:
            await asyncio.wait(self.broker._dead_letter_tasks)

    async def publish(self, values) -> None:
        events = [NewEvent(b'{"price": %d}' % value) for value in values]
        answer = await self.broker.publish(self.guest, "quotes", events)
        self.model.log += values
        assert answer.offset == len(self.model.log) - 1

    async def put(self, name, text, from_start) -> None:
        known = self.model.subscriptions.get(name)
        start = "earliest" if from_start else "new"
        await self.broker.put_subscription(
            self.guest, "quotes", name, text, start=start, options=OPTIONS
        )
        if known is None:
            position = 0 if from_start else len(self.model.log)
            self.model.subscriptions[name] = Subscription(text, position)
        elif known.attached and text != known.text:
            known.change(text, self.model.log)
        else:
            known.text = text

    async def attach(self, name) -> None:
        known = self.model.subscriptions.get(name)
        if known is None:
            return
        self.attachments[name] = await self.broker.attach(self.guest, "quotes", name)
        log = self.model.log
        sent = sorted(n for n in known.sent if FILTERS[known.text](log[n]))
        known.sent = {n: known.sent[n] for n in sent}
        known.again = []
        self.model.dead |= {(name, n) for n in known.repeat(sent)}
        known.attached = True

    async def detach(self, name) -> None:
        if name in self.attachments:
            await self.attachments.pop(name).close()
            self.forget_connection(self.model.subscriptions[name])

    def forget_connection(self, known) -> None:
        known.pass_over(self.model.log)
        known.again, known.attached = [], False

    async def delete(self, name) -> None:
        if self.model.subscriptions.pop(name, None) is not None:
            await self.broker.delete_subscription(self.guest, "quotes", name)
            self.attachments.pop(name, None)

    async def take(self, name, most) -> None:
        await self.settle()
        if name in self.attachments:
            taken = self.attachments[name].take_nowait(most)
            found = [(one.record.offset, one.attempt) for one in taken]
            assert found == self.model.subscriptions[name].take(self.model.log, most)
            values = [int(one.record.body.split()[1][:-1]) for one in taken]
            assert values == [self.model.log[offset] for offset, _ in found]

    def sent(self, name, number) -> int | None:
        """One of the offsets that a subscriber has and did not acknowledge."""
        known = self.model.subscriptions.get(name)
        if known is None or name not in self.attachments:
            return None
        offsets = [n for n in known.sent if n not in known.again]
        return offsets[number % len(offsets)] if offsets else None

    async def ack(self, name, number) -> None:
        offset = self.sent(name, number)
        if offset is not None:
            self.attachments[name].ack(offset)
            del self.model.subscriptions[name].sent[offset]

    async def ack_up_to(self, name, number) -> None:
        known = self.model.subscriptions.get(name)
        if known is not None and number < len(self.model.log):
            await self.broker.ack(self.guest, "quotes", name, number)
            known.sent = {n: s for n, s in known.sent.items() if n > number}
            known.again = [n for n in known.again if n > number]
            known.position = max(known.position, number + 1)

    async def nack(self, name, number) -> None:
        offset = self.sent(name, number)
        if offset is not None:
            self.attachments[name].nack(offset)
            dead = self.model.subscriptions[name].repeat([offset])
            self.model.dead |= {(name, n) for n in dead}

    async def timeout(self) -> None:
        self.clock.seconds += 11
        await self.broker.tick()
        for name in self.attachments:
            known = self.model.subscriptions[name]
            late = [n for n in known.sent if n not in known.again]
            self.model.dead |= {(name, n) for n in known.repeat(late)}

    async def restart(self) -> None:
        await self.broker.close()
        for name in self.attachments:
            self.forget_connection(self.model.subscriptions[name])
        self.attachments.clear()
        await self.open()

    async def crash(self, tidy) -> None:
        """Die: tidy, when all that happened has been written, or before that."""
        if tidy:
            for attachment in self.attachments.values():
                self.broker._host.commits.store_later(attachment)
            await self.broker._host.commits.flush()
        self.crashes += 1
        copy = self.folder.with_name(f"{self.folder.name}-{self.crashes}")
        shutil.copytree(self.folder, copy)
        await self.broker.close()
        self.folder = copy
        await self.open()
        for name, known in self.model.subscriptions.items():
            found = self.stored(name)
            if tidy or name not in self.attachments:
                known.pass_over(self.model.log)
                assert found.unacknowledged == known.sent
            self.accept(known, found)
            known.again, known.attached = [], False
            if name in self.attachments:
                known.maybe = len(self.model.log)
        self.attachments.clear()

    def stored(self, name):
        number = self.broker._topics.get("quotes").topic.number
        return self.broker._catalogue.subscription(number, "guest", name).progress

    def accept(self, known, found) -> None:
        """Go on with what was stored, which may be less than what happened, but loses nothing."""
        assert found.position <= known.position
        for offset in known.sent:
            assert offset in found.unacknowledged or offset >= found.position
        known.position, known.sent = found.position, dict(sorted(found.unacknowledged.items()))

    async def compare_dead_letters(self) -> None:
        await self.settle()
        topics = [info.name for info in self.broker.topics(self.guest)]
        letters = []
        if "dead.quotes" in topics:
            for record in await self.broker.read(self.guest, "dead.quotes", most=1000):
                headers = json.loads(record.headers)
                letters.append((headers["tamis-subscription"], int(headers["tamis-offset"])))
                body = b'{"price": %d}' % self.model.log[letters[-1][1]]
                assert record.body == body
        assert len(letters) == len(set(letters))
        assert set(letters) == self.model.dead


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_each_subscriber_gets_what_the_model_says(steps):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Driver(Path(folder) / "data").run(steps))
