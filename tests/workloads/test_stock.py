"""Alerts on a stock ticker."""

import re
from collections import Counter

import numpy as np
import pytest

from tamis.workloads import workload

FILTER = re.compile(
    r"symbol = 'S(\d+)' AND price BETWEEN (\d+\.\d\d) AND (\d+\.\d\d) AND volume >= (\d+)"
)


@pytest.fixture(scope="module")
def filters():
    texts = workload("stock").subscriptions(50_000)["filter"].to_pylist()
    return [FILTER.fullmatch(text).groups() for text in texts]


def test_symbols_are_zipf(filters):
    harmonic = sum(1 / rank for rank in range(1, 5001))
    events = workload("stock").events(50_000)["symbol"].to_pylist()
    for symbols in (["S" + one[0] for one in filters], events):
        counts = Counter(symbols)
        for rank in (1, 2, 5, 10):
            assert counts[f"S{rank}"] / 50_000 == pytest.approx(1 / rank / harmonic, rel=0.1)
        assert len(counts) > 4000
        assert max(int(symbol[1:]) for symbol in counts) <= 5000


def test_ranges_of_prices(filters):
    low, high = (np.array([float(one[i]) for one in filters]) for i in (1, 2))
    assert (low.min() >= 1, low.max() <= 500) == (True, True)
    assert low.mean() == pytest.approx(250.5, rel=0.02)
    width = high - low
    assert (width.min() >= 0.99, width.max() <= 45.01) == (True, True)
    assert width.mean() == pytest.approx(23, rel=0.02)


def test_volumes(filters):
    volumes = np.array([int(one[3]) for one in filters])
    assert (volumes.min() >= 1, volumes.max() <= 1_000_000) == (True, True)
    assert volumes.mean() == pytest.approx(500_000, rel=0.02)


def test_prices_of_events_have_two_decimals():
    prices = workload("stock").events(1000)["price"].to_pylist()
    assert all(price == round(price, 2) for price in prices)
    assert (min(prices) >= 1, max(prices) <= 500) == (True, True)
