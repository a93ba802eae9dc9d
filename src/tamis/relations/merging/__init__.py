"""One filter for several: by which rules, which of many, how much it adds, and when to look."""

from tamis.relations.merging.merge import merge

__all__ = ["merge"]
