"""Alerts on a stock ticker: a popular few of many symbols, constants that hardly ever come twice.

A filter is ``symbol = 'S17' AND price BETWEEN 81.07 AND 99.50 AND volume >= 52000``. The symbol is
Zipf over S1, S2, ..., in filters and in events; the low price, the width of the range and the
volume are uniform. Prices and volumes of events are uniform and do not depend on the symbol.

Keys of the config:

* ``symbols``: how many
* ``exponent``: of Zipf's law
* ``price``: the lowest and the highest, whole
* ``width``: the narrowest and the widest range of prices, whole; it may pass the highest price
* ``volume``: the lowest and the highest
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.workloads.config import Config
from tamis.workloads.distributions import Cents, Column, Whole, Words
from tamis.workloads.filter_texts import chunks
from tamis.workloads.random_draws import Array, Chance, draw_ranks, zipf_bounds

MOST_SYMBOLS = 10_000_000
HIGHEST = 10**15  # of a price and a volume: far from where cents overflow 64 bits
_HUNDREDTHS = pa.array([f".{cents:02}" for cents in range(100)])


@dataclass(frozen=True)
class Stock:
    """The recipe; see the module."""

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
    def columns(self) -> tuple[Column, ...]:
        names = tuple(f"S{rank}" for rank in range(1, self.symbols + 1))
        low, high = self.price
        return (
            Column("symbol", "string", Words(names, self.exponent)),
            Column("price", "double", Cents(100 * low, 100 * high)),
            Column("volume", "int", Whole(*self.volume)),
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
