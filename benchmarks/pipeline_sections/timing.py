"""How long calls take, and how many events they should have."""

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


def fitting(call: Callable[[int], float], few: int, most: int, wanted: float) -> tuple[int, float]:
    """How many events make a call take about `wanted` seconds longer than one of `few` events.

    `call` returns the seconds for a number of events. The second result is the seconds for the few
    events, which is mostly the fixed cost of a call.
    """
    size = min(few, most)
    fixed = seconds = min(rounds(lambda: call(size), wanted))
    larger = LARGER if fixed < wanted else 2  # the cost per event is not known yet
    while size < most and seconds - fixed < wanted / 2:
        each = max(seconds - fixed, 0.02 * wanted) / size  # about the seconds per event
        size = min(most, larger * size, max(2 * size, int(wanted / each)))
        larger = LARGER
        seconds = call(size)
    return size, fixed


def rounds(call: Callable[[], float], patience: float, least: int = ROUNDS) -> list[float]:
    """Seconds of `least` rounds, or of fewer if they take longer than the patience."""
    times = [call()]
    while len(times) < least and sum(times) < patience:
        times.append(call())
    return times


def rate(events: int, seconds: float, few: int, fixed: float) -> float:
    """Events per second, without the fixed cost of a call if there were more than a few events."""
    if events > few and seconds > fixed:
        return (events - few) / (seconds - fixed)
    return events / seconds


def spread(times: Sequence[float]) -> float | None:
    """(max - min) / median of several rounds, None for a single one."""
    return (max(times) - min(times)) / statistics.median(times) if len(times) > 1 else None
