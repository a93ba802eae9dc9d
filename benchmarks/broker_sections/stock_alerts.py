"""Stock alerts: events are quotes, filters are ``symbol = 'S7' AND level <> 'low'``.

Each filter is about a symbol of its own, and quotes are of symbols chosen at random, so that three
of four events match one filter, whatever the number of filters. Values are texts: STOMP has only
texts in headers, which the selectors of ActiveMQ read, and the Debian package of ActiveMQ refuses
its own prefix ``convert_string_expressions:``, which would make them numbers.
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

TOPIC = "quotes"
SCHEMA = {"symbol": "string", "level": "string", "price": "double", "mark": "string"}
LEVELS = ("low", "middle", "high", "top")
MARK = "#quote#"  # once in each event, so that a client can count events without reading them


class Quote(NamedTuple):
    """An event."""

    symbol: str
    level: str

    def json(self) -> bytes:
        """The event as JSON."""
        return b'{"symbol":"%b","level":"%b","price":12.5,"mark":"%b"}' % (
            self.symbol.encode(), self.level.encode(), MARK.encode(),
        )  # fmt: skip


class Alerts:
    """Filters, and the quotes for them; the same seed gives the same."""

    def __init__(self, filters: int, seed: int = 1) -> None:
        self._filters = filters
        generator = random.Random(seed)
        self._refused = [generator.choice(LEVELS) for _ in range(filters)]
        self._draw = random.Random(seed + 1)

    def filter(self, number: int) -> str:
        """The text of a filter, which JMS selectors and tamis read alike."""
        return f"symbol = 'S{number}' AND level <> '{self._refused[number]}'"

    def quotes(self) -> Iterator[Quote]:
        """Quotes without end."""
        symbols = max(self._filters, 1)
        while True:
            yield Quote(f"S{self._draw.randrange(symbols)}", self._draw.choice(LEVELS))

    def count(self, quotes: "list[Quote]", into: "Counter[int]") -> int:
        """Count who gets these quotes; without filters, one subscriber gets them all."""
        if not self._filters:
            into[0] += len(quotes)
            return len(quotes)
        found = 0
        for symbol, level in quotes:
            number = int(symbol[1:])
            if level != self._refused[number]:
                into[number] += 1
                found += 1
        return found


def lines(quotes: "list[Quote]") -> bytes:
    """Quotes as JSON lines."""
    return b"\n".join(quote.json() for quote in quotes)
