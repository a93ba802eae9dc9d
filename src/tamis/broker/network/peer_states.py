"""The state of a broker's peers, as people and metrics see it."""

from dataclasses import dataclass, field

from tamis.broker.network.link_traffic import LinkTraffic


@dataclass(frozen=True)
class PeerState:
    """The state of a peer."""

    name: str
    is_linked: bool
    lag: int  # events that it may still have to get, of all topics
    lost: int  # events that expired before it got them
    filters_held: int = 0  # of it, here
    filters_announced: int = 0  # that it was told, and holds for us
    traffic: LinkTraffic = field(default_factory=LinkTraffic)
