"""Matching trees (TREE, sections 4, 5 and 7): time, visited nodes, space, pre-processing."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tamis.engines.tree import TreeEngine
from tamis.engines.tree.bound import (
    expected_visits,
    most_nodes,
    most_nodes_of_cost,
    nodes_by_result_edges,
    simpler_bound,
    simpler_most_nodes_of_cost,
    theorem_bound,
)
from tamis.errors import OptionError
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.expression import Expression
from tamis.papers.contest import Answers, Data, build, draw, time_each, time_in_turns
from tamis.papers.measurements import Point, X
from tamis.workloads import workload
from tamis.workloads.equalities import Equalities

BARE = {"collapse": False, "successors": "none"}


def match_by_trees(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure ``trees`` (options by name) and the engines ``others``, over subscriptions.

    * ``match``: milliseconds for one event, the median of ``events``;
    * ``search``: those of the search alone, without reading the event and listing the matches;
    * ``visited``: nodes for one event, the mean;
    * ``space``: edges and entries of successor sets, the measure of the paper;
    * ``space per test``: this, divided by the tests of all subscriptions;
    * ``load``: milliseconds to pre-process all subscriptions.

    Of the tree without optimizations also what the analysis says: equation 6 and the bounds, for
    the number of distinct subscriptions.
    """
    name, data = parameters["workload"], _drawn(size, seed, parameters)
    answers = Answers()
    tests = sum(map(count_tests, data.expressions))
    for line, options in parameters["trees"].items():
        engine, points = _measured_tree(line, size, data, options, answers)
        yield from points
        sizes = engine.statistics()
        space = (sizes["edges"] + sizes["successors"]) / tests
        yield Point(line, "space per test", size, space)
        if options == BARE and isinstance(workload(name).kind, Equalities):
            yield from _analysis(engine, size, name)
    for line in parameters["others"]:
        yield from _measured_other(line, size, data, answers)


def compare_optimizations(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """The measures of `match_by_trees` at one size, over the options of ``trees``.

    The line of the trees is named after the workload; engines of ``others`` are level lines.
    """
    line, data = parameters["workload"], _drawn(size, seed, parameters)
    answers = Answers()
    engines = {}
    for name, options in parameters["trees"].items():
        engines[name], points = _measured_tree(line, name, data, options, answers)
        yield from (point for point in points if point.measure != "search")
    searches = time_in_turns(
        {name: partial(_search, engine) for name, engine in engines.items()},
        data.rows, {name: engine.read for name, engine in engines.items()},
    )  # fmt: skip
    for name, seconds in searches.items():
        yield Point(line, "search", name, 1e3 * seconds)
    for other in parameters["others"]:
        for point in _measured_other(other, size, data, answers):
            for x in parameters["trees"]:
                yield point._replace(x=x)


def _drawn(size: int, seed: int, parameters: Mapping[str, Any]) -> Data:
    return draw(workload(parameters["workload"]), size, parameters["events"], seed)


def count_nodes_by_cost(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """The nodes of each cost in a tree without optimizations, and the most there can be.

    x is j, the number of result edges on the path of a node.
    """
    source = workload(parameters["workload"])
    attributes, values = _dimensions(parameters["workload"])
    engine, _ = build("tree", draw(source, size, 1, seed), BARE)
    for j, count in enumerate(nodes_by_result_edges(engine.equality.growing)):
        yield Point("nodes", "nodes", j, count)
        yield Point("Lemma 1", "nodes", j, most_nodes_of_cost(j, attributes, values))
        bound = simpler_most_nodes_of_cost(j, attributes, values)
        yield Point("Corollary 2", "nodes", j, float(bound))


def count_tests(expression: Expression) -> int:
    """How many attributes a conjunction tests."""
    tree = expression.tree
    return len(tree.items) if isinstance(tree, ast.And) else 1


def _measured_tree(
    line: str, x: X, data: Data, options: Mapping[str, Any], answers: Answers
) -> tuple[TreeEngine, list[Point]]:
    engine, seconds = build("tree", data, options)
    engine.settle()
    median, found = time_each(engine.match, data.rows)
    answers.compare(f"{line}, {x}", found)
    engine.reset_visited()
    for row in data.rows:
        engine.match(row)
    visited = engine.visited / len(data.rows)
    search = time_search(engine, data)
    sizes = engine.statistics()
    return engine, [
        Point(line, "search", x, 1e3 * search),
        Point(line, "match", x, 1e3 * median),
        Point(line, "visited", x, visited),
        Point(line, "space", x, sizes["edges"] + sizes["successors"]),
        Point(line, "nodes", x, sizes["nodes"]),
        Point(line, "load", x, 1e3 * seconds),
    ]


def time_search(engine: TreeEngine, data: Data) -> float:
    """The median seconds of a search."""
    return time_each(partial(_search, engine), data.rows, before=engine.read)[0]


def _search(engine: TreeEngine, _: Row) -> Any:
    """Search for the event that was read last."""
    return engine.search()


def _measured_other(name: str, x: X, data: Data, answers: Answers) -> Iterator[Point]:
    engine, seconds = build(name, data)
    median, found = time_each(engine.match, data.rows)
    answers.compare(name, found)
    yield Point(name, "match", x, 1e3 * median)
    yield Point(name, "load", x, 1e3 * seconds)


def _analysis(engine: TreeEngine, size: int, name: str) -> Iterator[Point]:
    attributes, values = _dimensions(name)
    distinct = engine.statistics()["leaves"]
    counts = nodes_by_result_edges(engine.equality.growing)
    yield Point("equation 6", "visited", size, expected_visits(counts, values))
    yield Point("Theorem 1", "visited", size, theorem_bound(distinct, attributes, values))
    yield Point("Corollary 1", "visited", size, simpler_bound(distinct, attributes, values))
    yield Point("Lemma 2", "nodes", size, most_nodes(distinct, attributes))
    yield Point("distinct subscriptions", "distinct", size, distinct)


def _dimensions(name: str) -> tuple[int, int]:
    kind = workload(name).kind
    if not isinstance(kind, Equalities):
        raise OptionError(f"the workload {name} is not one of TREE")
    return kind.attributes, kind.values
