"""Routing strategies: which subscriptions and advertisements a broker forwards to neighbours."""

from collections.abc import Callable
from dataclasses import dataclass

from tamis.errors import OptionError, choose
from tamis.relations.merging.measures import Measure
from tamis.relations.merging.merge_rules import RULES
from tamis.relations.merging.policies import read_policy
from tamis.routing.kinds import FilterKind

CANDIDATES = ("any", "mbd")


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way of routing.

    ======================== =====================================================================
    name                     a subscription is forwarded
    ======================== =====================================================================
    flooding                 nowhere; publications go everywhere
    simple                   everywhere
    advertisements           to where an event that it may match is advertised
    ... + covering           the same, unless a filter that was sent there covers it
    ... + perfect            the same, merged with others if the merger matches nothing more
    ... + imperfect          the same, merged also if the merger matches a little more
    ======================== =====================================================================
    """

    name: str
    flooding: bool = False
    advertisements: bool = False
    covering: bool = False
    merging: bool = False
    imperfect: bool = False
    mixed: bool = False  # neighbours may have another strategy

    def tells(self, kind: FilterKind) -> bool:
        """Whether neighbours are told of filters of a kind."""
        return self.advertisements if kind is FilterKind.ADVERTISEMENT else not self.flooding


_ALL = (
    Strategy("flooding", flooding=True),
    Strategy("simple"),
    Strategy("simple+covering", covering=True),
    Strategy("advertisements", advertisements=True),
    Strategy("advertisements+covering", advertisements=True, covering=True),
    Strategy("advertisements+perfect", advertisements=True, covering=True, merging=True),
    Strategy(
        "advertisements+imperfect",
        advertisements=True, covering=True, merging=True, imperfect=True,
    ),
)  # fmt: skip

STRATEGIES = tuple(strategy.name for strategy in _ALL)
_BY_NAME = {strategy.name: strategy for strategy in _ALL}


def strategy_of(name: str) -> Strategy:
    """The strategy with a name."""
    return _BY_NAME[choose("strategy", name, STRATEGIES)]


@dataclass(frozen=True)
class Odds:
    """What is known of the events that a neighbour may send, for mergers of what it is told."""

    measure: Measure
    price: float  # the most that a merger may add to the IMT for each filter that it saves
    order: tuple[str, ...] | None = None  # of attributes, in diagrams


@dataclass(frozen=True, slots=True)
class Merging:
    """When mergers are looked for, and which are good enough.

    `threshold` is the largest IMT of an imperfect merger: its degree times its probability. The
    probabilities come from `odds`, which are asked each time for the name of the neighbour, or from
    `measure`; without both, values are uniform around the constants of the filters.
    """

    policy: str = "size 8"  # see `relations.merging.policies`
    threshold: float = 0.1
    rules: str = "full"
    measure: Measure | None = None
    candidates: str = "any"  # "mbd": only filters that differ in the top attribute of a diagram
    odds: Callable[[str], Odds | None] | None = None

    def __post_init__(self) -> None:
        read_policy(self.policy)
        choose("rule set", self.rules, RULES)
        choose("candidates", self.candidates, CANDIDATES)
        if not 0 <= self.threshold <= 1:
            raise OptionError(
                f"the threshold of mergers must be from 0 to 1, not {self.threshold!r}"
            )
