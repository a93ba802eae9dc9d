"""What a broker admits from its clients; everything else is refused with a reason.

Each function raises an error whose text is the reason that the client is told in a `Refused`.
Nothing is changed before all of them have passed.
"""

from collections.abc import Iterable, Mapping

from tamis.errors import RoutingError
from tamis.events.event_reader import Row
from tamis.routing.filter_cache import FilterCache
from tamis.routing.kinds import kind_of
from tamis.routing.messages import Advertise, Subscribe, Unadvertise, Unsubscribe

LISTED = 3  # advertisements that a message lists


def admitted_filter(
    message: Subscribe | Advertise, held: Mapping[str, str], limit: int, cache: FilterCache
) -> str:
    """The printed text of a client's new filter; `held` are the ones it has, by their ids."""
    expression = cache.parse(message.filter)
    if len(held) >= limit and message.id not in held:
        noun = kind_of(message).value
        raise RoutingError(
            f"{message.sender!r} already has {len(held):,} {noun}s, which is the broker's limit"
        )
    if not cache.can_match(expression):
        raise RoutingError(f"no event can ever match {str(expression)!r}; nothing was changed")
    return str(expression)


def check_removal(message: Unsubscribe | Unadvertise, held: Mapping[str, str]) -> None:
    """Raise an error if a client removes a filter that it does not have."""
    if message.id not in held:
        noun = kind_of(message).value
        raise RoutingError(f"{message.sender!r} has no {noun} {message.id!r}")


def check_advertised(
    client: str, row: Row, advertisements: Iterable[str], cache: FilterCache
) -> None:
    """Raise an error if a client publishes an event that it has not advertised."""
    texts = list(dict.fromkeys(advertisements))
    if any(cache.condition(text)(row) for text in texts):
        return
    if not texts:
        raise RoutingError(f"{client!r} has advertised nothing; advertise before publishing")
    listed = "; ".join(texts[:LISTED]) + ("; ..." if len(texts) > LISTED else "")
    raise RoutingError(
        f"the event matches no advertisement of {client!r}, which has advertised: {listed}"
    )
