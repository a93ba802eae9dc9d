"""One filter in place of several: by which rules, which of many, how much it adds, and when."""

from tamis.relations.merging.merge import merge

__all__ = ["merge"]
