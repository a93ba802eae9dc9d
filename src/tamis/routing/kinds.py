"""The two kinds of filters that brokers pass on, and the messages about each of them."""

from enum import Enum

from tamis.routing.messages import (
    Advertise,
    FilterMessage,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)


class Kind(Enum):
    """What a filter is for; neighbours are told of advertisements first."""

    ADVERTISEMENT = "advertisement"
    SUBSCRIPTION = "subscription"


ADDING: dict[Kind, type[Advertise | Subscribe]] = {
    Kind.ADVERTISEMENT: Advertise,
    Kind.SUBSCRIPTION: Subscribe,
}
REMOVING: dict[Kind, type[Unadvertise | Unsubscribe]] = {
    Kind.ADVERTISEMENT: Unadvertise,
    Kind.SUBSCRIPTION: Unsubscribe,
}


def kind_of(message: FilterMessage) -> Kind:
    """The kind of filter that a message adds or removes."""
    if isinstance(message, Subscribe | Unsubscribe):
        return Kind.SUBSCRIPTION
    return Kind.ADVERTISEMENT
