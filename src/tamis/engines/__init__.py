"""Engines: each finds, for an event, the filters that it matches.

Prepared filters go in under integer handles, rows or batches of events go in, and handles come out.
`base` is the contract.
"""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from tamis.engines.base import Engine
from tamis.errors import OptionError, choose
from tamis.semantics import Semantics

# Module and class of each engine; it is imported when first needed, because numba is heavy.
ENGINES = {
    "auto": ("tamis.engines.auto", "AutoEngine"),
    "naive": ("tamis.engines.naive", "NaiveEngine"),
    "sliced": ("tamis.engines.sliced", "SlicedEngine"),
    "counting-list": ("tamis.engines.counting", "ListCounting"),
    "counting-bits": ("tamis.engines.counting", "BitCounting"),
    "counting-bytes": ("tamis.engines.counting", "ByteCounting"),
    "tree": ("tamis.engines.tree", "TreeEngine"),
    "bdd": ("tamis.engines.bdd", "BddEngine"),
    "mbd": ("tamis.engines.mbd", "MbdEngine"),
    "sql-scan": ("tamis.engines.database", "ScanEngine"),
    "sql-grouped": ("tamis.engines.database", "GroupedEngine"),
}


def make_engine(
    name: str, semantics: Semantics, options: Mapping[str, Any] | None = None
) -> Engine:
    """The engine of a name; ``"auto"`` leaves the choice to tamis. `options` are its settings."""
    choose("engine", name, list(ENGINES))
    module, class_name = ENGINES[name]
    engine_class: type[Engine] = getattr(import_module(module), class_name)
    options = options or {}
    known = [field.name for field in fields(engine_class.options_class)]
    if options and not known:
        raise OptionError(f"the engine {name} has no options")
    for option in options:
        choose(f"option of the engine {name}", option, known)
    return engine_class(semantics, engine_class.options_class(**options))
