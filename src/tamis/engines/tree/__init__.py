"""The matching tree: the engine ``tree`` and what it is made of."""

from tamis.engines.tree.bound import theorem_bound
from tamis.engines.tree.engine import TreeEngine
from tamis.engines.tree.options import TreeOptions

__all__ = ["TreeEngine", "TreeOptions", "theorem_bound"]
