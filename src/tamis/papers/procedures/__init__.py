"""Procedures: functions that measure one case of an experiment with one seed.

A procedure takes the case, the seed and the parameters of the experiment's file, and yields a point
for everything that it measured. It raises `Disagreement` if contestants give different answers.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from tamis.errors import choose
from tamis.papers.measurements import Point, X

Procedure = Callable[[Any, int, Mapping[str, Any]], Iterable[Point]]

# Module and function of each, imported when it is needed.
PROCEDURES = {
    "tree-matching": ("tree_matching", "match_by_trees"),
    "tree-optimizations": ("tree_matching", "compare_optimizations"),
    "tree-costs": ("tree_matching", "count_nodes_by_cost"),
    "predicate-matching": ("predicate_matching", "match_predicates"),
    "event-matching": ("event_matching", "match_single_events"),
    "restricted-nodes": ("diagram_nodes", "restricted_nodes"),
    "encoded-nodes": ("diagram_nodes", "encoded_nodes"),
    "ordered-nodes": ("diagram_nodes", "ordered_nodes"),
    "density-times": ("diagram_times", "times_by_density"),
    "half-a-million": ("diagram_times", "half_a_million"),
    "node-enumerations": ("node_enumerations", "times_by_enumeration"),
    "table-reductions": ("table_reductions", "reduce_tables"),
    "covered-subscriptions": ("table_reductions", "cover_subscriptions"),
    "table-insertion": ("table_insertion", "insert_subscriptions"),
    "merging-thresholds": ("merging_thresholds", "merge_up_to"),
}


def procedure(name: str) -> Procedure:
    """The procedure of a name."""
    choose("procedure", name, PROCEDURES)
    module, function = PROCEDURES[name]
    found: Procedure = getattr(import_module(f"tamis.papers.procedures.{module}"), function)
    return found


__all__ = ["PROCEDURES", "Point", "Procedure", "X", "procedure"]
