"""Mergers by uniform values against mergers by real traffic, which is skewed.

Two brokers as processes: stock quotes are published to one, alerts are subscribed at the other. A
few symbols have most of the quotes, and each has its prices. First the same quotes for all (so that
the profile is known where it is used), then the alerts, then the quotes that are counted.

``python benchmarks/network_sections/merging.py [--subscriptions N] [--events N]``
"""

import argparse
import http.client
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SYMBOLS = 300
SKEW = 1.2  # of Zipf's law
SCHEMA = {"symbol": "string", "price": "double", "volume": "int"}
TOPIC = "/topics/quotes"
BATCH = 500  # events of a request
RESTING = (
    "filters_held", "filters_announced", "events_sent", "events_received", "false_positives", "lag",
)  # fmt: skip
STEADY = 3.0  # seconds without a change, after which mergers are made


class Contestant(NamedTuple):
    """A strategy, and what is set for its mergers."""

    name: str
    strategy: str
    merging: dict[str, Any]


CONTESTANTS = (
    Contestant("covering", "advertisements+covering", {}),
    Contestant("perfect", "advertisements+perfect", {}),
    *(
        Contestant(
            f"uniform, threshold {threshold}",
            "advertisements+imperfect",
            {"probabilities": "uniform", "threshold": threshold},
        )
        for threshold in (0.0001, 0.001, 0.01)
    ),
    *(
        Contestant(
            f"traffic, entry {entry}",
            "advertisements+imperfect",
            {"probabilities": "traffic", "threshold": 0.1, "entry": entry},
        )
        for entry in (1.0, 10.0, 100.0)
    ),
)


class Row(NamedTuple):
    """What one contestant did."""

    name: str
    entries: int  # subscriptions held at the publishers' broker
    wanted: int  # quotes that match an alert
    received: int  # quotes that went over the link
    false_positives: int  # by the broker's own count

    def shown(self) -> str:
        share = self.false_positives / max(1, self.received)
        return (
            f"| {self.name} | {self.entries:,} | {self.wanted:,} | {self.received:,} | "
            f"{self.false_positives:,} | {share:.1%} |"
        )


# --- quotes and alerts


def middle_of(symbol: int) -> float:
    """The usual price of a symbol."""
    return 5.0 * (1 + symbol * 37 % 100)


def quotes(count: int, seed: int) -> list[dict[str, Any]]:
    """Quotes: a few symbols have most of them, and prices stay near that of the symbol."""
    chance = random.Random(seed)
    weights = [1 / (1 + n) ** SKEW for n in range(SYMBOLS)]
    symbols = chance.choices(range(SYMBOLS), weights, k=count)
    return [
        {
            "symbol": f"S{n}", "volume": chance.randrange(1, 1000),
            "price": round(middle_of(n) * math.exp(chance.gauss(0, 0.05)), 2),
        }
        for n in symbols
    ]  # fmt: skip


def alerts(count: int, seed: int) -> list[str]:
    """Filters: every symbol has as many, of prices that are unusual for it, and usual ones."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        symbol = number % SYMBOLS
        low = middle_of(symbol) * math.exp(chance.gauss(0, 0.15))
        high = low * (1 + chance.random() / 50)
        found.append(f"symbol = 'S{symbol}' AND price BETWEEN {low:.2f} AND {high:.2f}")
    return found


def matching(filters: list[str], events: list[dict[str, Any]]) -> int:
    """How many events match a filter, as one matcher says."""
    import tamis

    matcher = tamis.Matcher(tamis.Schema(SCHEMA))
    matcher.subscribe_many(list(enumerate(filters)))
    counts = matcher.match_batch(events, "counts")["count"]
    return sum(count > 0 for count in counts.to_pylist())


# --- brokers


def call(address: str, method: str, path: str, body: Any = None) -> Any:
    """Ask a broker over HTTP."""
    connection = http.client.HTTPConnection(address)
    content = None if body is None else json.dumps(body).encode()
    connection.request(method, path, content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    if answer.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.status} {data.decode()[:300]}")
    return json.loads(data) if data else None


@contextmanager
def network(contestant: Contestant) -> Iterator[tuple[str, str]]:
    """The addresses of the publishers' broker and of the subscribers' broker."""
    merging = {"policy": "every 1s", "period": 1} | contestant.merging
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "two.toml"
        settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in merging.items())
        file.write_text(
            f'strategy = "{contestant.strategy}"\nlinks = [["home", "market"]]\n'
            f"[merging]\n{settings}[brokers.market]\n[brokers.home]\n",
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "tamis", "network", str(file)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(  # noqa: S603 - this very program
            command, stdout=subprocess.PIPE, stderr=quiet, text=True
        ) as process:
            assert process.stdout is not None  # noqa: S101 - it was asked for
            found = {}
            for line in process.stdout:
                if line == "ready\n":
                    break
                ready = re.match(r"ready (\w+) http=(\S+)", line)
                if ready is not None:
                    found[ready[1]] = ready[2]
            try:
                yield found["market"], found["home"]
            finally:
                process.terminate()


def batched(events: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The events, some at a time."""
    for start in range(0, len(events), BATCH):
        yield events[start : start + BATCH]


def peer(address: str) -> dict[str, Any]:
    """What a broker says of its only peer."""
    (one,) = call(address, "GET", "/peers")["peers"]
    return dict(one)


def steady(address: str) -> dict[str, Any]:
    """What a broker says of its peer, when filters and events have come to rest."""
    before, since = peer(address), time.monotonic()
    while time.monotonic() - since < STEADY:
        time.sleep(0.2)
        now = peer(address)
        if any(now[key] != before[key] for key in RESTING):
            before, since = now, time.monotonic()
    return before


def measured(contestant: Contestant, subscriptions: int, events: int) -> Row:
    """Run one contestant."""
    filters, counted = alerts(subscriptions, 1), quotes(events, 2)
    with network(contestant) as (market, home):
        call(market, "PUT", TOPIC, {"schema": SCHEMA})
        steady(home)
        for batch in batched(quotes(events // 2, 3)):
            call(market, "POST", f"{TOPIC}/events", batch)
        steady(home)
        for number, text in enumerate(filters):
            body = {"filter": text, "durable": True}
            call(home, "PUT", f"{TOPIC}/subscriptions/s{number}", body)
        steady(home)
        entries = steady(market)["filters_held"] - 1  # and one advertisement
        before = peer(home)
        for batch in batched(counted):
            call(market, "POST", f"{TOPIC}/events", batch)
        after = steady(home)
    received, unwanted = (
        after[key] - before[key] for key in ("events_received", "false_positives")
    )
    wanted = matching(filters, counted)
    if received - unwanted != wanted:
        raise SystemExit(f"{contestant.name}: {received} - {unwanted} came, {wanted} were wanted")
    return Row(contestant.name, entries, wanted, received, unwanted)


def run(subscriptions: int = 2_000, events: int = 20_000) -> Iterator[Row]:
    """All contestants, one after the other."""
    for contestant in CONTESTANTS:
        yield measured(contestant, subscriptions, events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    print("| mergers | entries | wanted | received | false positives | share |")
    print("|---|---|---|---|---|---|")
    for row in run(options.subscriptions, options.events):
        print(row.shown(), flush=True)


if __name__ == "__main__":
    main()
