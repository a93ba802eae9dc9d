"""Functions of the number of subscriptions, from what `growth.py` has measured.

Of `k` subscriptions on average, as many as Poisson's law says are there. *roots* are those that no
other one covers. The next one is a root when it comes with the probability that any one of them is,
because their order says nothing; so *announced*, the number of those that were roots when they
came, is the sum of roots(i) / i. *matched* is the probability that an event matches one of them.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Curve = Callable[[Array], Array]
SMALL = 60  # subscriptions, up to which chance is taken into account
STEPS = 400  # of a curve
LEAST, MOST = 1e-6, 2e6


@dataclass(frozen=True)
class Curves:
    """How a set of subscriptions grows."""

    roots: Curve
    announced: Curve
    matched: Curve
    part: float  # of the subscriptions, that match an event on average
    measured: int  # roots were counted up to this many subscriptions; beyond, the slope is the last
    seen: int  # events were matched with this many; with more, rarer matches would be found


def curves(points: Iterable[tuple[float, float]], seen: int, counts: Iterable[int]) -> Curves:
    """The curves of measured roots, and of the numbers of `seen` filters that events match."""
    some = [(size, roots) for size, roots in points if roots]  # the first may match nothing ever
    sizes, roots = (np.array(column, float) for column in zip(*some, strict=True))
    grid = np.geomspace(LEAST, MOST, STEPS)
    expected = _poisson(grid, sizes, roots)
    chance = expected / grid  # that the next one is a root
    steps = 0.5 * (chance[1:] + chance[:-1]) * np.diff(grid)
    announced = np.concatenate([[LEAST], LEAST + np.cumsum(steps)])
    parts = np.array(list(counts)) / seen
    matched = np.array([np.mean(-np.expm1(-k * parts)) for k in grid])
    return Curves(
        _curve(grid, expected), _curve(grid, announced), _curve(grid, matched),
        float(parts.mean()), int(sizes[-1]), seen,
    )  # fmt: skip


def _poisson(grid: Array, sizes: Array, roots: Array) -> Array:
    """The expected roots of a random number of subscriptions, with these means."""
    most = 4 * SMALL
    counts = np.arange(1, most + 1)
    known = _straight(sizes, roots)(counts.astype(float))
    logarithms = np.cumsum(np.log(counts))
    found = _straight(sizes, roots)(np.maximum(grid, 1.0))
    for place in np.flatnonzero(grid <= SMALL):
        weights = np.exp(counts * np.log(grid[place]) - grid[place] - logarithms)
        found[place] = weights @ known
    return found


def _straight(sizes: Array, values: Array) -> Curve:
    """Straight between points in logarithms, and beyond the last one as before it."""
    x, y = np.log(sizes), np.log(values)
    last = max(np.searchsorted(sizes, sizes[-1] / 10), 1)
    slope = (y[-1] - y[last - 1]) / (x[-1] - x[last - 1]) if len(x) > 1 else 1.0

    def value(numbers: Array) -> Array:
        where = np.log(numbers)
        beyond = y[-1] + slope * (where - x[-1])
        return np.asarray(np.exp(np.where(where > x[-1], beyond, np.interp(where, x, y))))

    return value


def _curve(grid: Array, values: Array) -> Curve:
    x, y = np.log(grid), np.log(values)

    def value(numbers: Array) -> Array:
        found = np.exp(np.interp(np.log(np.maximum(numbers, LEAST)), x, y))
        return np.asarray(np.where(numbers < LEAST, numbers * (found / LEAST), found))

    return value


def read_curves(path: Path) -> tuple[dict[str, Curves], dict[str, Any]]:
    """The curves of each set, and how fast one broker alone is, from the file of `growth.py`."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    matches = {line["set"]: line for line in lines if line["kind"] == "matches"}
    roots = {line["set"]: line["points"] for line in lines if line["kind"] == "roots"}
    central = next(line for line in lines if line["kind"] == "central")
    return {
        name: curves(points, matches[name]["subscriptions"], matches[name]["counts"])
        for name, points in roots.items()
    }, central
