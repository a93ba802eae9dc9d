"""A subscriber that moves between brokers while they are killed, and what it got.

Brokers are processes in a line. Publishers at two of them send numbered events, each until it is
acknowledged; a durable subscriber moves from broker to broker, takes some, acknowledges some, and
moves on. At the end it has got every acknowledged event, and those of each publisher in their
order, redeliveries aside.

By hand: ``python tests/moving_subscriber.py --seconds 120 --seed 7``.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
from pathlib import Path

import tamis.aio
from broker_process import BrokerProcess, quiet_ports
from tamis.errors import TamisError

TOPIC, NAME = "quotes", "wanderer"
WINDOW = 40


class MovingTrial:
    """One trial."""

    def __init__(self, folder: Path, seed: int, brokers: int = 3) -> None:
        self.random = random.Random(seed)  # noqa: S311 - not for secrets
        ports = quiet_ports(2 * brokers)
        self.names = [f"b{n}" for n in range(brokers)]
        self.brokers = {}
        for n, name in enumerate(self.names):
            more = ["--name", name, "--listen", f"127.0.0.1:{ports[n]}"]
            if n:
                more += ["--peer", f"{self.names[n - 1]}=127.0.0.1:{ports[n - 1]}"]
            made = BrokerProcess(folder / name, *more, http=ports[brokers + n])
            self.brokers[name] = made
        self.acknowledged: dict[str, int] = {}  # events of each publisher
        self.got: dict[str, list[int]] = {}
        self.moves = self.kills = self.again = 0
        self.is_last = False  # nothing more is published
        self.is_over = False

    async def run(self, seconds: float) -> None:
        for one in self.brokers.values():
            one.spawn()
        for one in self.brokers.values():
            await asyncio.to_thread(one.wait)
        try:
            async with tamis.aio.connect(self.brokers["b0"].url) as broker:
                await broker.topics.create(TOPIC, {"publisher": "string", "number": "int"})
                await self.known_everywhere()
                # A small window: what is sent and never looked at becomes a dead letter one day.
                await (
                    await broker.subscribe(TOPIC, "number >= 0", durable=NAME, window=WINDOW)
                ).close()
            async with asyncio.TaskGroup() as group:
                ends = self.names[0], self.names[-1]
                publishing = [group.create_task(self.publish(name)) for name in ends]
                group.create_task(self.wander())
                await self.disturb(seconds)
                self.is_last = True
                await asyncio.wait(publishing)  # the last events may be acknowledged only now
                self.is_over = True
        finally:
            for one in self.brokers.values():
                await asyncio.to_thread(one.kill)

    async def known_everywhere(self) -> None:
        for one in self.brokers.values():
            async with tamis.aio.connect(one.url) as broker:
                while TOPIC not in [topic["name"] for topic in await broker.topics()]:  # noqa: ASYNC110 - nobody is there to tell
                    await asyncio.sleep(0.05)

    async def disturb(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while loop.time() < until:
            await asyncio.sleep(self.random.uniform(0.2, 1.0))
            victim = self.brokers[self.random.choice(self.names)]
            await asyncio.to_thread(victim.kill)
            self.kills += 1
            await asyncio.sleep(self.random.uniform(0.0, 0.5))
            await asyncio.to_thread(victim.start)

    async def publish(self, name: str) -> None:
        number = 0
        while not self.is_last:
            with contextlib.suppress(TamisError):
                async with tamis.aio.connect(self.brokers[name].url, patience=60) as broker:
                    while not self.is_last:
                        events = [{"publisher": name, "number": number + n} for n in range(5)]
                        ids = [f"{name}-{number + n}" for n in range(5)]
                        await broker.publish_many(TOPIC, events, ids)
                        number += 5
                        self.acknowledged[name] = number
                        await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)

    def is_complete(self) -> bool:
        # What was stored and not acknowledged comes as well: counting events would not do.
        return self.is_over and all(
            set(self.got.get(name, ())).issuperset(range(count))
            for name, count in self.acknowledged.items()
        )

    async def wander(self) -> None:
        here, before, is_there = self.names[0], "", False
        while not self.is_complete():
            if is_there and self.random.random() < 0.6:
                there = self.random.choice([name for name in self.names if name != here])
                here, before, is_there = there, here, False
            try:
                async with tamis.aio.connect(self.brokers[here].url, patience=60) as broker:
                    if not is_there and before:
                        opening = broker.subscribe(
                            TOPIC, "number >= 0", durable=NAME, move_from=before,
                            manual_ack=True, window=WINDOW,
                        )  # fmt: skip
                    else:
                        opening = broker.subscribe(TOPIC, durable=NAME, manual_ack=True)
                    async with opening as deliveries:
                        self.moves += not is_there
                        is_there = True
                        await self.receive(deliveries)
            except TamisError:  # a broker was killed; the same is tried again
                self.again += 1
                await asyncio.sleep(0.1)

    async def receive(self, deliveries) -> None:
        for _ in range(self.random.randrange(2, 12)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    taken = await deliveries.take(self.random.randrange(1, WINDOW))
                    for one in taken:
                        event = one.event
                        self.got.setdefault(event["publisher"], []).append(event["number"])
                    await self.random.choice(taken[len(taken) // 2 :]).ack()

    def problems(self) -> list[str]:
        """What is wrong."""
        found = [death for one in self.brokers.values() for death in one.deaths]
        for name, count in self.acknowledged.items():
            got = self.got.get(name, [])
            missing = set(range(count)) - set(got)
            if missing:
                found.append(f"{len(missing)} events of {name} are missing: {min(missing)}")
            first = list(dict.fromkeys(got))
            if first != sorted(first):
                found.append(f"events of {name} came out of order")
        return found

    def words(self) -> str:
        """The counts."""
        got = sum(map(len, self.got.values()))
        return (
            f"moves {self.moves}, kills {self.kills}, acknowledged "
            f"{sum(self.acknowledged.values())}, delivered {got}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brokers", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = MovingTrial(Path(folder), options.seed, options.brokers)
        asyncio.run(trial.run(options.seconds))
    sys.stdout.write("\n".join([trial.words(), *trial.problems()]) + "\n")
    sys.exit(bool(trial.problems()))


if __name__ == "__main__":
    main()
