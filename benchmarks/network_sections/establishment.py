"""Subscriptions at one end of a line of four brokers, established at the other end.

Three cases: put while all are linked, many at the same time; put before the first link is there, so
that all of them are sent when it comes; and a broker in the middle that is killed and started
again. Then half of them are deleted. Events that are published at the far end show that all is
well: exactly those arrive that match a subscription.

``python benchmarks/network_sections/establishment.py 100000``
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from network_sections.line_brokers import LineBroker
from tamis.language.shape_cache import ShapeCache
from tamis.matcher import Matcher
from tamis.relations.tables import CoverTable
from tamis.semantics import Semantics
from tamis.workloads import Workload, workload

NAMES = ("a", "b", "c", "d")  # subscribers at a, publishers at d
WORKLOADS = ("stock", "mbd-a", "mbd-b")
EVENTS = 2_000
PAUSE = 0.02


class Line:
    """Four brokers in a row."""

    def __init__(self, folder: Path, source: Workload) -> None:
        schema = {str(one.path[0]): str(one) for one in source.schema.attributes}
        self.brokers = [LineBroker(name, folder, schema) for name in NAMES]
        self.near, self.second, self.third, self.far = self.brokers
        for broker in self.brokers:
            broker.ready()

    def link(self, one: LineBroker, other: LineBroker) -> None:
        one.ask("call", other.name, other.port)

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()

    def cpu(self) -> float:
        """The seconds of a core that all of them have used."""
        return sum(float(broker.ask("cpu")) for broker in self.brokers)

    def longest(self) -> float:
        """How long the loop of any of them was held at most since the last question."""
        return max(float(broker.ask("longest")) for broker in self.brokers)

    def established(self, count: int) -> None:
        """Wait until the far end holds that many filters."""
        while self.far.ask("held") != count:
            time.sleep(PAUSE)


def bodies(source: Workload, seed: int) -> list[bytes]:
    """Events as JSON."""
    rows = source.events(EVENTS, seed).to_pylist()
    return [msgspec.json.encode({k: v for k, v in row.items() if v is not None}) for row in rows]


def expected(source: Workload, filters: Iterable[str], events: list[bytes]) -> int:
    """How many events match a filter."""
    matcher = Matcher(source.schema)
    matcher.subscribe_many(dict(enumerate(filters)))
    return sum(count > 0 for count in matcher.match_batch(events, "counts")["count"].to_pylist())


def roots(source: Workload, filters: list[str]) -> int:
    """How many filters stand for all of them."""
    table: CoverTable[str] = CoverTable(Semantics("sql", source.schema))
    parse = ShapeCache(source.schema).parse
    for text in dict.fromkeys(str(parse(text)) for text in filters):
        table.insert(text, parse(text))
    return len(table.roots)


def run(sizes: Iterable[int], names: Iterable[str] = WORKLOADS) -> list[dict[str, Any]]:
    """What was measured: one row for each workload, size and case."""
    return [row for name in names for size in sizes for row in measured(name, size)]


def measured(name: str, size: int) -> Iterator[dict[str, Any]]:
    source = workload(name)
    filters = source.subscriptions(size)["filter"].to_pylist()
    wanted = roots(source, filters)
    events = bodies(source, 2)

    def row(line: Line, case: str, seconds: float, count: int = size) -> dict[str, Any]:
        cores = line.cpu() - before
        found = {
            "workload": name, "subscriptions": size, "roots": wanted, "case": case,
            "seconds": seconds, "per_second": count / seconds, "cores": cores,
            "longest_stall": line.longest(),
        }  # fmt: skip
        print(_line(found), flush=True)
        return found

    for case in (linked, first_contact):
        with tempfile.TemporaryDirectory() as folder:
            line = Line(Path(folder), source)
            try:
                before = line.cpu()
                yield row(line, case.__name__, case(line, filters, wanted))
                check(line, expected(source, filters, events), events)
                if case is linked:
                    before = line.cpu() - line.second.ask("cpu")
                    yield row(line, "recovery", recovery(line, events))
                    half = size // 2
                    left = roots(source, filters[half:])
                    before = line.cpu()
                    yield row(line, "deletion", deletion(line, half, left), half)
                    check(line, expected(source, filters[half:], events), events)
            finally:
                line.kill()


def linked(line: Line, filters: list[str], wanted: int) -> float:
    """Put while all are linked."""
    for one, other in itertools.pairwise(line.brokers):
        line.link(one, other)
    time.sleep(1.0)
    line.longest()
    seconds = float(line.near.ask("put", filters))
    line.established(wanted)
    return seconds


def first_contact(line: Line, filters: list[str], wanted: int) -> float:
    """Put before the first link is there: the seconds from then on."""
    line.link(line.second, line.third)
    line.link(line.third, line.far)
    line.near.ask("put", filters)
    time.sleep(1.0)
    line.longest()
    began = time.perf_counter()
    line.link(line.near, line.second)
    line.established(wanted)
    return time.perf_counter() - began


def recovery(line: Line, events: list[bytes]) -> float:
    """Kill a broker in the middle; the seconds from its start until it carries events."""
    line.longest()
    line.second.kill()
    before = line.near.ask("stored")
    line.far.ask("publish", events)
    line.second.start()
    began = time.perf_counter()
    line.second.ready()
    line.link(line.second, line.third)
    while line.near.ask("stored") == before:
        time.sleep(PAUSE)
    return time.perf_counter() - began


def deletion(line: Line, count: int, left: int) -> float:
    """Delete some, until the far end has forgotten them."""
    line.longest()
    began = time.perf_counter()
    line.near.ask("delete", 0, count)
    line.established(left)
    return time.perf_counter() - began


def check(line: Line, count: int, events: list[bytes]) -> None:
    """Publish events at the far end: those that match arrive, and no others."""
    before = line.near.ask("stored")
    line.far.ask("publish", events)
    while line.near.ask("stored") < before + count:
        time.sleep(PAUSE)
    if line.near.ask("stored") != before + count:
        raise SystemExit(f"{line.near.ask('stored') - before:,} events arrived, not {count:,}")


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['workload']:6} {row['subscriptions']:>8,} subscriptions {row['roots']:>8,} roots  "
        f"{row['case']:14} {row['seconds']:8.2f} s {row['per_second']:>10,.0f} /s  "
        f"{row['cores']:7.1f} s of cores  longest stall {1000 * row['longest_stall']:7.1f} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--workloads", nargs="*", default=WORKLOADS)
    options = parser.parse_args()
    run(options.sizes, options.workloads)
