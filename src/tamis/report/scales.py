"""From values to places in a chart: limits, ticks and their labels, bins."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

from tamis.errors import OptionError
from tamis.report.text import shown

LARGEST = 1e300  # larger values are drawn as this, so that differences are finite
TINIEST = 1e-200  # smaller values are drawn as zero
TICKS = 5  # about as many on an axis
_UNITS = ((1e12, " T"), (1e9, " G"), (1e6, " M"))


@dataclass(frozen=True)
class Scale:
    """A map of values from `low` to `high`, which differ, to places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def measured(value: Any) -> float:
    """A value as a number that can be drawn; NaN if it cannot, such as None or infinity."""
    try:
        number = float(value)
    except OverflowError:  # a whole number too large for a float
        return LARGEST if value > 0 else -LARGEST
    except (TypeError, ValueError):
        return math.nan
    if abs(number) < TINIEST:
        return 0.0
    return max(-LARGEST, min(number, LARGEST)) if math.isfinite(number) else math.nan


def limits(values: Iterable[float], *, from_zero: bool = True) -> tuple[float, float]:
    """The least and the greatest of the values, moved apart if they are (nearly) the same."""
    finite = [value for value in values if math.isfinite(value)]
    if from_zero:
        finite.append(0.0)
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    size = max(abs(low), abs(high))
    if size < TINIEST:
        return 0.0, 1.0
    if high - low <= 1e-9 * size:
        return low - 0.1 * size, high + 0.1 * size
    return low, high


def step_of(low: float, high: float, *, whole: bool = False) -> float:
    """A round distance for about `TICKS` ticks: 1, 2 or 5 times a power of ten."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if rough <= m * power * (1 + 1e-9)), 10 * power)
    return max(step, 1.0) if whole else step


def ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`.

    >>> ticks(0, 61_000), ticks(1, 20, whole=True)
    ([0.0, 20000.0, 40000.0, 60000.0], [5.0, 10.0, 15.0, 20.0])
    """
    step = step_of(low, high, whole=whole)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return list(dict.fromkeys(float(f"{n * step:.12g}") for n in range(first, last + 1)))


def rounded(low: float, high: float, *, whole: bool = False) -> tuple[float, float]:
    """The limits moved apart, so that both are at ticks."""
    step = step_of(low, high, whole=whole)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return float(f"{first * step:.12g}"), float(f"{last * step:.12g}")


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`; only some if there are many."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return [10.0**power for power in range(first, last + 1, max(1, (last - first) // TICKS))]


def labels(places: Sequence[float]) -> list[str]:
    """Ticks as texts, all in the same unit.

    >>> labels([0, 5e5, 1e6]), labels([0, 20_000])
    (['0', '0.5 M', '1 M'], ['0', '20,000'])
    """
    greatest = max((abs(place) for place in places), default=0.0)
    size, unit = next(((s, u) for s, u in _UNITS if s <= greatest < 1e15), (1.0, ""))
    return [f"{place / size:,.12g}{unit}" if place else "0" for place in places]


def bin_names(edges: Sequence[Any], count: int) -> list[str]:
    """The names of the bins of a histogram, each from an edge up to, but excluding, the next.

    With as many edges as bins, the last one has no end.

    >>> bin_names([0, 1, 2, 4], 4), bin_names([0, 0.5, 1], 2)
    (['0', '1', '2–3', '4 and more'], ['0 to 0.5', '0.5 to 1'])
    """
    whole = all(isinstance(edge, Integral) for edge in edges)
    names = []
    for start, end in pairwise(edges):
        if whole and end - start == 1:
            names.append(shown(start))
        else:
            names.append(
                f"{shown(start)}–{shown(end - 1)}" if whole else f"{shown(start)} to {shown(end)}"
            )
    if count and len(edges) == count:
        names.append(f"{shown(edges[-1])} and more")
    return names


def doubling(frequencies: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Edges and counts of a histogram of numbers from zero up, each bin twice as wide as the last.

    `frequencies` says how often each number occurs.

    >>> doubling({0: 7, 1: 5, 3: 2, 4: 1})
    ([0, 1, 2, 4, 8], [7, 5, 2, 1])
    """
    if min(frequencies, default=0) < 0:
        raise OptionError(f"bins begin at zero, and {min(frequencies)} is among the numbers")
    edges = [0, 1]
    while edges[-1] <= max(frequencies, default=0):
        edges.append(2 * edges[-1])
    counts = [0] * (len(edges) - 1)
    for number, frequency in frequencies.items():
        counts[bisect_right(edges, number) - 1] += frequency
    return edges, counts
