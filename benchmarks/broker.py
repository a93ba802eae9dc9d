"""The broker: what it carries, beside other brokers, and what it costs.

    python benchmarks/broker.py [filters] [fan-out] [publishing] [latency] [backlog] [memory]
                                [start-up] [--quick] [--filters N ...] [--seconds S] [--json FILE]

Brokers and load generators are processes: the broker on one core, the generator on the others.
Contestants are tamis, ActiveMQ 5.17 (Debian package activemq), mosquitto and nats-server; one that
is not installed is named and left out. At the end of a run a generator has counted what each
subscriber got, and a run in which that is not exactly what matches is not a result, but an error.
A run begins with a warm-up of a quarter of its time. *events/cpu s* are events per second of the
broker's processor time, which other work on the machine does not change much.

*filters*: events per second with a number of content filters, of which three in four events match
one; the same clients, of stomp.py, for tamis and ActiveMQ; with 0 filters one subscriber gets
everything. ``tamis, HTTP`` gets the events as JSON lines over HTTP. *fan-out*: everything to
everybody, by raw clients that only count. *publishing*: durable publishing to tamis, pipelined one
by one with receipts of STOMP, one by one over HTTP, in batches of JSON lines, in Arrow tables.
*latency*: from when an event is due until its subscriber has it. *backlog*: durable subscribers who
return and catch up. *memory*: bytes per connection and per subscription. *start-up*: with very many
durable subscriptions that sleep.

tamis syncs every event to the disk before it acknowledges it or delivers it. The others do not: for
subscribers that are not durable, ActiveMQ keeps events in memory, and mosquitto and nats-server
have them at most once.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from broker_sections.sections import QUICK, SECTIONS, Extent
from broker_sections.servers import missing
from machine import processor

DASH = "–"
COLUMNS: dict[str, tuple[str, ...]] = {
    "filters": ("contestant", "filters", "events/s", "of tamis", "events", "deliveries",
                "subscribing", "events/cpu s", "memory"),
    "fan-out": ("contestant", "subscribers", "events/s", "of tamis", "deliveries/s",
                "events/cpu s"),
    "publishing": ("way", "events/s", "events", "events/cpu s"),
    "latency": ("load", "rate", "p50", "p99", "most", "measured"),
    "backlog": ("subscribers", "events", "publishing", "seconds", "events/s", "cpu", "memory"),
    "memory": ("what", "count", "bytes"),
    "start-up": ("sleeping", "seconds", "memory"),
}  # fmt: skip
FORMS = {
    "of tamis": "{:.2f}", "cpu": "{:.1f} s", "subscribing": "{:.1f} s", "publishing": "{:.1f} s",
    "seconds": "{:.2f} s", "load": "{:.0%}",
}  # fmt: skip


def main() -> None:
    options = arguments().parse_args()
    extent = QUICK if options.quick else Extent()
    if options.filters:
        extent = extent._replace(filters=tuple(options.filters))
    if options.seconds:
        extent = extent._replace(seconds=options.seconds)
    print(f"{processor()}; broker on one core, load generators on the others.")
    for name, what in missing().items():
        print(f"{name} is left out, it is not installed ({what}).")
    subprocess.run([sys.executable, "-m", "tamis", "warm"], check=True, capture_output=True)
    for section in options.sections or SECTIONS:
        print(f"\n**{section}**\n\n| " + " | ".join(COLUMNS[section]) + " |")
        print("|---" * len(COLUMNS[section]) + "|", flush=True)
        best: dict[Any, float] = {}
        for row in SECTIONS[section](extent):
            compare(row, best)
            print("| " + " | ".join(shown(row, name) for name in COLUMNS[section]) + " |",
                  flush=True)  # fmt: skip
            if "failed" in row:
                print(f"\n{row.get('contestant', 'tamis')} failed: {row['failed']}\n", flush=True)
            record(options.json, {"section": section, **row})


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION",
                      help=f"among {', '.join(SECTIONS)}; all, if none is named")  # fmt: skip
    made.add_argument("--quick", action="store_true", help="only to see that everything works")
    made.add_argument("--filters", type=int, nargs="+", metavar="N")
    made.add_argument("--seconds", type=float, help="of each run")
    made.add_argument("--json", type=Path, metavar="FILE", help="append results, line by line")
    return made


def compare(row: dict[str, Any], best: dict[Any, float]) -> None:
    """Say what part of tamis's rate a contestant reaches, under the same conditions."""
    rate = row.get("events/s")
    under = row.get("filters"), row.get("subscribers")
    if row.get("contestant") == "tamis" and rate is not None:
        best[under] = rate
    if rate is not None and under in best:
        row["of tamis"] = rate / best[under]


def shown(row: dict[str, Any], name: str) -> str:
    """A value for people."""
    value = row.get(name)
    if value is None:
        return DASH
    if name in {"p50", "p99", "most"}:
        return f"{1000 * value:.2f} ms"
    if name == "memory":
        return f"{value / 1e6:,.0f} MB"
    return value if isinstance(value, str) else FORMS.get(name, "{:,.0f}").format(value)


def record(path: Path | None, line: dict[str, Any]) -> None:
    """Append at once, so that an interrupted run keeps its results."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
