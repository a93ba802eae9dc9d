"""A network of 1,000 brokers and a million subscriptions, by the model and beside what happens.

    python benchmarks/network_sections/growth.py growth.jsonl
    python benchmarks/network_sections/model.py growth.jsonl [--checks checks.jsonl] [--run]
        [--network network.jsonl] [--write docs/network-model.md]

`growth.py` measures how tables grow; `--run` plays networks of real tables and counts links of a
large one, which takes some minutes, and appends to the file of `--checks`; `--network` has the rows
that `benchmarks/network.py --out` has written. The tables are printed, and `--write` puts them into
the page, between the lines that name them.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from network_sections import model_checks
from network_sections.growth import ONE_SYMBOL
from network_sections.growth_curves import Curves, read_curves
from network_sections.model_formulas import Predicted, predicted
from network_sections.regions import Regions
from network_sections.route_trees import Tree, balanced_tree, random_tree
from routing_sections.tables import aligned
from tamis.broker.network.frames import frame_of
from tamis.broker.network.messages import Events, Filters, SentEvent

Line = dict[str, Any]
BROKERS, SUBSCRIPTIONS, PUBLISHERS = 1_000, 1_000_000, 100
LOCALITIES = (0.0, 0.5, 0.8, 0.95)
TREES = {"random": random_tree(BROKERS), "balanced, 4 below each": balanced_tree(BROKERS, 4)}
ROUTES = ((10, 1_000, 0.0, 3), (50, 5_000, 0.8, 5), (200, 2_000, 0.8, 10), (1_000, 2_000, 0.8, 10))
SWEPT = ((BROKERS, SUBSCRIPTIONS, 0.0, 8), (BROKERS, SUBSCRIPTIONS, 0.8, 8))
TOGETHER = 100  # events in a frame


def main() -> None:
    options = arguments().parse_args()
    curves, central = read_curves(options.growth)
    alerts = curves[ONE_SYMBOL]
    if options.run:
        for line in checked(alerts):
            with options.checks.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(line, file=sys.stderr, flush=True)
    checks = _lines(options.checks)
    rows = [model_checks.processes(row, curves) for row in _lines(options.network)]
    checks += [row for row in rows if row is not None]
    tables = {
        "growth": growth_table(curves), "routes": routes_table(checks),
        "swept": swept_table(checks), "processes": processes_table(checks),
        "large": large_table(alerts), "events": events_table(alerts),
        "bytes": bytes_table(alerts, central),
    }  # fmt: skip
    for name, table in tables.items():
        print(f"\n**{name}**\n\n{table}")
    if options.write is not None:
        text = options.write.read_text(encoding="utf-8")
        for name, table in tables.items():
            text = placed(text, name, table)
        options.write.write_text(text, encoding="utf-8")


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("growth", type=Path, metavar="FILE")
    made.add_argument("--checks", type=Path, metavar="FILE")
    made.add_argument("--run", action="store_true")
    made.add_argument("--network", type=Path, metavar="FILE")
    made.add_argument("--write", type=Path, metavar="PAGE")
    return made


def checked(alerts: Curves) -> Iterator[Line]:
    """All comparisons with what happens that need no processes."""
    for case in ROUTES:
        yield model_checks.routes(*case, alerts)
    for case in SWEPT:
        yield model_checks.swept(*case, alerts)


def _lines(path: Path | None) -> list[Line]:
    if path is None:
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def placed(text: str, name: str, table: str) -> str:
    """A page with a table between the lines that name it."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    found, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{table}\n{end}", text,
        flags=re.DOTALL,
    )  # fmt: skip
    if count != 1:
        raise SystemExit(f"the page has {count} places for {name!r}, not one")
    return found


# --- tables


def growth_table(curves: dict[str, Curves]) -> str:
    """The part of the subscriptions that no other covers, and that of events that some match."""
    columns = ("subscriptions", *(f"{name}: uncovered" for name in curves),
               *(f"{name}: events wanted" for name in curves))  # fmt: skip
    lines = []
    for power in range(2, 7):
        size = np.array([10.0**power])
        cells = [f"{10**power:,}"]
        for curve in curves.values():
            mark = "*" if 10**power > curve.measured else ""
            cells.append(f"{float(curve.roots(size)[0]) / 10**power:.1%}{mark}")
        for curve in curves.values():
            mark = "≥ " if 10**power > curve.seen else ""
            cells.append(f"{mark}{float(curve.matched(size)[0]):.1%}")
        lines.append(cells)
    return aligned(columns, lines)


def _compared(line: Line, name: str, form: str = "{:,.0f}") -> list[str]:
    counted, modelled = line[name]
    return [form.format(counted), form.format(modelled), f"{modelled / counted - 1:+.1%}"]


def routes_table(checks: list[Line]) -> str:
    """The model beside trees of `Routes`."""
    columns = ["brokers", "subscriptions", "locality", "publishers"]
    for name in ("entries", "announced", "withdrawn", "links of an event"):
        columns += [name, "model", "off by"]
    lines = [
        [f"{line['brokers']:,}", f"{line['subscriptions']:,}", f"{line['locality']:g}",
         f"{line['publishers']}", *_compared(line, "entries"), *_compared(line, "announced"),
         *_compared(line, "withdrawn"), *_compared(line, "links", "{:.2f}")]
        for line in checks if line["kind"] == "routes"
    ]  # fmt: skip
    return aligned(columns, lines)


