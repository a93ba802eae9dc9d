"""What the metrics of a broker say about its peers."""

from collections.abc import Callable, Iterator
from functools import partial

from tamis.broker.metrics import Counter, Metrics, Sample
from tamis.broker.network.peer_states import PeerState

COUNTED = {
    "bytes_sent": "Bytes sent to a peer.",
    "bytes_received": "Bytes that came from a peer.",
    "frames_sent": "Frames sent to a peer.",
    "frames_received": "Frames that came from a peer.",
    "events_sent": "Events sent to a peer.",
    "events_received": "Events that came from a peer.",
    "filters_sent": "Filters announced to a peer, or withdrawn.",
    "filters_received": "Filters that a peer announced, or withdrew.",
    "false_positives": "Events of a peer that nobody here or beyond wanted.",
}

Ask = Callable[[], list[PeerState]]


def show_peers(metrics: Metrics, ask: Ask) -> None:
    """Show the peers that `ask` gives."""
    metrics.ask_when_shown(
        "peer_lag", "Events that a peer may still have to get.", ("peer", "link"),
        partial(_lags, ask),
    )  # fmt: skip
    metrics.ask_when_shown(
        "peer_filters", "Filters that are held of a peer, or announced to it.", ("peer", "which"),
        partial(_filters, ask),
    )  # fmt: skip
    for name, help_text in COUNTED.items():
        counts = partial(_counts, ask, name)
        metrics.ask_when_shown(f"peer_{name}_total", help_text, ("peer",), counts, Counter.kind)


def _lags(ask: Ask) -> Iterator[Sample]:
    for one in ask():
        yield (one.name, "up" if one.is_linked else "down"), float(one.lag)


def _filters(ask: Ask) -> Iterator[Sample]:
    for one in ask():
        yield (one.name, "held"), float(one.filters_held)
        yield (one.name, "announced"), float(one.filters_announced)


def _counts(ask: Ask, name: str) -> Iterator[Sample]:
    for one in ask():
        yield (one.name,), float(getattr(one.traffic, name))
