"""The load generator with stomp.py: a process that subscribes, publishes and counts.

It keeps at most two rounds of events on their way, so that no broker has to drop any, and at the
end every subscription must have got exactly what matches its filter. In: a `Task` as JSON on the
command line. Out: the result as JSON.
"""

import json
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import stomp

from broker_sections.servers import HOST
from broker_sections.stock_alerts import TOPIC, Alerts, lines
from broker_sections.stopwatch import Stopwatch

CONNECTIONS = 4  # over which the subscriptions are spread
LONGEST_ROUND = 0.3  # seconds; a round that takes less is followed by a larger one
LARGEST_ROUND = 2_000
PATIENCE = 120.0  # seconds without any progress
SUBSCRIBED_AT_ONCE = 500
# After this many evaluations, if there are at most that many filters, tamis compiles them.
EVALUATIONS, UNCOMPILED = 1_100_000, 1000


class Task(NamedTuple):
    """What to do."""

    port: int
    pid: int  # of the broker
    filters: int
    seconds: float
    url: str | None = None  # where to publish over HTTP instead


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Counts messages by subscription, and receipts, of one connection and its one thread."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.received = 0
        self.receipts: set[str] = set()
        self.errors: list[str] = []

    def on_message(self, frame: Any) -> None:
        """Count a delivery."""
        self.counts[int(frame.headers["subscription"])] += 1
        self.received += 1

    def on_receipt(self, frame: Any) -> None:
        """Remember a receipt."""
        self.receipts.add(frame.headers["receipt-id"])

    def on_error(self, frame: Any) -> None:
        """Remember what went wrong."""
        self.errors.append(f"{frame.headers.get('message')}: {frame.body}"[:500])


class Generator:
    """The connections of one run."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._alerts = Alerts(task.filters)
        self._publisher, self._published = self._connected()
        subscribers = min(CONNECTIONS, max(task.filters, 1))
        pairs = [self._connected() for _ in range(subscribers)]
        self._subscribers = [connection for connection, _ in pairs]
        self._listeners = [listener for _, listener in pairs]

    def _connected(self) -> tuple[Any, Listener]:
        listener = Listener()
        made = stomp.Connection12([(HOST, self._task.port)], heartbeats=(0, 0))
        made.set_listener("counts", listener)
        made.connect(wait=True)
        return made, listener

    def _wait_for(self, is_there: Callable[[], bool]) -> None:
        """Wait while there is progress; an ERROR frame ends it."""
        progress, since = (-1, -1), time.perf_counter()
        while not is_there():
            for listener in (self._published, *self._listeners):
                if listener.errors:
                    raise SystemExit(f"the broker said: {listener.errors[0]}")
            time.sleep(0.0005)
            if progress != (now := (self._received(), self._receipts())):
                progress, since = now, time.perf_counter()
            elif time.perf_counter() - since > PATIENCE:
                raise SystemExit(f"no progress for {PATIENCE:.0f} seconds: {progress}")

    def _received(self) -> int:
        return sum(listener.received for listener in self._listeners)

    def _receipts(self) -> int:
        return sum(len(one.receipts) for one in (self._published, *self._listeners))

    def _has_receipts(self, least: int) -> bool:
        return self._receipts() >= least

    def subscribe(self) -> float:
        """Make all subscriptions; returns the seconds."""
        begun = time.perf_counter()
        count = max(self._task.filters, 1)
        for number in range(count):
            headers = {"receipt": f"s{number}"}
            if self._task.filters:
                headers["selector"] = self._alerts.filter(number)
            self._subscribers[number % len(self._subscribers)].subscribe(
                f"/topic/{TOPIC}", id=str(number), ack="auto", headers=headers
            )
            if number % SUBSCRIBED_AT_ONCE == 0:
                self._wait_for(partial(self._has_receipts, number - SUBSCRIBED_AT_ONCE))
        self._wait_for(partial(self._has_receipts, count))
        return time.perf_counter() - begun

    def publish(self) -> dict[str, Any]:
        """Publish for the time of the task, wait for all deliveries, and compare them."""
        quotes = self._alerts.quotes()
        expected: Counter[int] = Counter()
        size, events, due, receipt = 10, 0, 0, ""
        watch = Stopwatch(self._task.pid, self._task.seconds, self._uncompiled_events())
        while watch.goes_on(events):
            now = time.perf_counter()
            batch = list(islice(quotes, size))
            before, receipt = receipt, f"p{events}"
            self._send(batch, receipt)
            # What was sent in the round before must have come: two rounds are on their way.
            self._wait_for(partial(self._is_done, due, before))
            due += self._alerts.count(batch, expected)
            events += size
            if time.perf_counter() - now < LONGEST_ROUND:
                size = min(2 * size, LARGEST_ROUND)
        self._wait_for(partial(self._is_done, due, receipt))
        result = watch.result(events)
        found = sum((listener.counts for listener in self._listeners), Counter[int]())
        if found != expected:
            wrong, lost = (sum((a - b).values()) for a, b in ((found, expected), (expected, found)))
            raise SystemExit(f"of {due} deliveries {lost} are missing and {wrong} are wrong")
        return {**result, "deliveries": due}

    def _uncompiled_events(self) -> int:
        """How many events tamis evaluates filter by filter, before it compiles the filters."""
        filters = self._task.filters
        return EVALUATIONS // filters if 0 < filters <= UNCOMPILED else 0

    def _is_done(self, due: int, receipt: str) -> bool:
        is_accepted = not receipt or self._task.url or receipt in self._published.receipts
        return bool(is_accepted) and self._received() >= due

    def _send(self, batch: list[Any], receipt: str) -> None:
        if self._task.url is not None:
            address = f"{self._task.url}/topics/{TOPIC}/events"
            kind = {"Content-Type": "application/x-ndjson"}
            request = urllib.request.Request(address, lines(batch), kind)  # noqa: S310 - ours
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - ours
                answer.read()
            return
        for number, (symbol, level) in enumerate(batch, 1):
            headers = {"symbol": symbol, "level": level}
            if number == len(batch):
                headers["receipt"] = receipt
            self._publisher.send(f"/topic/{TOPIC}", "x", headers=headers)


def main() -> None:
    """Do the task of the command line."""
    generator = Generator(Task(**json.loads(sys.argv[1])))
    subscribing = generator.subscribe()
    print(json.dumps({"subscribing": subscribing, **generator.publish()}), flush=True)


if __name__ == "__main__":
    main()
