"""What the broker counts while it runs, and the text in which Prometheus reads it.

Counting is one addition; everything else is done when somebody asks. All of it belongs to the
thread of the event loop: what another thread measured is handed over with its result.

A label is never what a stranger chose without bound: a family keeps `MOST_LABELS` sets of labels,
and what comes after them is counted together under the label ``other``.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

MOST_LABELS = 1_000  # sets of labels of one family, and samples of one gauge that is asked
OTHER = "other"

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)

Sample = tuple[tuple[str, ...], float]  # the values of the labels, and the number


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)
    kind = "counter"

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, count: float = 1) -> None:
        """Count something, or several of it."""
        self.value += count

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """The lines of the text format."""
        yield f"{name}{_braces(labels)} {_number(self.value)}"


class Gauge(Counter):
    """A number that grows and shrinks."""

    __slots__ = ()
    kind = "gauge"

    def set(self, value: float) -> None:
        """Take this value instead of the last one."""
        self.value = value


class Histogram:
    """How often values up to each bound were seen, and their sum."""

    __slots__ = ("bounds", "counts", "sum")
    kind = "histogram"

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last one: beyond all bounds
        self.sum: float = 0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """The lines of the text format: each bound counts everything up to it."""
        total = 0
        comma = "," if labels else ""
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels}{comma}le="{_number(bound)}"}} {total}'
        yield f"{name}_sum{_braces(labels)} {_number(self.sum)}"
        yield f"{name}_count{_braces(labels)} {total}"


M = TypeVar("M", Counter, Gauge, Histogram)


class Family(Generic[M]):
    """Metrics of one name, one for each set of labels."""

    def __init__(
        self, name: str, help_text: str, labels: tuple[str, ...], make: Callable[[], M]
    ) -> None:
        self.name = name
        self.help = help_text
        self.labels = labels
        self._make: Callable[[], M] = make
        self._members: dict[tuple[str, ...], M] = {}

    def of(self, *values: str) -> M:
        """The metric with these values of the labels: keep it where it is counted often."""
        found = self._members.get(values)
        if found is None:
            if len(values) != len(self.labels):
                raise ValueError(f"{self.name} has the labels {self.labels}, got {values}")
            if len(self._members) >= MOST_LABELS:
                values = (OTHER,) * len(self.labels)
            found = self._members.setdefault(values, self._make())
        return found

    def forget(self, value: str) -> None:
        """Leave out what has this value of the first label: a topic that is gone."""
        for values in [values for values in self._members if values[0] == value]:
            del self._members[values]

    def lines(self) -> Iterator[str]:
        """The lines of the text format."""
        yield from _head(self.name, self.help, self._make().kind)
        for values, member in self._members.items():
            yield from member.lines(self.name, _labels(self.labels, values))


class Asked(NamedTuple):
    """A metric whose samples are found out when somebody asks."""

    name: str
    help: str
    labels: tuple[str, ...]
    ask: Callable[[], Iterable[Sample]]
    kind: str = Gauge.kind

    def lines(self) -> Iterator[str]:
        """The lines of the text format, of at most `MOST_LABELS` samples."""
        yield from _head(self.name, self.help, self.kind)
        for (values, number), _ in zip(self.ask(), range(MOST_LABELS), strict=False):
            labels = _labels(self.labels, values)
            yield f"{self.name}{_braces(labels)} {_number(number)}"


class Metrics:
    """Everything that a broker counts: take a member once with `of`, then `add` or `observe`.

    What can be found out at any time is not counted: `ask_when_shown` takes a function for it, as
    for the lag of durable subscriptions.
    """

    def __init__(self) -> None:
        self._families: list[Family[Counter] | Family[Gauge] | Family[Histogram]] = []
        self._asked: dict[str, Asked] = {}
        by_topic = ("topic",)
        self.events = self._counter("events_total", "Events stored, safe on disk.", by_topic)
        self.event_bytes = self._counter(
            "event_bytes_total", "Bytes of the bodies of stored events.", by_topic
        )
        self.repeated = self._counter(
            "repeated_events_total", "Events acknowledged again: their id was stored.", by_topic
        )
        self.refused = self._counter(
            "refused_events_total", "Events refused, by a short reason.", ("topic", "reason")
        )
        self.matches = self._counter(
            "matches_total", "Pairs of an event and an attached subscription.", by_topic
        )
        self.deliveries = self._counter(
            "deliveries_total", "Events handed to subscribers, redeliveries included.", by_topic
        )
        self.redeliveries = self._counter(
            "redeliveries_total", "Events handed to a subscriber again.", by_topic
        )
        self.acknowledgements = self._counter(
            "acknowledgements_total", "Deliveries that subscribers acknowledged.", by_topic
        )
        self.dropped = self._counter(
            "dropped_deliveries_total", "Events that slow subscribers did not get.", by_topic
        )
        self.dead_letters = self._counter(
            "dead_letters_total", "Events given up after the last attempt.", by_topic
        )
        self.expired = self._counter(
            "expired_events_total", "Events removed by the retention.", by_topic
        )
        self.batch_sizes = self._histogram(
            "batch_events", "Events written and matched together.", SIZES
        )
        self.sync_seconds = self._histogram(
            "sync_seconds", "Time to make a batch safe on disk.", SECONDS
        )
        self.publish_seconds = self._histogram(
            "publish_seconds", "Time from a publication to its acknowledgement.", SECONDS
        )
        self.connections = self._gauge(
            "connections", "Open connections: http, sse, websocket, stomp.", ("protocol",)
        )
        self.requests = self._counter(
            "requests_total",
            "HTTP requests answered and STOMP frames handled, by their kind.",
            ("protocol", "kind"),
        )
        self.refusals = self._counter(
            "refusals_total",
            "Requests and frames answered with an error, by its code.",
            ("protocol", "code"),
        )

    def _counter(self, name: str, help_text: str, labels: tuple[str, ...]) -> Family[Counter]:
        family = Family(f"tamis_{name}", help_text, labels, Counter)
        self._families.append(family)
        return family

    def _gauge(self, name: str, help_text: str, labels: tuple[str, ...]) -> Family[Gauge]:
        family = Family(f"tamis_{name}", help_text, labels, Gauge)
        self._families.append(family)
        return family

    def _histogram(self, name: str, help_text: str, bounds: tuple[float, ...]) -> Histogram:
        histogram = Histogram(bounds)
        family: Family[Histogram] = Family(f"tamis_{name}", help_text, (), lambda: histogram)
        family.of()
        self._families.append(family)
        return histogram

    def ask_when_shown(
        self,
        name: str,
        help_text: str,
        labels: tuple[str, ...],
        ask: Callable[[], Iterable[Sample]],
        kind: str = Gauge.kind,
    ) -> None:
        """Show what `ask` gives; it bounds its work, and gives the largest first.

        >>> metrics = Metrics()
        >>> metrics.ask_when_shown("subscription_lag", "Events after the cursor.",
        ...     ("topic", "subscription"), lambda: [(("quotes", "alice"), 3)])
        """
        self._asked[name] = Asked(f"tamis_{name}", help_text, labels, ask, kind)

    def forget_topic(self, topic: str) -> None:
        """Leave out what was counted for a topic that is gone."""
        for family in self._families:
            if family.labels[:1] == ("topic",):
                family.forget(topic)

    def text(self) -> str:
        """All metrics in the text format of Prometheus, version 0.0.4."""
        shown: list[str] = []
        for family in self._families:
            shown += family.lines()
        for gauge in self._asked.values():
            shown += gauge.lines()
        return "\n".join(shown) + "\n"


def _head(name: str, help_text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    return ",".join(f'{n}="{_escaped(v)}"' for n, v in zip(names, values, strict=True))


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