def swept_table(checks: list[Line]) -> str:
    """The model beside exact counts on some links."""
    columns = ("brokers", "subscriptions", "locality", "links counted", "entries", "model",
               "off by")  # fmt: skip
    lines = [
        [f"{line['brokers']:,}", f"{line['subscriptions']:,}", f"{line['locality']:g}",
         f"{line['links']}", *_compared(line, "entries")]
        for line in checks if line["kind"] == "swept"
    ]  # fmt: skip
    return aligned(columns, lines)


def processes_table(checks: list[Line]) -> str:
    """The model beside seven processes."""
    found = {(line["shape"], line["set"]): line for line in checks if line["kind"] == "processes"}
    lines = [
        [shape, name, f"{line['subscriptions']:,}", *_compared(line, "entries")]
        for (shape, name), line in found.items()
    ]
    return aligned(("shape", "set", "subscriptions", "entries", "model", "off by"), lines)


def _large(tree: Tree, locality: float, alerts: Curves) -> Predicted:
    return predicted(Regions(tree, model_checks.REGIONS, locality, PUBLISHERS), SUBSCRIPTIONS,
                     alerts)  # fmt: skip


def large_table(alerts: Curves) -> str:
    """1,000 brokers, a million subscriptions: tables and messages."""
    columns = (
        "tree", "locality", "simple", "advertisements", "+ covering", "mean of a broker",
        "largest broker", "filters told", "taken back", "for a subscription",
    )  # fmt: skip
    lines = []
    for name, tree in TREES.items():
        for locality in LOCALITIES:
            found = _large(tree, locality, alerts)
            lines.append(
                [name, f"{locality:g}", _short(found.simple), _short(found.advertised),
                 _short(found.entries), f"{found.entries / BROKERS:,.0f}",
                 f"{found.largest:,.0f}", _short(found.announced), _short(found.withdrawn),
                 f"{(found.announced + found.withdrawn) / SUBSCRIPTIONS:.0f}"]
            )  # fmt: skip
    return aligned(columns, lines)


def events_table(alerts: Curves) -> str:
    """1,000 brokers, a million subscriptions: on how many links a published event goes."""
    columns = (
        "tree", "locality", "deliveries", "sites that want it", "flooding", "network",
        "one broker", "one broker, a copy for a site", "busiest broker gets",
    )  # fmt: skip
    lines = []
    for name, tree in TREES.items():
        for locality in LOCALITIES:
            found = _large(tree, locality, alerts)
            numbers = (found.deliveries, found.sites, found.flooded, found.links, found.central,
                       found.copies)  # fmt: skip
            lines.append(
                [name, f"{locality:g}", *(f"{one:,.0f}" for one in numbers), f"{found.busiest:.0%}"]
            )
    return aligned(columns, lines)


def bytes_table(alerts: Curves, central: Line) -> str:
    """The same in bytes, and what one broker alone would have to do; the random tree.

    An event takes the same bytes on every link, however it is routed.
    """
    size, filter_bytes = event_bytes(), filters_bytes()
    columns = (
        "locality", "GB to establish", "kB of an event: flooding", "network", "one broker",
        "one broker, a copy for a site", "one core matches", "deliveries then",
    )  # fmt: skip
    lines = []
    for locality in LOCALITIES:
        found = _large(TREES["random"], locality, alerts)
        told = found.announced + found.withdrawn
        links = (found.flooded, found.links, found.central, found.copies)
        lines.append(
            [f"{locality:g}", f"{filter_bytes * told / 1e9:,.1f}",
             *(f"{size * one / 1e3:,.1f}" for one in links), f"{central['rate']:,.0f}/s",
             f"{central['rate'] * found.deliveries / 1e6:,.0f} M/s"]
        )  # fmt: skip
    return aligned(columns, lines)


def event_bytes() -> float:
    """Bytes of an event on a link, in a frame of many: a quote with its id and headers."""
    body = b'{"symbol": "S123", "price": 123.45, "volume": 123456}'
    headers = b'{"tamis-origin":"broker-123","tamis-via":"broker-456"}'
    events = [SentEvent(f"tamis:0123456789abcdef:1:{n}", headers, body) for n in range(TOGETHER)]
    return len(frame_of([Events("quotes", TOGETHER, events)])) / TOGETHER


def filters_bytes() -> float:
    """Bytes of a filter on a link, announced alone, and of the answer that follows."""
    from tamis.broker.network.messages import Established

    text = "symbol = 'S123' AND price BETWEEN 123.45 AND 145.67 AND volume >= 123456"
    told = Filters("quotes", "subscription", is_full=False, added={"1.123456": text}, removed=[])
    return len(frame_of([told])) + len(frame_of([Established("quotes", ["1.123456"])]))


def _short(number: float) -> str:
    return f"{number / 1e6:,.1f} M"


if __name__ == "__main__":
    main()
