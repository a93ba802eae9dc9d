"""The model beside what happens: tables of `Routes`, exact counts at full size, seven processes."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from network_sections.growth import Alert, uncovered
from network_sections.growth_curves import Curves
from network_sections.interests import SETS
from network_sections.model_formulas import predicted
from network_sections.regions import Regions
from network_sections.route_trees import RouteTree, random_tree
from network_sections.shapes import SHAPES
from tamis.routing.filter_cache import shared_cache
from tamis.workloads import workload

Line = dict[str, Any]
REGIONS = 10
EVENTS = 4_000


def routes(brokers: int, subscriptions: int, locality: float, publishers: int,
           alerts: Curves) -> Line:  # fmt: skip
    """A random tree of the tables that brokers use, and what the model says of it."""
    begun = time.perf_counter()
    regions = Regions(random_tree(brokers), REGIONS, locality, publishers)
    advertised = {int(broker): ["TRUE"] for broker in np.flatnonzero(regions.publishing)}
    network = RouteTree(regions.tree, workload("stock").schema, advertised)
    before = network.told.added
    texts, homes = regions.filters(subscriptions), regions.homes(subscriptions).tolist()
    wanted = defaultdict(list)
    for number, (broker, text) in enumerate(zip(homes, texts, strict=True)):
        network.subscribe(broker, str(number), text)
        wanted[broker].append(text)
    held, told = network.held(), network.told
    events, published = regions.events(EVENTS)
    largest: dict[int, int] = defaultdict(int)
    for (_, broker), count in held.items():
        largest[broker] += count
    model = predicted(regions, subscriptions, alerts)
    return {
        "kind": "routes", "brokers": brokers, "subscriptions": subscriptions,
        "locality": locality, "publishers": publishers,
        "entries": [sum(held.values()), model.entries],
        "largest": [max(largest.values()), model.largest],
        "announced": [told.added - before, model.announced],
        "withdrawn": [told.removed, model.withdrawn],
        "links": [network.carried(events, published, wanted) / EVENTS, model.links],
        "bytes": told.bytes / (told.added - before + told.removed),
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def swept(brokers: int, subscriptions: int, locality: float, links: int, alerts: Curves) -> Line:
    """Roots on some links of a large network, counted exactly, and what the model says."""
    begun = time.perf_counter()
    regions = Regions(random_tree(brokers), REGIONS, locality, brokers // 10)
    texts, homes = regions.filters(subscriptions), regions.homes(subscriptions)
    alert = [_alert(text) for text in texts]
    ranks = np.array([int(text[text.index("'S") + 2 : text.index("' ")]) for text in texts])
    behind = regions.tree.behind()
    chance = np.random.default_rng(7)
    some = [list(behind)[n] for n in chance.choice(len(behind), links, replace=False)]
    counted, modelled = 0, 0.0
    for link in some:
        counted += _roots(alert, ranks, np.flatnonzero(behind[link][homes]))
        by_region = np.bincount(regions.region[behind[link]], minlength=REGIONS)
        means = subscriptions / brokers * by_region @ regions.interest
        modelled += float(alerts.roots(means).sum())
    return {
        "kind": "swept", "brokers": brokers, "subscriptions": subscriptions, "locality": locality,
        "links": links, "entries": [counted, modelled], "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def _alert(text: str) -> Alert:
    words = text.split()
    return float(words[words.index("BETWEEN") + 1]), float(words[-5]), int(words[-1])


def _roots(alerts: Sequence[Alert], ranks: Any, chosen: Any) -> int:
    order = chosen[np.argsort(ranks[chosen], kind="stable")]
    bounds = np.flatnonzero(np.diff(ranks[order])) + 1
    return sum(uncovered([alerts[n] for n in part]) for part in np.split(order, bounds))


def processes(row: Line, curves: dict[str, Curves]) -> Line | None:
    """Entries of seven processes with covering, as a row of `network.py` says them, and modelled.

    Subscriptions are told towards publishers whose advertisements they may match.
    """
    if row.get("contestant") != "advertisements+covering" or row["set"] == "stock":
        return None
    shape, interests = SHAPES[row["shape"]], SETS[row["set"]]
    tree, curve = shape.topology(), curves[row["set"]]
    cache = shared_cache(interests.schema, "sql", None)
    texts = interests.filters(row["filters"])
    parts = [sum(cache.may_intersect(text, grant) for text in texts) / len(texts)
             for grant in interests.grants]  # fmt: skip
    each = row["filters"] / len(shape.edges)
    entries = 0.0
    for one, other in shape.links:
        for teller, told in ((one, other), (other, one)):
            behind = {name for name in tree.brokers if told not in tree.path(teller, name)}
            beyond = [n for n, name in enumerate(shape.publishers) if name not in behind]
            if beyond:
                part = 1.0 if len(beyond) == 2 else parts[beyond[0]]
                count = part * each * len(behind.intersection(shape.edges))
                entries += float(curve.roots(np.array([count]))[0])
    return {
        "kind": "processes", "shape": row["shape"], "set": row["set"],
        "subscriptions": row["filters"], "entries": [row["entries"], entries],
    }  # fmt: skip
