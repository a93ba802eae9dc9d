"""How many nodes the shared diagram of all queries has (BDD, section 8, first table; section 7).

Nodes are counted after a complete collection: what was made on the way and is part of no query does
not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tamis.engines.bdd import BddEngine, BddOptions
from tamis.papers.contest import Answers, Data, draw
from tamis.papers.measurements import Point
from tamis.papers.procedures.diagram_variables import FACTS, VariableDiagram
from tamis.workloads import workload

COMPARED = 20  # messages whose matches are compared


def restricted_nodes(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure the engine ``bdd`` with up to `size` queries, at ``steps`` sizes: the ``nodes`` that
    it has in total semantics unrestricted, restricted, and restricted fact by fact.
    """
    data = draw(workload("bdd"), size, COMPARED, seed, semantics="total")
    answers = Answers()
    for name, restriction in (
        ("unrestricted", "none"),
        ("restricted", "query"),
        ("restricted, fact by fact", "iterative"),
    ):
        engine = BddEngine(data.semantics, BddOptions(restriction=restriction))
        for queries in _filled(engine, data, sizes_of(size, parameters["steps"])):
            yield Point(name, "nodes", queries, _nodes(engine))
        answers.compare(name, [engine.match(row) for row in data.rows])


def encoded_nodes(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure how much restriction removes, by what a variable is and which facts are used.

    * ``factor``: nodes of the unrestricted diagram divided by those of the restricted one;
    * ``before``, ``after``: nodes for each query;
    * ``variables``: how many there are.
    """
    data = draw(workload("bdd"), size, COMPARED, seed, semantics="total")
    answers = Answers()
    kinds: dict[str, tuple[str, Sequence[str]]] = {
        "literals": ("literals", FACTS),
        "literals, implications only": ("literals", FACTS[:1]),
        "literals, no exhaustion": ("literals", FACTS[:2]),
        "operators": ("operators", FACTS),
        "atoms": ("atoms", FACTS),
        "atoms, implications only": ("atoms", FACTS[:1]),
        "comparisons": ("comparisons", FACTS),
    }
    for name, (encoding, used) in kinds.items():
        diagram = VariableDiagram(data.semantics.schema, encoding, used)
        done = 0
        for queries in sizes_of(size, parameters["steps"]):
            for expression in data.expressions[done:queries]:
                diagram.add(expression)
            done = queries
            before, after = diagram.nodes()
            yield Point(name, "factor", queries, before / after)
            yield Point(name, "before", queries, before / queries)
            yield Point(name, "after", queries, after / queries)
            yield Point(name, "variables", queries, diagram.variables)
        answers.compare(name, diagram.matches(data.rows))


def ordered_nodes(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure the engine ``bdd`` with variables in each of the ``orders``: ``nodes`` of the
    restricted diagram, and those ``unrestricted``.
    """
    data = draw(workload("bdd"), size, COMPARED, seed, semantics="total")
    answers = Answers()
    for order in parameters["orders"]:
        for restriction, measure in (("query", "nodes"), ("none", "unrestricted")):
            options = BddOptions(order=order, restriction=restriction, seed=seed)
            engine = BddEngine(data.semantics, options)
            for _ in _filled(engine, data, [size]):
                if order == "frequency":  # the engine's own last time was at a power of two
                    engine.reorder(engine.filters)
                yield Point(order, measure, size, _nodes(engine))
            answers.compare(f"{order}, {restriction}", [engine.match(row) for row in data.rows])


def sizes_of(size: int, steps: int) -> list[int]:
    """`steps` sizes, evenly spaced, up to `size`."""
    return [size * step // steps for step in range(1, steps + 1)]


def _filled(engine: BddEngine, data: Data, sizes: Sequence[int]) -> Iterator[int]:
    """Add queries, and stop at each size."""
    for handle, expression in enumerate(data.expressions):
        engine.add(handle, engine.prepare(expression))
        if handle + 1 in sizes:
            yield handle + 1


def _nodes(engine: BddEngine) -> int:
    engine.collect()
    return engine.diagram.nodes
