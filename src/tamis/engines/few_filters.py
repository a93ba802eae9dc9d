"""A few filters that are compiled and, for single events, also evaluated one by one.

Calling compiled code takes about as long as evaluating them in Python. Which of the two is faster
depends on the filters, the events and the machine, so both are timed: some events each after a
change, and again later, when values are known that were new.
"""

from collections.abc import Callable

from tamis.engines.naive import NaiveEngine
from tamis.events.event_reader import Row
from tamis.language.expression import Expression

Condition = Callable[[Row], bool]

FEW_FILTERS, FEW_PREDICATES = 32, 400  # of all filters; with more, compiled code is faster
TIMED = 16  # events of a trial that are matched by compiled code, and as many that are not
FIRST_PAUSE, LONGEST_PAUSE = 64, 16_384  # events between two trials, each time twice as many


class FewFilters:
    """All filters of an engine, while they are few."""

    def __init__(self, filters: NaiveEngine, predicates: dict[int, int]) -> None:
        self._filters = filters
        self._predicates = predicates  # how many each filter has
        self._forget()

    def add(self, handle: int, expression: Expression, predicates: int) -> None:
        self._filters.add(handle, expression)
        self._predicates[handle] = predicates
        self._forget()

    def remove(self, handle: int) -> None:
        self._filters.remove(handle)
        del self._predicates[handle]
        self._forget()

    def _forget(self) -> None:
        self._conditions: list[tuple[int, Condition]] | None = None
        self._pause = FIRST_PAUSE
        self._begin_trial()

    def _begin_trial(self) -> None:
        self._times: tuple[list[float], list[float]] = [], []  # without compiled code, and with it
        self._is_compiled_faster: bool | None = None  # None until both have been timed
        self._left = 0  # events until the next trial

    @property
    def are_many(self) -> bool:
        """Whether compiled code is faster in any case."""
        counts = self._predicates.values()
        return len(counts) > FEW_FILTERS or sum(counts) > FEW_PREDICATES

    @property
    def is_compiled_next(self) -> bool:
        """Whether the next event is matched by compiled code."""
        if self._is_compiled_faster is not None:
            return self._is_compiled_faster
        return len(self._times[0]) >= TIMED

    def next_event(self) -> bool | None:
        """Whether compiled code is faster for the next event, which is counted; None to time it."""
        if self._is_compiled_faster is not None:
            self._left -= 1
            if self._left < 0:
                self._begin_trial()
        return self._is_compiled_faster

    def note(self, seconds: float, *, compiled: bool) -> None:
        """Note how long an event took."""
        times = self._times
        times[compiled].append(seconds)
        if min(map(len, times)) >= TIMED:
            # Not the slow ones: some values are new, and the first call is slow.
            without, with_it = (sorted(found)[TIMED // 4] for found in times)
            self._is_compiled_faster = with_it < without
            self._left, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)

    @property
    def conditions(self) -> list[tuple[int, Condition]]:
        """The filters as functions, by ascending handle."""
        if self._conditions is None:
            self._conditions = self._filters.conditions()
        return self._conditions
