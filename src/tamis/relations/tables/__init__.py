"""Tables of filters that know which of them cover others."""

from tamis.relations.tables.cover_tables import SEARCHES, CoverTable, Insertion

__all__ = ["SEARCHES", "CoverTable", "Insertion"]
