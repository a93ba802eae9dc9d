"""What was measured: values of a measure for each line of a figure, at each x, with each seed."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

X = int | float | str  # a place on the horizontal axis: a number, or the name of a case


class Point(NamedTuple):
    """One value, measured with one seed."""

    line: str  # who was measured, such as an engine
    measure: str  # what was measured, a key of the experiment's `measures`
    x: X
    value: float


class Series:
    """The values of one line and measure: for each x, one for each seed, None if there is none."""

    def __init__(self, values: Mapping[X, Sequence[float | None]]) -> None:
        self._values = dict(values)

    @property
    def xs(self) -> list[X]:
        """Where there is a value, in ascending order if these are numbers."""
        xs = [x for x in self._values if self.at(x)]
        if all(isinstance(x, int | float) for x in xs):
            xs.sort(key=float)
        return xs

    def at(self, x: X) -> list[float]:
        """The values of all seeds at x."""
        return [value for value in self._values.get(x, ()) if value is not None]

    def median(self, x: X) -> float:
        return statistics.median(self.at(x))

    def by_seed(self, x: X) -> dict[int, float]:
        """The values at x, by the place of their seed."""
        found = enumerate(self._values.get(x, ()))
        return {place: value for place, value in found if value is not None}

    def ratios(self, other: "Series", x: X) -> list[float]:
        """This series divided by another at x, seed by seed; seeds whose divisor is 0 are left out.

        Both were measured with the same data in the same process, one after the other: what
        disturbs one of them often disturbs both, so their ratio is steadier than either.
        """
        return quotients(self.by_seed(x), other.by_seed(x))


def quotients(one: Mapping[int, float], two: Mapping[int, float]) -> list[float]:
    """One value divided by another for each seed that has both."""
    return [value / two[place] for place, value in one.items() if two.get(place)]


class Measurements:
    """All series of one experiment."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take the rows of a record: objects with line, measure, x and values."""
        self._series: dict[tuple[str, str], dict[X, list[float | None]]] = {}
        for row in rows:
            values = self._series.setdefault((row["line"], row["measure"]), {})
            values[row["x"]] = list(row["values"])

    def series(self, line: str, measure: str) -> Series:
        """The values of a line; there may be none."""
        return Series(self._series.get((line, measure), {}))

    def lines(self, measure: str) -> list[str]:
        """The lines of a measure, in the order in which they were measured."""
        return [line for line, one in self._series if one == measure]


def rows_of(seeds: Sequence[int], found: Mapping[int, Sequence[Point]]) -> list[dict[str, Any]]:
    """The rows of a record: what was found with each seed, side by side."""
    rows: dict[tuple[str, str, X], list[float | None]] = {}
    for place, seed in enumerate(seeds):
        for point in found.get(seed, ()):
            key = (point.line, point.measure, point.x)
            rows.setdefault(key, [None] * len(seeds))[place] = point.value
    return [
        {"line": line, "measure": measure, "x": x, "values": values}
        for (line, measure, x), values in rows.items()
    ]
