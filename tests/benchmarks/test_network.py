"""The benchmark of networks: its load is what it says, and the model counts what tables hold."""

from collections import Counter

import numpy as np
import pytest

import tamis
from cases import each
from network_sections import changes, growth, model, model_checks, strategies
from network_sections.brokers import Carried
from network_sections.clients import DELIVERY
from network_sections.growth_curves import curves
from network_sections.interests import SETS, Load
from network_sections.model_formulas import predicted
from network_sections.regions import Regions
from network_sections.route_trees import RouteTree, balanced_tree, random_tree
from network_sections.shapes import SHAPES
from tamis.workloads import workload

ALERTS = curves([(1, 1), (10, 9), (100, 62), (1_000, 250)], 1_000, [40, 0, 10, 50])


@each("name", list(SHAPES))
def test_a_shape_is_a_tree_of_seven(name):
    shape = SHAPES[name]
    assert len(shape.brokers) == 7
    assert len(shape.links) == 6
    assert set(shape.publishers) <= set(shape.edges)
    farthest = max(shape.distance(a, b) for a in shape.brokers for b in shape.brokers)
    assert shape.distance(*shape.publishers) == farthest


@each("name", list(SETS))
def test_every_event_is_one_publishers_and_keeps_to_its_grant(name):
    shape = SHAPES["tree"]
    load = Load(SETS[name], shape, 20, 60)
    published = load.published(range(10, 60))
    seen = Counter()
    for broker, grant in zip(shape.publishers, SETS[name].grants, strict=True):
        matcher = tamis.Matcher(SETS[name].schema)
        matcher.subscribe("grant", grant)
        for text in published[broker]:
            assert matcher.match(text) == ["grant"]
            seen[int(text.rpartition(b":")[2].strip(b" }"))] += 1
    assert seen == Counter(range(10, 60))


def test_who_gets_what_is_known_before():
    load = Load(SETS["mbd-a"], SHAPES["star"], 60, 80)
    matcher = tamis.Matcher(SETS["mbd-a"].schema)
    matcher.subscribe_many(load.filters.items())
    found = matcher.match_batch(load.events, "counts")["count"].to_pylist()
    assert sum(found) == load.expected.total() > 0
    assert load.arriving(range(40)).total() == sum(found[:40])
    assert sorted(n for client in load.clients for n in load.wanted_by(client)) == list(range(60))


def test_deliveries_are_found_in_what_a_client_got():
    text = (
        b'MESSAGE\nsubscription:7\ndestination:/topic/t\n\n{"a": 1, "number": 12}\x00'
        b'MESSAGE\nsubscription:8\ndestination:/topic/t\n\n{"number":3}\x00'
    )
    assert DELIVERY.findall(text) == [(b"7", b"12"), (b"8", b"3")]


def test_the_sweep_counts_what_the_table_holds():
    texts = growth.texts_of(growth.ONE_SYMBOL, 150)
    sizes = dict(growth.growth(growth.ONE_SYMBOL, texts))
    assert sizes == {n: growth.uncovered([growth._alert(t) for t in texts[:n]]) for n in sizes}
    assert sizes[150] < 150


@each(
    ("alerts", "expected"),
    [
        ([(1.0, 9.0, 5), (2.0, 8.0, 5)], 1),
        ([(1.0, 9.0, 5), (2.0, 8.0, 4)], 2),
        ([(1.0, 9.0, 5), (1.0, 9.0, 5)], 1),
        ([(1.0, 5.0, 1), (2.0, 6.0, 1), (1.0, 6.0, 2)], 3),
        ([(1.0, 5.0, 2), (2.0, 6.0, 2), (1.0, 6.0, 1)], 1),
    ],
)
def test_alerts_that_no_other_covers(alerts, expected):
    assert growth.uncovered(alerts) == expected


def test_tables_hold_what_no_other_behind_a_link_covers():
    regions = Regions(random_tree(6, seed=3), 2, 0.5, 6)
    network = RouteTree(regions.tree, workload("stock").schema, {n: ["TRUE"] for n in range(6)})
    texts, homes = regions.filters(120), regions.homes(120)
    wanted = {n: [] for n in range(6)}
    for number, (home, text) in enumerate(zip(homes.tolist(), texts, strict=True)):
        network.subscribe(home, str(number), text)
        wanted[home].append(text)
    alerts = [growth._alert(text) for text in texts]
    ranks = np.array([int(text.split("'")[1][1:]) for text in texts])
    for link, behind in regions.tree.behind().items():
        chosen = np.flatnonzero(behind[homes])
        assert network.held()[link] == model_checks._roots(alerts, ranks, chosen)
    events, published = regions.events(50)
    assert 0 < network.carried(events, published, wanted) < 5 * 50


def test_a_site_that_is_not_reached_is_noticed():
    regions = Regions(random_tree(3), 1, 0.0, 1)
    network = RouteTree(regions.tree, workload("stock").schema, {0: ["TRUE"]})
    events, _ = regions.events(20)
    with pytest.raises(AssertionError, match="broker 2 wants"):
        network.carried(events, np.zeros(20, int), {2: ["TRUE"]})


def test_the_model_knows_what_needs_no_measuring():
    tree = balanced_tree(13, 3)
    found = predicted(Regions(tree, 1, 0.0, 13), 1_300, ALERTS)
    assert found.simple == pytest.approx(1_300 * 12)
    assert found.advertised == pytest.approx(found.simple)
    assert found.flooded == 12
    assert found.entries < found.announced < found.simple
    assert found.withdrawn == pytest.approx(found.announced - found.entries)
    assert found.sites <= found.links <= found.flooded
    assert found.copies < found.central
    few = predicted(Regions(tree, 1, 0.0, 1), 1_300, ALERTS)
    assert few.advertised < found.advertised


def test_curves_go_through_what_was_measured():
    many = np.array([100.0, 1_000.0])
    assert ALERTS.roots(many) == pytest.approx([62, 250], rel=0.02)
    assert (ALERTS.announced(many) > ALERTS.roots(many)).all()
    assert ALERTS.matched(np.array([1e6]))[0] == pytest.approx(0.75)
    assert ALERTS.roots(np.array([10_000.0]))[0] > 250


def test_tables_are_put_where_the_page_names_them():
    page = "a\n<!-- t -->\nold\n<!-- end of t -->\nb"
    assert model.placed(page, "t", "new") == "a\n<!-- t -->\nnew\n<!-- end of t -->\nb"
    with pytest.raises(SystemExit, match="0 places"):
        model.placed(page, "u", "new")


def test_rows_become_tables():
    row = {
        "shape": "line", "set": "stock", "contestant": "simple", "filters": 10, "events": 5,
        "deliveries": 3, "rate": 100.0, "cpu": 0.1, "entries": 7, "largest": 2, "link events": 9,
        "bytes": 1_000, "hop p50": 0.002, "hop p99": 0.004, "last p50": 0.01, "last p99": 0.02,
        "hops": 6,
    }  # fmt: skip
    said = strategies.printed([row, row | {"rate": 300.0}])
    assert "**line, stock**" in said
    assert " 200 |" in said
    assert "2.0 ms" in said
    change = {"case": "spare", "published": 5, "delivered": 6, "missing": 0, "twice": 1,
              "interruption": 1.5}  # fmt: skip
    assert "| spare" in changes.printed([change])
    assert Carried(5, 50) - Carried(2, 20) == Carried(3, 30)
