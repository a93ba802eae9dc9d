"""Alerts on a stock ticker: a few of many symbols are popular, and constants rarely occur twice.

A filter is ``symbol = 'S17' AND price BETWEEN 81.07 AND 99.50 AND volume >= 52000``. The symbols
S1, S2, ... follow Zipf's law, in filters and in events; the low price, the width of the range and
the volume are uniform. Prices and volumes of events are uniform and do not depend on the symbol.

Keys of the config:

* ``symbols``: how many there are
* ``exponent``: of Zipf's law
* ``price``: the lowest and the highest, whole numbers
* ``width``: of the narrowest and the widest range of prices, whole numbers; a range may go beyond
  the highest price
* ``volume``: the lowest and the highest
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.workloads.config import Config
from tamis.workloads.random_draws import Array, Chance, draw_ranks, zipf_bounds
from tamis.workloads.token_texts import chunks
from tamis.workloads.value_generators import AttributeColumn, Cents, Whole, Words

MOST_SYMBOLS = 10_000_000
HIGHEST = 10**15  # price or volume, far from where cents overflow 64 bits
_HUNDREDTHS = pa.array([f".{cents:02}" for cents in range(100)])


@dataclass(frozen=True)
class Stock:
    """This kind of workload; see the module."""

    symbols: int
    exponent: float
    price: tuple[int, int]
    width: tuple[int, int]
    volume: tuple[int, int]

    least = 0
    pairs = 3

    @classmethod
    def read(cls, config: Config) -> "Stock":
        return cls(
            symbols=config.whole("symbols", 1, MOST_SYMBOLS),
            exponent=config.number("exponent", 0, 10),
            price=config.interval("price", 0, HIGHEST),
            width=config.interval("width", 0, HIGHEST),
            volume=config.interval("volume", 0, HIGHEST),
        )

    @cached_property
    def columns(self) -> tuple[AttributeColumn, ...]:
        names = tuple(f"S{rank}" for rank in range(1, self.symbols + 1))
        low, high = self.price
        return (
            AttributeColumn("symbol", "string", Words(names, self.exponent)),
            AttributeColumn("price", "double", Cents(100 * low, 100 * high)),
            AttributeColumn("volume", "int", Whole(*self.volume)),
        )

    def parameters(self, count: int) -> dict[str, Any]:
        return {
            "subscriptions": count,
            "symbols": self.symbols,
            "exponent": self.exponent,
            "price": list(self.price),
            "width": list(self.width),
            "volume": list(self.volume),
        }

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        bounds = zipf_bounds(self.symbols, self.exponent)
        for rows in chunks(count):
            ranks = draw_ranks(chance, bounds, rows)
            lows = _cents(chance, self.price, rows)
            highs = lows + _cents(chance, self.width, rows)
            volumes = chance.integers(*self.volume, rows, endpoint=True)
            yield pc.binary_join_element_wise(
                "symbol = 'S", _whole(ranks + 1),
                "' AND price BETWEEN ", _money(lows), " AND ", _money(highs),
                " AND volume >= ", _whole(volumes),
                "",  # between them
            )  # fmt: skip


def _cents(chance: Chance, interval: tuple[int, int], count: int) -> Array:
    low, high = interval
    return chance.integers(100 * low, 100 * high, count, endpoint=True)


def _whole(numbers: Array) -> pa.StringArray:
    return pa.array(numbers).cast(pa.string())


def _money(cents: Array) -> pa.StringArray:
    hundredths = _HUNDREDTHS.take(pa.array(cents % 100))
    return pc.binary_join_element_wise(_whole(cents // 100), hundredths, "")
