"""The two kinds of filters that brokers pass on, and the messages about each of them."""

from enum import Enum

from tamis.routing.messages import (
    Advertise,
    FilterMessage,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)


class FilterKind(Enum):
    """What a filter is for; neighbours are told of advertisements first."""

    ADVERTISEMENT = "advertisement"
    SUBSCRIPTION = "subscription"


ADDING: dict[FilterKind, type[Advertise | Subscribe]] = {
    FilterKind.ADVERTISEMENT: Advertise,
    FilterKind.SUBSCRIPTION: Subscribe,
}
REMOVING: dict[FilterKind, type[Unadvertise | Unsubscribe]] = {
    FilterKind.ADVERTISEMENT: Unadvertise,
    FilterKind.SUBSCRIPTION: Unsubscribe,
}


def kind_of(message: FilterMessage) -> FilterKind:
    """The kind of filter that a message adds or removes."""
    if isinstance(message, Subscribe | Unsubscribe):
        return FilterKind.SUBSCRIPTION
    return FilterKind.ADVERTISEMENT
