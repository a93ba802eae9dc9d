"""Ways to find, for an event, the filters that are true of it."""

from tamis.engines.base import Engine
from tamis.engines.naive import NaiveEngine
from tamis.errors import choose
from tamis.semantics import Semantics

ENGINES: dict[str, type[Engine]] = {"naive": NaiveEngine}

# What "auto" takes.
AUTOMATIC = "naive"


def make_engine(name: str, semantics: Semantics) -> Engine:
    """The engine of a name; ``"auto"`` leaves the choice to tamis."""
    choose("engine", name, ["auto", *ENGINES])
    return ENGINES[AUTOMATIC if name == "auto" else name](semantics)
