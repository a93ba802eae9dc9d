"""Shared diagrams are measured by their functions: whatever is counted or timed matches alike."""

import numpy as np
import pytest

from cases import each
from tamis.engines.bdd import BddEngine, BddOptions
from tamis.papers.contest import draw, fill
from tamis.papers.procedures import diagram_nodes, diagram_times, node_enumerations
from tamis.papers.procedures.diagram_variables import ENCODINGS, VariableDiagram
from tamis.workloads import workload

SIZE = 120


@pytest.fixture(scope="module")
def data():
    return draw(workload("bdd"), SIZE, 10, 1, semantics="total")


def points(found):
    return {(point.line, point.measure, point.x): point.value for point in found}


# --- nodes


@pytest.fixture(scope="module")
def diagrams(data):
    """All queries with each kind of variables."""
    found = {}
    for encoding in ENCODINGS:
        diagram = found[encoding] = VariableDiagram(data.semantics.schema, encoding)
        for expression in data.expressions:
            diagram.add(expression)
    return found


def test_literals_are_the_variables_of_the_engine(data, diagrams):
    found = []
    for restriction in ("none", "query"):
        engine = BddEngine(data.semantics, BddOptions(restriction=restriction))
        fill(engine, data.expressions)
        found.append(engine.statistics()["nodes"])
    assert diagrams["literals"].nodes() == tuple(found)
    assert diagrams["literals"].variables == len(engine.predicates)


def test_complements_share_a_variable(diagrams):
    variables = {name: diagram.variables for name, diagram in diagrams.items()}
    assert variables["atoms"] < variables["operators"] < variables["literals"]
    # With fewer variables the plain diagram is smaller, too.
    assert diagrams["atoms"].nodes()[0] < diagrams["literals"].nodes()[0]


@each("encoding", list(ENCODINGS))
def test_every_kind_of_variables_matches_alike(encoding, data):
    engine = BddEngine(data.semantics, BddOptions())
    fill(engine, data.expressions)
    some = VariableDiagram(data.semantics.schema, encoding)
    for expression in data.expressions:
        some.add(expression)
    found = some.matches(data.rows)
    for row, handles in zip(data.rows, found, strict=True):
        assert handles.tolist() == engine.match(row).tolist()


def test_fewer_facts_remove_less(data):
    nodes = []
    for used in ((), ("implies",), ("implies", "excludes"), ("implies", "excludes", "exhausts")):
        some = VariableDiagram(data.semantics.schema, "literals", used)
        for expression in data.expressions:
            some.add(expression)
        plain, restricted = some.nodes()
        nodes.append(restricted)
    assert nodes[0] == plain
    assert nodes == sorted(nodes, reverse=True)
    assert len(set(nodes)) == len(nodes)


def test_nodes_are_counted_without_garbage():
    found = points(diagram_nodes.restricted_nodes(SIZE, 1, {"steps": 2}))
    again = draw(workload("bdd"), SIZE, 1, 1, semantics="total")
    engine = BddEngine(again.semantics, BddOptions(restriction="none"))
    fill(engine, again.expressions)
    needed = engine.diagram.reachable(engine.roots.tolist())
    assert engine.diagram.nodes > len(needed)  # what was made on the way
    assert found["unrestricted", "nodes", SIZE] == len(needed)
    assert found["unrestricted", "nodes", SIZE // 2] < len(needed)


def test_every_order_has_its_nodes():
    parameters = {"orders": ["attribute", "frequency", "random"]}
    found = points(diagram_nodes.ordered_nodes(SIZE, 3, parameters))
    assert len({found[order, "nodes", SIZE] for order in parameters["orders"]}) > 1


# --- times


def test_densities_are_those_of_the_paper():
    found = {name: round(100 * share, 1) for name, (_, share) in diagram_times.shares().items()}
    assert found == {"7.7 %": 7.7, "15.4 %": 15.4, "23.1 %": 23.1, "30.8 %": 30.8, "100 %": 100.0}


def test_messages_have_that_many_strings():
    source = workload("bdd")
    for strings in (1, 3):
        rows = diagram_times.with_strings(source, 60, 5, strings).to_pylist()
        present = [{name for name, value in row.items() if value is not None} for row in rows]
        assert all(len(some) == strings <= 4 for some in present)
        assert set().union(*present) == set(diagram_times.STRINGS)


def test_time_is_measured_at_every_size_and_density():
    found = points(diagram_times.times_by_density(80, 1, {"steps": 2, "events": 6}))
    for kind in ("strings", "independent"):
        assert all(found[kind, "by density", x] > 0 for x in (7.7, 15.4, 23.1, 30.8, 100.0))
        assert found["SiSL", kind, 40] > 0
        assert found["7.7 %", kind, 80] > 0
    assert found["strings", "empty", 7.7] == 0
    assert found["independent", "empty", 100.0] == 0


def test_half_a_million_can_be_fewer():
    found = points(diagram_times.half_a_million(60, 1, {"events": 6}))
    assert all(found[line, "seconds", 60] > 0 for line in ("bdd", "auto", "auto, batches"))


# --- enumeration


@pytest.fixture(scope="module")
def nodes(data):
    engine = BddEngine(data.semantics, BddOptions())
    fill(engine, data.expressions)
    return node_enumerations.Nodes.of(engine, SIZE)


def orders(nodes):
    return {
        "sorted": (node_enumerations.sorted_by_children(nodes), True),
        "shuffled": (node_enumerations.shuffled(nodes, 1), True),
        "depth first": (node_enumerations.depth_first(nodes), False),
    }


@each("name", ["sorted", "shuffled", "depth first"])
def test_children_come_before_their_parents(name, nodes):
    order, grouped = orders(nodes)[name]
    assert sorted(order.tolist()) == list(range(2, nodes.size))
    some = nodes.renumbered(order, grouped=grouped)
    numbers = np.arange(2, nodes.size)
    assert (some.store.low[2 : nodes.size] < numbers).all()
    assert (some.store.high[2 : nodes.size] < numbers).all()
    assert order.tolist() != numbers.tolist()


def test_every_enumeration_is_timed_and_matches_alike():
    found = points(node_enumerations.times_by_enumeration(SIZE, 1, {"events": 6}))
    assert len(found) == 5
    assert min(found.values()) > 0
