"""Tables of filters that know who covers whom."""

from tamis.relations.tables.cover_tables import SEARCHES, CoverTable, Insertion

__all__ = ["SEARCHES", "CoverTable", "Insertion"]
