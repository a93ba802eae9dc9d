"""How tables and matches grow with the number of subscriptions: what the model is given.

    python benchmarks/network_sections/growth.py FILE [--quick]

For each set of subscriptions, with the table that brokers use (`CoverTable`): how many of the first
n no other one covers. And for some events, which part of the subscriptions matches each. Of stock
alerts the same for one symbol; there, the table is compared with a sweep that counts the alerts
that no other covers, which then counts more of them than the table would in reasonable time.
At last, how fast one broker alone matches all subscriptions. FILE gets a line for each result.
"""

import argparse
import bisect
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tamis
from network_sections.interests import SETS
from tamis.language.shape_cache import ShapeCache
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics
from tamis.workloads import Workload, workload
from tamis.workloads.stock import Stock

Line = dict[str, Any]
Alert = tuple[float, float, int]  # low price, high price, least volume
SUBSCRIPTION_SEED, EVENT_SEED = 1, 2
PARTS = 200  # of a small size, at most
ONE_SYMBOL = "one symbol"  # the set of stock alerts that are all about one
POINTS = tuple(
    n * 10**power for power in range(7) for n in (1, 1.5, 2, 3, 5, 7)
)  # numbers of subscriptions


class Extent(NamedTuple):
    """How much is measured."""

    table: int = 200_000  # subscriptions of sets A and B in a table
    symbol: int = 6_000  # alerts of one symbol in a table
    sweep: int = 1_000_000  # alerts of one symbol that are swept
    seen: int = 20_000  # subscriptions that events are matched with
    events: int = 2_000
    central: int = 1_000_000  # subscriptions of one broker alone


QUICK = Extent(2_000, 500, 5_000, 1_000, 100, 5_000)


def one_symbol() -> Workload:
    """Stock alerts of one symbol, and its quotes."""
    stock = workload("stock")
    if not isinstance(stock.kind, Stock):
        raise TypeError("the workload stock is of another kind")
    return dataclasses.replace(stock, kind=dataclasses.replace(stock.kind, symbols=1))


def source_of(name: str) -> Workload:
    """The workload of a set."""
    return one_symbol() if name == ONE_SYMBOL else workload(name)


def points(most: int) -> list[int]:
    """Where a growing table is looked at."""
    return sorted({int(point) for point in POINTS if point <= most} | {most})


def measured(extent: Extent) -> Iterator[Line]:
    """All that the model is given."""
    for name in (*SETS, ONE_SYMBOL):
        yield {"kind": "matches", "set": name, **matching_parts(name, extent)}
    texts = texts_of(ONE_SYMBOL, extent.sweep)
    alerts = [_alert(text) for text in texts]
    symbol = list(growth(ONE_SYMBOL, texts[: extent.symbol]))
    if any(uncovered(alerts[:n]) != roots for n, roots in symbol):
        raise AssertionError("the sweep counts other alerts than the table has")
    yield {"kind": "roots", "set": ONE_SYMBOL, "by": "table", "points": symbol}
    yield {"kind": "roots", "set": ONE_SYMBOL, "by": "sweep", "points": swept_growth(alerts)}
    yield {"kind": "central", **central(extent)}
    for name in ("mbd-a", "mbd-b"):
        yield {"kind": "roots", "set": name, "by": "table",
               "points": list(growth(name, texts_of(name, extent.table)))}  # fmt: skip


def texts_of(name: str, count: int) -> list[str]:
    """The filters of a set."""
    table = source_of(name).subscriptions(count, SUBSCRIPTION_SEED)
    return [str(text) for text in table["filter"].to_pylist()]


def growth(name: str, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """How many of the first subscriptions no other covers, for more and more of them."""
    schema = source_of(name).schema
    parse = ShapeCache(schema).parse
    table: CoverTable[int] = CoverTable(Semantics("sql", schema))
    wanted = set(points(len(texts)))
    for number, text in enumerate(texts, 1):
        table.insert(number, parse(text))
        if number in wanted:
            yield number, len(table.roots)


def matching_parts(name: str, extent: Extent) -> Line:
    """For some events, the part of the subscriptions that matches each."""
    source = source_of(name)
    density = SETS[name].density if name in SETS else 1.0
    matcher = tamis.Matcher(source.schema)
    table = source.subscriptions(extent.seen, SUBSCRIPTION_SEED)
    matcher.subscribe_many(zip(table["id"].to_pylist(), table["filter"].to_pylist(), strict=True))
    events = source.events(extent.events, EVENT_SEED, density)
    counts = matcher.match_batch(events, "counts")["count"].to_numpy()
    return {"subscriptions": extent.seen, "counts": counts.tolist()}


# --- a sweep over alerts of one symbol


def swept_growth(alerts: Sequence[Alert]) -> list[tuple[int, float]]:
    """How many alerts no other covers, by their number; means of several parts if that is small."""
    found = []
    for size in points(len(alerts)):
        starts = range(0, len(alerts) - size + 1, size)[:PARTS]
        found.append((size, statistics.mean(uncovered(alerts[n : n + size]) for n in starts)))
    return found


def _alert(text: str) -> Alert:
    words = text.split()
    return float(words[words.index("BETWEEN") + 1]), float(words[-5]), int(words[-1])


def uncovered(alerts: Sequence[Alert]) -> int:
    """How many alerts are not within another one.

    They come by their least volume, so only prices are compared with those before. Of these, the
    ranges that are not within another are kept, by their low prices: then the high ones rise, too.
    """
    lows: list[float] = []
    highs: list[float] = []
    found = 0
    for low, high, _ in sorted(set(alerts), key=lambda one: (one[2], one[0], -one[1])):
        place = bisect.bisect_right(lows, low)
        if place and highs[place - 1] >= high:
            continue
        found += 1
        start = bisect.bisect_left(lows, low)
        end = bisect.bisect_right(highs, high, lo=start)
        lows[start:end], highs[start:end] = [low], [high]
    return found


# --- one broker alone


def central(extent: Extent) -> Line:
    """How fast one core matches quotes with all alerts, and how many alerts a quote has."""
    stock = workload("stock")
    matcher = tamis.Matcher(stock.schema, options={"threads": 1})
    table = stock.subscriptions(extent.central, SUBSCRIPTION_SEED)
    matcher.subscribe_many(zip(table["id"].to_pylist(), table["filter"].to_pylist(), strict=True))
    rates, matches = [], 0.0
    events = stock.events(8 * 512, EVENT_SEED)
    for _ in range(4):  # the first one compiles
        begun = time.process_time()
        counts = matcher.match_batch(events, "counts")["count"].to_numpy()
        rates.append(len(counts) / (time.process_time() - begun))
        matches = float(np.mean(counts))
    return {"subscriptions": extent.central, "rate": max(rates[1:]), "matches": matches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    for line in measured(QUICK if options.quick else Extent()):
        with options.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(line["kind"], line.get("set", ""), flush=True)


if __name__ == "__main__":
    main()
