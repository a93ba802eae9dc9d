"""Processes in virtual time: event loops that share one clock, and take turns in a fixed order.

Each process has an event loop of its own, so that it can be ended like a real one: nothing of it
runs any more, and nobody is told inside. Nothing waits in real time. When all processes wait, the
clock goes to the next timer; each round of callbacks takes a moment, so that one who asks again and
again sees time pass.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tamis.broker.simulation.wires import Wires

T = TypeVar("T")

MOMENT = 1e-5  # seconds that a round of callbacks takes


class VirtualTime:
    """The clock of all processes, and what they have to do."""

    def __init__(self) -> None:
        self.now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.Handle]] = []
        self._count = 0

    def process(self, name: str, wires: "Wires | None" = None) -> "Process":
        """A new process."""
        # It lacks some methods of an event loop, which nobody calls.
        return Process(self, name, wires)  # type: ignore[abstract]

    def soon(self, handle: asyncio.Handle) -> None:
        """Run a callback in the next round."""
        self._ready.append(handle)

    def at(self, when: float, handle: asyncio.Handle) -> None:
        """Run a callback at a time."""
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))

    def run(self, is_done: Callable[[], bool], until: float) -> bool:
        """Let everybody do what is to be done, until a condition holds.

        Returns whether it did in time.
        """
        while not is_done():
            if not self._ready:
                next_ = self._timers[0][0] if self._timers else until + 1.0
                if next_ > until:
                    self.now = until
                    return False
                self.now = max(self.now, next_)
            elif self.now > until:
                return False
            self._round()
        return True

    def _round(self) -> None:
        self.now += MOMENT
        timers, ready = self._timers, self._ready
        while timers and timers[0][0] <= self.now:
            ready.append(heapq.heappop(timers)[2])
        current: Process | None = None
        try:
            for _ in range(len(ready)):
                handle = ready.popleft()
                loop: Process = handle._loop  # type: ignore[attr-defined]  # of every handle
                if handle._cancelled or not loop.takes(handle):
                    continue
                if loop is not current:
                    asyncio._set_running_loop(loop)
                    current = loop
                handle._run()
        finally:
            asyncio._set_running_loop(None)


class Process(asyncio.AbstractEventLoop):
    """The event loop of one process."""

    def __init__(self, time: VirtualTime, name: str, wires: "Wires | None" = None) -> None:
        self.name = name
        self.is_alive = True
        self.problems: list[dict[str, Any]] = []  # what nobody has handled
        self._time = time
        self._wires = wires
        self._stalled: list[asyncio.Handle] | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._when_ended: dict[Callable[[], None], None] = {}

    # --- its life

    def takes(self, handle: asyncio.Handle) -> bool:
        """Whether a callback can run now; if the process is stalled, it runs later."""
        if self._stalled is not None and self.is_alive:
            self._stalled.append(handle)
            return False
        return self.is_alive

    def stall(self) -> None:
        """Let nothing happen in the process until it is told to go on."""
        if self._stalled is None:
            self._stalled = []

    def go_on(self) -> None:
        """Let what was held back happen."""
        held, self._stalled = self._stalled or [], None
        for handle in held:
            self._time.soon(handle)

    def end(self) -> None:
        """End the process at once: no task of it comes to its end."""
        self.is_alive = False
        for call in list(self._when_ended):
            call()
        running = asyncio._get_running_loop()
        asyncio._set_running_loop(self)  # coroutines may want to know while they are thrown away
        try:
            for task in list(self._tasks):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # of CPython's tasks
                _throw_away(task.get_coro())
        finally:
            asyncio._set_running_loop(running)
        self._tasks.clear()

    def when_ended(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when the process ends; returns one that takes that back."""
        self._when_ended[call] = None
        return lambda: self._when_ended.pop(call, None)

    # --- what asyncio asks of a loop

    def time(self) -> float:
        return self._time.now

    def call_soon(  # type: ignore[override]  # arguments are not checked
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._time.soon(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there are no threads

    def call_later(  # type: ignore[override]  # arguments are not checked
        self, delay: float, callback: Callable[..., Any], *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:  # fmt: skip
        return self.call_at(self._time.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # arguments are not checked
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._time.at(when, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is left out when its time comes."""

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # no factory is ever set
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":  # fmt: skip
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.is_alive:
            self.problems.append(context)

    # --- sockets

    async def create_server(  # type: ignore[override]  # what `asyncio.start_server` needs
        self, protocol_factory: Callable[[], Any], _: str, port: int, **__: Any
    ) -> Any:
        return self._network().listen(self, protocol_factory, port)

    async def create_connection(  # type: ignore[override]  # what `open_connection` needs
        self, protocol_factory: Callable[[], Any], _: str, port: int, **__: Any
    ) -> Any:
        return await self._network().connect(self, protocol_factory, port)

    def _network(self) -> "Wires":
        if self._wires is None:
            raise OSError(f"process {self.name!r} has no network")
        return self._wires


def _throw_away(coroutine: Any) -> None:
    """Close a coroutine, even if it wants to wait for something at its end."""
    while True:
        try:
            coroutine.close()
        except RuntimeError:  # it waited again
            continue
        except BaseException:  # noqa: BLE001, S110 - what it does now happens to nobody
            pass
        return
