"""The switches of the matching tree, each of which can be measured on its own."""

from dataclasses import dataclass

from tamis.engines.base import Options
from tamis.errors import OptionError, choose

SUCCESSORS = ("refined", "plain", "none")
LARGEST_TREE = 2**30  # nodes; successors keep a node and a mark in 32 bits
MOST_INDEX_ATTRIBUTES = 8


@dataclass(frozen=True)
class TreeOptions(Options):
    """The settings of the engine ``tree``.

    * `implied_edges`: a conjunction whose next test implies a test on the way goes below its result
      (Fig. 3), not below its *-edge.
    * `equality_tree`: conjunctions of equalities have their own tree (appendix B), to which the
      next three settings belong.
    * `collapse`: a chain of nodes that have only a *-edge is one edge (section 5).
    * `successors`: ``"refined"``, ``"plain"`` or ``"none"`` (section 5).
    * `index_attributes`: attributes with a separate subtree for each combination of their values
      (factoring, section 5): their names, or how many of them tamis may choose.
    * `young`: this many conjunctions, plus an eighth of the annotated or factored tree, may wait
      beside it in an ordinary tree before it is built again.
    * `max_nodes`: the most nodes; one more is a `CapacityError`.
    """

    implied_edges: bool = True
    equality_tree: bool = True
    collapse: bool = True
    successors: str = "refined"
    index_attributes: tuple[str, ...] | int = 0
    young: int = 1000
    max_nodes: int = 50_000_000

    def __post_init__(self) -> None:
        for name in ("implied_edges", "equality_tree", "collapse"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} is true or false, not {getattr(self, name)!r}")
        choose("successors", self.successors, SUCCESSORS)
        _check_number("young", self.young, 0, LARGEST_TREE)
        _check_number("max_nodes", self.max_nodes, 1, LARGEST_TREE)
        index: object = self.index_attributes  # a caller may give anything
        if isinstance(index, str):
            raise OptionError("index_attributes is a tuple of names or a number, not one name")
        if isinstance(index, tuple | list):
            if not all(isinstance(name, str) for name in index):
                raise OptionError("index_attributes is a tuple of names or a number")
            if len(set(index)) < len(index):
                raise OptionError("index_attributes names an attribute twice")
            object.__setattr__(self, "index_attributes", tuple(index))
            _check_number("the number of index_attributes", len(index), 0, MOST_INDEX_ATTRIBUTES)
        else:
            _check_number("index_attributes", index, 0, MOST_INDEX_ATTRIBUTES)
        if index and not self.equality_tree:
            raise OptionError("index_attributes factors the equality tree, which is switched off")


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OptionError(f"{name} is a number from {low:,} to {high:,}, not {value!r}")
