"""One filter for several: by which rules, which of many, how much it adds, and when to look."""

from tamis.relations.merging.one_filter import merge

__all__ = ["merge"]
