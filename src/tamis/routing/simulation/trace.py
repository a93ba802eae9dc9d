"""A readable record of a simulation: one line per message, with its time."""

from tamis.routing.messages import Ack, Deliver, Hello, Message, Packet, Publish, Receipt, Refused
from tamis.routing.simulation.scenario import Fault


class Trace:
    """One line for everything that happens; greetings and receipts only if `verbose`."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.lines: list[str] = []
        self._verbose = verbose

    def note(self, time: float, text: str) -> None:
        self.lines.append(f"{time:9.3f}  {text}")

    def request(self, time: float, broker: str, message: Message) -> None:
        self.note(time, f"{message.sender} to {broker}: {words(message)}")

    def answer(self, time: float, client: str, message: Message) -> None:
        self.note(time, f"{message.sender} to {client}: {words(message)}")

    def sent(
        self, time: float, start: str, end: str, message: Message, arrival: float | None
    ) -> None:
        if isinstance(message, Hello | Receipt) and not self._verbose:
            return
        fate = "lost" if arrival is None else f"arrives at {arrival:.3f}"
        self.note(time, f"{start} to {end}: {words(message)}  ({fate})")

    def fault(self, time: float, fault: Fault) -> None:
        self.note(time, str(fault))


def words(message: Message) -> str:
    """A message in a few words."""
    kind = type(message).__name__
    if isinstance(message, Packet):
        return f"packet {message.number} {words(message.message)}"
    if isinstance(message, Publish):
        return f"{kind} {message.id} {message.event}"
    if isinstance(message, Deliver):
        return f"{kind} {message.id} {message.event} for {' '.join(message.subscriptions)}"
    if isinstance(message, Refused):
        return f"{kind} {message.id}: {message.reason}"
    if isinstance(message, Ack):
        return f"{kind} {message.id}"
    if isinstance(message, Hello):
        return f"{kind} session {message.session} echo {message.echo}"
    if isinstance(message, Receipt):
        return f"{kind} up to {message.number}"
    rest = [getattr(message, name, None) for name in ("id", "filter")]
    return " ".join([kind, *(str(part) for part in rest if part is not None)])
