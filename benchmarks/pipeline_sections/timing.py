"""How long questions take, and how many events they should have."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUNDS = 3
LARGER = 8  # times as many events as before, at most


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(frame: "DataFrame") -> None:
    """Make Spark find all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def fitting(ask: Callable[[int], float], few: int, most: int, wanted: float) -> tuple[int, float]:
    """How many events make a question take about so many seconds longer than one of a few events.

    `ask` tells the seconds of a question; the second number is those of the few, which is mostly
    what any question costs.
    """
    size = min(few, most)
    fixed = seconds = min(rounds(lambda: ask(size), wanted))
    larger = LARGER if fixed < wanted else 2  # nothing is known yet of what an event costs
    while size < most and seconds - fixed < wanted / 2:
        each = max(seconds - fixed, 0.02 * wanted) / size  # an event, about
        size = min(most, larger * size, max(2 * size, int(wanted / each)))
        larger = LARGER
        seconds = ask(size)
    return size, fixed


def rounds(ask: Callable[[], float], patience: float, least: int = ROUNDS) -> list[float]:
    """Seconds of some rounds; fewer if they take longer than the patience."""
    times = [ask()]
    while len(times) < least and sum(times) < patience:
        times.append(ask())
    return times


def rate(events: int, seconds: float, few: int, fixed: float) -> float:
    """Events per second, without what any question costs, if more than a few were asked about."""
    if events > few and seconds > fixed:
        return (events - few) / (seconds - fixed)
    return events / seconds


def spread(times: Sequence[float]) -> float | None:
    """(max - min) / median, of several rounds."""
    return (max(times) - min(times)) / statistics.median(times) if len(times) > 1 else None
