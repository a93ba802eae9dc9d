"""Ways to find, for an event, the filters that are true of it."""

from importlib import import_module

from tamis.engines.base import Engine
from tamis.errors import choose
from tamis.semantics import Semantics

# Where each engine lives; it is imported when it is first asked for, because numba is heavy.
ENGINES = {
    "naive": ("tamis.engines.naive", "NaiveEngine"),
    "counting-list": ("tamis.engines.counting", "ListCounting"),
    "counting-bits": ("tamis.engines.counting", "BitCounting"),
    "counting-bytes": ("tamis.engines.counting", "ByteCounting"),
    "sql-scan": ("tamis.engines.database", "ScanEngine"),
    "sql-grouped": ("tamis.engines.database", "GroupedEngine"),
}

# What "auto" takes: the only engine that takes every filter.
AUTOMATIC = "naive"


def make_engine(name: str, semantics: Semantics) -> Engine:
    """The engine of a name; ``"auto"`` leaves the choice to tamis."""
    choose("engine", name, ["auto", *ENGINES])
    module, class_name = ENGINES[AUTOMATIC if name == "auto" else name]
    engine: Engine = getattr(import_module(module), class_name)(semantics)
    return engine
