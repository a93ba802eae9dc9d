"""A few filters that are compiled and, for single events, also evaluated one by one in Python.

Calling compiled code takes about as long as evaluating a few filters. Which of the two is faster
depends on the filters, the events and the machine, so both are timed in *trials*: after each
change, and again later, when compiled code has seen most values of the events.
"""

from collections.abc import Callable

from tamis.engines.naive import NaiveEngine
from tamis.events.event_reader import Row
from tamis.language.expression import Expression

Condition = Callable[[Row], bool]

FEW_FILTERS, FEW_PREDICATES = 32, 400  # together; with more, compiled code is always faster
TIMED = 16  # events of a trial that are matched in each of the two ways
FIRST_PAUSE, LONGEST_PAUSE = 64, 16_384  # events between two trials; each time twice as many


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
        """Count an event and say whether compiled code is faster for it; None if it is timed."""
        if self._is_compiled_faster is not None:
            self._left -= 1
            if self._left < 0:
                self._begin_trial()
        return self._is_compiled_faster

    def note(self, seconds: float, *, compiled: bool) -> None:
        """Note how long an event of a trial took; the last one decides which way is faster."""
        times = self._times
        times[compiled].append(seconds)
        if min(map(len, times)) >= TIMED:
            # One of the faster events: new values make some slow, and so does a first call.
            without, with_it = (sorted(found)[TIMED // 4] for found in times)
            self._is_compiled_faster = with_it < without
            self._left, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)

    @property
    def conditions(self) -> list[tuple[int, Condition]]:
        """The filters as functions, by ascending handle."""
        if self._conditions is None:
            self._conditions = self._filters.conditions()
        return self._conditions
