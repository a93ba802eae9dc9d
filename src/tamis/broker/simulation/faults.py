"""What goes wrong in a simulated network: faults are drawn, happen, and are over after a while."""

from collections import Counter
from collections.abc import Callable
from random import Random

from tamis.broker.simulation.onlooker import Tree
from tamis.broker.simulation.simulated_broker import SimulatedBroker
from tamis.broker.simulation.virtual_time import Process
from tamis.broker.simulation.wires import Wires

Note = Callable[[str], None]


class Faults:
    """Lets things go wrong, and counts them."""

    def __init__(
        self, brokers: dict[str, SimulatedBroker], tree: Tree, wires: Wires, observer: Process,
        note: Note,
    ) -> None:  # fmt: skip
        self.counts: Counter[str] = Counter()
        self._brokers = brokers
        self._links = [(a, b) for a in tree for b in tree[a] if a < b]
        self._wires = wires
        self._observer = observer
        self._note = note
        self._is_over = False
        of_links = (self.cut, self.cut_soon, self.silence, self.delay, self.damage)
        self._all = (
            self.kill, self.power_failure, self.stop_during_write, self.stop_during_commit,
            self.vanish, self.restart, self.stall, self.full_disk, self.failing_syncs,
            self.slow_disk, self.failing_catalogue, self.clock_jump,
            *(2 * of_links if self._links else ()),
        )  # fmt: skip

    @property
    def _random(self) -> Random:
        return self._wires.random

    def happen(self) -> None:
        """Let one thing go wrong."""
        fault = self._random.choice(self._all)
        self.counts[fault.__name__] += 1
        self._note(f"fault: {fault.__name__}")
        fault()

    def end(self) -> None:
        """Mend everything, and let nothing go wrong any more."""
        self._is_over = True
        for link in self._links:
            conduit = self._wires.conduit(*link)
            conduit.is_open, conduit.delay, conduit.damages, conduit.cut_after = True, 0.0, 0, None
        for one in self._brokers.values():
            one.storage.disk.capacity, one.storage.disk.failing_syncs = None, 0.0
            one.storage.disk.restart(power_failed=False)
            one.storage.tables.failing, one.storage.tables.stop_after = 0.0, None
            self._set_slowness(one, 1.0)
            if one.process is not None:
                one.process.go_on()
            one.start()

    def keep_alive(self) -> None:
        """Start brokers whose process has ended by itself."""
        if self._is_over:
            for one in self._brokers.values():
                one.start()

    def _one(self) -> SimulatedBroker:
        found = self._random.choice(list(self._brokers.values()))
        self._note(f"    of {found.name}")
        return found

    def _link(self) -> tuple[str, str]:
        found = self._random.choice(self._links)
        self._note(f"    of {found}")
        return found

    def _later(self, longest: float, call: Callable[[], object]) -> None:
        """Do something after a while, or when all faults are over."""
        if self._random.random() < 0.2:
            return
        after = longest * self._random.random() ** 2
        self._observer.call_later(after, lambda: self._is_over or call())

    # --- processes

    def kill(self) -> None:
        """A process ends at once; what it has written stays."""
        one = self._one()
        one.crash()
        self._later(2.0, one.start)

    def power_failure(self) -> None:
        """A machine ends at once, with what was not synced."""
        one = self._one()
        one.crash(power_failed=True)
        self._later(2.0, one.start)

    def vanish(self) -> None:
        """A machine ends at once, and nobody tells its peers."""
        one = self._one()
        one.crash(power_failed=self._random.random() < 0.5, silently=True)
        self._later(4.0, one.start)

    def stop_during_write(self) -> None:
        """A process ends in the middle of one of its next writes."""
        one = self._one()
        one.storage.disk.stop_after(self._random.randint(1, 8))
        self._later(1.0, lambda: one.storage.disk.restart(power_failed=False))
        self._later(3.0, one.start)

    def stop_during_commit(self) -> None:
        """A process ends when one of its next commits is under way."""
        one = self._one()
        one.storage.tables.stop_after = self._random.randint(1, 4)
        self._later(3.0, one.start)

    def restart(self) -> None:
        """A broker is stopped, and started again."""
        one = self._one()
        if one.process is not None:
            one.process.create_task(one.stop())
        self._later(2.0, one.start)
        self._later(4.0, one.start)

    def stall(self) -> None:
        """A process does nothing for some time, maybe longer than its peers wait."""
        process = self._one().process
        if process is not None:
            process.stall()
            self._later(4.0, process.go_on)

    # --- storage

    def full_disk(self) -> None:
        """A disk is full for some time."""
        disk = self._one().storage.disk
        disk.capacity = disk.used + self._random.randrange(300)
        self._later(2.0, lambda: setattr(disk, "capacity", None))

    def failing_syncs(self) -> None:
        """Syncs fail for some time."""
        disk = self._one().storage.disk
        disk.failing_syncs = self._random.uniform(0.2, 1.0)
        self._later(2.0, lambda: setattr(disk, "failing_syncs", 0.0))

    def slow_disk(self) -> None:
        """A disk is slow for some time."""
        one = self._one()
        self._set_slowness(one, self._random.choice((20.0, 100.0, 400.0)))
        self._later(3.0, lambda: self._set_slowness(one, 1.0))

    def failing_catalogue(self) -> None:
        """The catalogue cannot be written for some time."""
        tables = self._one().storage.tables
        tables.failing = self._random.uniform(0.3, 1.0)
        self._later(2.0, lambda: setattr(tables, "failing", 0.0))

    def _set_slowness(self, one: SimulatedBroker, slowness: float) -> None:
        one.slowness = slowness
        if one.workers is not None:
            one.workers.slowness = slowness

    # --- clocks

    def clock_jump(self) -> None:
        """A wall clock jumps, forward or back."""
        self._one().clock_jump += self._random.uniform(-1.0, 1.0) * self._random.choice((5, 1e5))

    # --- links

    def cut(self) -> None:
        """A link is cut after any byte, and can be made again at once or later."""
        conduit = self._wires.conduit(*self._link())
        conduit.cut(silently=False)
        if self._random.random() < 0.3:
            conduit.is_open = True
        else:
            self._later(3.0, lambda: setattr(conduit, "is_open", True))

    def cut_soon(self) -> None:
        """A link is cut when something is written to it, and can be made again at once."""
        self._wires.conduit(*self._link()).cut_after = self._random.randint(1, 6)

    def silence(self) -> None:
        """A link carries nothing any more, and nobody is told."""
        conduit = self._wires.conduit(*self._link())
        conduit.cut(silently=True)
        self._later(3.0, lambda: setattr(conduit, "is_open", True))

    def delay(self) -> None:
        """A link is slow for some time."""
        conduit = self._wires.conduit(*self._link())
        conduit.delay = self._random.uniform(0.05, 0.6)
        self._later(3.0, lambda: setattr(conduit, "delay", 0.0))

    def damage(self) -> None:
        """Some of the next bytes of a link are damaged."""
        self._wires.conduit(*self._link()).damages += 1
