"""The matching tree: the engine ``tree`` and its parts.

Conjunctions come in: `elements` turns their predicates into tests and results, and
`distinct_conjunctions` keeps equal ones once. The trees (`growing_tree`, `static_tree`) give the
conjunctions that an event satisfies.
"""

from tamis.engines.tree.bound import theorem_bound
from tamis.engines.tree.engine import TreeEngine
from tamis.engines.tree.options import TreeOptions

__all__ = ["TreeEngine", "TreeOptions", "theorem_bound"]
