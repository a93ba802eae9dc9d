"""The model of a network: what its tables hold, and what its links carry.

On a link, a broker *tells* another of the subscriptions *behind* it, as seen from the other one.
Everything follows from how many there are, and what they are about; docs/network-model.md derives
the formulas.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from network_sections.growth_curves import Curves
from network_sections.regions import Regions

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Predicted:
    """What the model says of a network."""

    simple: float  # entries of all tables, if all subscriptions are told to all
    advertised: float  # the same, if they are told only towards publishers
    entries: float  # the same, and not if another one covers them
    largest: float  # entries of the broker with the most of them, with covering
    announced: float  # filters that brokers tell each other while subscriptions come
    withdrawn: float  # and which of them they take back
    links: float  # on how many a published event goes
    flooded: float  # the same, if it goes on all
    busiest: float  # part of the events that the broker with the most of them gets
    deliveries: float  # of a published event
    sites: float  # brokers with a client that wants a published event
    central: float  # links that publication and deliveries take, with one broker in the centre
    copies: float  # the same, if each site gets one copy and passes it on to its clients


def predicted(regions: Regions, subscriptions: int, alerts: Curves) -> Predicted:
    """Stock alerts in a tree: `alerts` are the curves of one symbol."""
    tree, interest = regions.tree, regions.interest
    each = subscriptions / tree.size
    publishing = regions.publishing
    total = publishing.sum()
    region_count = regions.count

    def by_region(inside: Array, weights: Array) -> Array:
        return np.bincount(regions.region[inside], weights[inside], region_count)

    simple = advertised = entries = announced = links = 0.0
    held = np.zeros(tree.size)
    arriving = publishing / total
    ones = np.ones(tree.size)
    for (teller, told), behind in tree.behind().items():
        means = each * by_region(behind, ones) @ interest
        beyond = by_region(~behind, publishing)  # publishers that the subscriptions are told to
        simple += means.sum()
        if not beyond.any():
            continue
        advertised += means.sum()
        roots = alerts.roots(means).sum()
        entries += roots
        held[told] += roots
        announced += alerts.announced(means).sum()
        crossing = (beyond / total) @ interest @ alerts.matched(means)
        links += crossing
        arriving[teller] += crossing
    chances = publishing @ interest[regions.region] / total  # of the symbols of events
    deliveries = subscriptions * _meeting(regions, chances) * alerts.part
    wanted = _wanting(regions, each, chances, alerts)
    distance = _distances(tree.parents)
    centre = int(distance.sum(axis=1).argmin())
    publishing_way = float(distance[centre] @ publishing / total)
    return Predicted(
        simple, advertised, entries, float(held.max()), announced, announced - entries, links,
        tree.size - 1.0, float(arriving.max()), deliveries, float(wanted.sum()),
        publishing_way + deliveries * float(distance[centre].mean()),
        publishing_way + float(distance[centre] @ wanted),
    )  # fmt: skip


def _meeting(regions: Regions, chances: Array) -> float:
    """The probability that a subscription and an event are about the same symbol."""
    each = np.bincount(regions.region, minlength=regions.count) / regions.tree.size
    return float(each @ regions.interest @ chances)


def _wanting(regions: Regions, each: float, chances: Array, alerts: Curves) -> Array:
    """The probability that an event is wanted at each broker."""
    by_region = np.array([chances @ alerts.matched(each * one) for one in regions.interest])
    return by_region[regions.region]


def _distances(parents: tuple[int, ...]) -> Array:
    """How many links are between each two brokers."""
    found = np.zeros((len(parents) + 1, len(parents) + 1))
    for child, parent in enumerate(parents, 1):
        found[child, :child] = found[parent, :child] + 1
        found[:child, child] = found[child, :child]
    return found
