"""What the strategies cost in a tree of brokers: tables, messages, publications on the links.

Each broker has a client with subscriptions, mostly to a symbol of its region, and some brokers have
a publisher with an advertisement. A publication on a link is *needed* if the link leads to a
matching subscription; otherwise it is a false positive inside the network.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from routing_sections.tables import DASH, aligned
from tamis.routing.simulation.filters import condition, row_of
from tamis.routing.simulation.scenario import CALM, Action, Scenario, ScenarioClient
from tamis.routing.simulation.strategy_costs import measure_costs
from tamis.routing.simulation.topology import shaped
from tamis.routing.strategies import STRATEGIES

SEMANTICS = "sql"
SPACING = 0.05  # seconds between two actions
MERGING = "size 4"  # when brokers look for mergers: tables are small here
IMPERFECT = "advertisements+imperfect"
COLUMNS = (
    "strategy", "IMT", "entries of clients", "of neighbours", "largest table",
    "subscription messages",
    "advertisement messages", "all messages", "publications on links", "needed",
    "false positives", "busiest link", "deliveries",
)  # fmt: skip
SYMBOLS, PRICES, VOLUMES = ("A", "B", "C"), range(10), (5, 10, 50, 100, 500, 1000, 2000)


class Extent(NamedTuple):
    """How large a network is, and what happens in it."""

    brokers: int
    subscriptions: int
    publications: int


def scenario(seed: int, extent: Extent, strategy: str, threshold: float = 0.0) -> Scenario:
    """The same scenario for each strategy of a seed; publishers keep to their advertisements."""
    chance = random.Random(f"{seed} network")
    tree = shaped("tree", extent.brokers, chance)
    readers = [ScenarioClient(f"c{broker}", broker) for broker in tree.brokers]
    writers = [ScenarioClient(f"p{broker}", broker) for broker in tree.brokers[::5]]
    actions = [Action(0.0, client.name, "connect") for client in (*readers, *writers)]
    offers = {writer.name: _offer(chance) for writer in writers}
    actions += [Action(0.0, name, "advertise", "a1", text) for name, text in offers.items()]
    homes = {reader.name: chance.choice(SYMBOLS) for reader in readers}
    for number in range(extent.subscriptions):
        name = readers[number % len(readers)].name
        text = _interest(chance, homes[name])
        actions.append(Action(1 + number * SPACING, name, "subscribe", f"s{number}", text))
    for number in range(extent.publications):
        name = writers[number % len(writers)].name
        event = _event(chance, offers[name])
        time = number * SPACING
        actions.append(Action(time, name, "publish", f"p{number}", event=event, phase=CALM))
    return Scenario(
        seed=seed, strategy=strategy, semantics=SEMANTICS, faulty="none", brokers=tree.brokers,
        edges=tree.edges, clients=(*readers, *writers), actions=tuple(actions),
        merging=MERGING, threshold=threshold,
    )  # fmt: skip


def _offer(chance: random.Random) -> str:
    """An advertisement of two of three symbols, and of half of the prices."""
    first, second = chance.sample(SYMBOLS, 2)
    return f"symbol IN ('{first}', '{second}') AND price {chance.choice(('<', '>='))} 5"


def _interest(chance: random.Random, home: str) -> str:
    """A filter of a symbol, mostly that of the region, a few prices, and often a volume."""
    symbol = home if chance.random() < 0.7 else chance.choice(SYMBOLS)
    low = chance.choice(PRICES)
    price = chance.choice((f"= {low}", f"BETWEEN {low} AND {low + chance.randint(1, 2)}"))
    text = f"symbol = '{symbol}' AND price {price}"
    if chance.random() < 0.6:
        text += f" AND volume {chance.choice(('<=', '>='))} {chance.choice(VOLUMES)}"
    return text


def _event(chance: random.Random, offer: str) -> dict[str, Any]:
    holds = condition(offer, SEMANTICS)
    while True:
        event = {"symbol": chance.choice(SYMBOLS), "price": chance.choice(PRICES),
                 "volume": chance.choice(VOLUMES)}  # fmt: skip
        row = row_of(event, SEMANTICS)
        if holds is not None and row is not None and holds(row):
            return event


def needed(play: Scenario) -> int:
    """On how many links publications are needed to reach all matching subscriptions."""
    tree = play.topology()
    home = {client.name: client.broker for client in play.clients}
    cases = [(home[action.client], condition(action.filter, SEMANTICS))
             for action in play.actions if action.verb == "subscribe"]  # fmt: skip
    links = 0
    for action in play.actions:
        if action.verb != "publish":
            continue
        row = row_of(action.event, SEMANTICS)
        ends = {broker for broker, holds in cases
                if holds is not None and row is not None and holds(row)}  # fmt: skip
        paths = (tree.path(home[action.client], end) for end in ends)
        links += len({pair for path in paths for pair in pairwise(path)})
    return links


def played(play: Scenario) -> dict[str, Any]:
    """The counters of all brokers after all subscriptions and publications."""
    found = measure_costs(play)
    return {
        "strategy": play.strategy, "threshold": play.threshold, "tables": found.tables,
        "sent": dict(found.sent), "carried": dict(found.carried), "needed": needed(play),
        "deliveries": found.deliveries,
    }  # fmt: skip


def measured(
    seeds: Sequence[int], thresholds: Sequence[float], extent: Extent
) -> Iterator[dict[str, Any]]:
    """All strategies on the same networks, the imperfect one with several thresholds."""
    cases = [(name, 0.0) for name in STRATEGIES if name != IMPERFECT]
    cases += [(IMPERFECT, threshold) for threshold in thresholds]
    for seed in seeds:
        first: dict[str, Any] | None = None
        for strategy, threshold in cases:
            found = played(scenario(seed, extent, strategy, threshold))
            first = first or found
            compare(found, first["deliveries"])
            local = sum(first["tables"].values())  # flooding holds nothing of neighbours
            yield {"seed": seed, **extent._asdict(), "local": local, **found}


def compare(found: dict[str, Any], deliveries: int) -> None:
    """Check that clients get the same events, and that no needed publication is missing."""
    name = found["strategy"]
    if found["deliveries"] != deliveries:
        raise AssertionError(f"{name} delivers {found['deliveries']:,}, another one {deliveries:,}")
    if sum(found["carried"].values()) < found["needed"]:
        raise AssertionError(f"{name} carries less than the {found['needed']:,} that is needed")


# --- tables


def printed(lines: Sequence[dict[str, Any]]) -> str:
    """Sums over all seeds."""
    first = lines[0]
    seeds = len({line["seed"] for line in lines})
    together: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for line in lines:
        together.setdefault((line["strategy"], line["threshold"]), []).append(line)
    said = (
        f"**Strategies in random trees of {first['brokers']} brokers**: "
        f"{first['subscriptions']:,} subscriptions, then {first['publications']:,} publications; "
        f"means of {seeds}; *false positives* are publications on links that lead to nobody who "
        "wants them, as a part of all on links"
    )
    return said + "\n\n" + aligned(COLUMNS, (_cells(many) for many in together.values()))


def _cells(many: Sequence[dict[str, Any]]) -> list[str]:
    def mean(values: Iterator[float]) -> float:
        return sum(values) / len(many)

    first = many[0]
    carried = mean(sum(line["carried"].values()) for line in many)
    needs = mean(line["needed"] for line in many)
    kinds = (("Subscribe", "Unsubscribe"), ("Advertise", "Unadvertise"))
    counts = [mean(sum(line["sent"].get(kind, 0) for kind in some) for line in many)
              for some in kinds]  # fmt: skip
    return [
        first["strategy"], f"{first['threshold']:g}" if first["strategy"] == IMPERFECT else DASH,
        f"{mean(line['local'] for line in many):,.0f}",
        f"{mean(sum(line['tables'].values()) - line['local'] for line in many):,.0f}",
        f"{mean(max(line['tables'].values()) for line in many):,.0f}",
        *(f"{count:,.0f}" for count in counts),
        f"{mean(sum(line['sent'].values()) for line in many):,.0f}",
        f"{carried:,.0f}", f"{needs:,.0f}", f"{1 - needs / carried if carried else 0:.1%}",
        f"{mean(max(line['carried'].values(), default=0) for line in many):,.0f}",
        f"{mean(line['deliveries'] for line in many):,.0f}",
    ]  # fmt: skip
