"""Filters and events of a small market, selective and not, for tests of whole engines."""

import math

import numpy as np

from tamis import Schema

SMALL = Schema(
    {"i": "int", "x": "double", "s": "string", "b": "bool", "side": "enum('sell', 'buy')"}
)
TICKERS = [f"T{n}" for n in range(40)]


def stock_filters(seed, size):
    """What is selective, what is not, and what is not a conjunction; on SMALL."""
    chance = np.random.default_rng(seed)
    made = []
    for _ in range(size):
        ticker, low, high = TICKERS[chance.integers(40)], *sorted(chance.integers(-9, 9, 2))
        made.append(
            [
                f"s = '{ticker}' AND i BETWEEN {low} AND {high}",
                f"i = {low} AND x < {high}",
                f"i = {low}",
                f"x >= {low} AND x < {high} AND side = 'buy'",
                f"s IN ('{ticker}', 'T1', 'T2') AND x > {low}",
                f"s = '{ticker}' OR i > {high} AND b",
                f"NOT (i < {low} OR x > {high}) AND side <> 'sell'",
                f"s LIKE 'T{abs(low)}%' AND i <> {high}",
                f"x > i AND b IS NULL AND i >= {low}",
                f"(i = {low} OR i = {high}) AND (b OR x IS NULL)",
            ][chance.integers(10)]
        )
    return made


def stock_rows(seed, size):
    chance = np.random.default_rng(seed)
    pools = [
        [*range(-10, 10), None], [*np.arange(-10, 10, 0.5).tolist(), math.nan, None],
        [*TICKERS, None], [True, False, None], ["buy", "sell", None],
    ]  # fmt: skip
    columns = [[pool[k] for k in chance.integers(0, len(pool), size)] for pool in pools]
    return list(zip(*columns, strict=True))
