"""What one call of a broker sends, and the time of that call."""

from tamis.routing.messages import Message, Sends


class Outbox:
    """Messages in the order in which they are to be sent."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sends: Sends = []

    def put(self, receiver: str, message: Message) -> None:
        """Send a message to a client or a neighbour."""
        self._sends.append((receiver, message))

    def take_all(self) -> Sends:
        """All messages since the last time; the outbox is empty then."""
        sends, self._sends = self._sends, []
        return sends
