"""One contestant on one workload, in its own process, which `field.py` starts and waits for.

After each stage the process sends all that it has found so far. If it takes too long, or ends, the
results that it has sent are kept, with the reason why there are no more.
"""

import gc
import multiprocessing
import os
import signal
import statistics
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

import numpy as np
import pyarrow as pa

from engine_process import resident
from machine import described, limit_memory
from rivals import Contestant, LeftOut, contestant
from rivals.engines import Tamis
from tamis.errors import TamisError
from tamis.workloads import workload

Array = np.ndarray[Any, Any]

ROUNDS = 3  # at least
MOST_ROUNDS = 9  # if they are short
FEW = 8  # events; a contestant that is too slow for these does not take part
MANY = 64  # events of a round, if patience allows
BLOCK = 512
MOST_PAIRS = 100_000_000  # in one answer
SINGLES = 500  # events, one at a time
WARM = 2000  # subscriptions, enough for `auto` to compile them
SUBSCRIPTION_SEED, EVENT_SEED = 1, 2


@dataclass(frozen=True)
class Task:
    """What is measured; `patience` is seconds for matching, `building` seconds for building."""

    workload: str
    density: float
    size: int
    contestant: str
    events: int
    patience: float
    building: float
    memory: float  # gigabytes


@dataclass
class Outcome:
    """The results; None where there is none."""

    stage: str = "data"
    reason: str | None = None  # why something is missing
    engine: str | None = None  # at work, for "auto"
    build: float | None = None  # seconds
    bytes: int | None = None  # of the structure that answers, as it reports itself
    resident: int | None = None  # bytes by which building made the process grow
    events: int = 0  # of a round
    counted: Sequence[float] = ()  # seconds of each round
    touched: int | None = None  # bytes read in a round, as the engine reports itself
    pair_events: int = 0
    paired: Sequence[float] = ()
    pairs: int = 0  # in the answer of a round
    pair_bytes: int = 0
    single: tuple[float, float] | None = None  # seconds: median and 99th percentile, front door
    engine_single: tuple[float, float] | None = None  # the engine alone
    counts: Any = None  # of the first events, to be compared
    digest: int | None = None  # of the pairs of the first few events


class TooSlow(Exception):
    """Not even a few events are matched within the patience."""


# --- the process that waits


def run(task: Task, progress: Callable[[str], None]) -> Outcome:
    """Measure in a fresh process; end it when it takes too long."""
    seconds = {"data": task.building, "build": task.building, "few": task.patience}
    outcome = Outcome()
    with _Child(_child, task) as child:
        while outcome.stage != "done":
            progress(outcome.stage)
            limit = seconds.get(outcome.stage, 2 * task.patience)
            if not child.receives.poll(limit):
                outcome.reason = f"{_PHRASES[outcome.stage]} takes longer than {limit:g} s"
                break
            try:
                outcome = child.receives.recv()
            except EOFError:
                outcome.reason = f"the process ended ({child.ending()}) in stage {outcome.stage}"
                break
    return outcome


_PHRASES = {
    "data": "making the data", "build": "building", "few": f"an answer for {FEW} events",
    "counts": "counting", "pairs": "giving pairs", "singles": "matching one by one",
}  # fmt: skip


def machine() -> dict[str, Any]:
    """`machine.described`, measured in a fresh process."""
    with _Child(_describe, None) as child:
        found: dict[str, Any] = child.receives.recv()
    return found


class _Child:
    """A process, and the processes that it starts; all of them are ended on exit."""

    def __init__(self, work: Callable[[Any, Connection], None], task: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self.receives, self._sends = context.Pipe(duplex=False)
        self._process = context.Process(target=work, args=(task, self._sends))

    def __enter__(self) -> Self:
        self._process.start()
        self._sends.close()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._process.pid:
                os.killpg(self._process.pid, signal.SIGKILL)  # Spark's Java is one more process
        except ProcessLookupError:  # it ended, or does not lead a group yet
            self._process.kill()
        self._process.join()

    def ending(self) -> str:
        self._process.join()
        code = self._process.exitcode or 0
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"


# --- the process that measures


def _describe(_: None, sends: Connection) -> None:
    os.setsid()
    sends.send(described())


def _child(task: Task, sends: Connection) -> None:
    os.setsid()
    if not task.contestant.startswith("spark"):  # Java has its own limit
        limit_memory(task.memory)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    outcome = Outcome()
    try:
        _measure(task, outcome, sends.send)
    except MemoryError:
        outcome.reason = f"more than {task.memory:.0f} GB in stage {outcome.stage}"
    except (LeftOut, TamisError, TooSlow) as error:
        outcome.reason = str(error).partition("\n")[0]
    except Exception as error:  # noqa: BLE001 - of a library; the others still run
        traceback.print_exc()
        outcome.reason = f"{type(error).__name__}: {error}".partition("\n")[0]
    outcome.stage = "done"
    sends.send(outcome)
    sends.close()


def _measure(task: Task, outcome: Outcome, send: Callable[[Outcome], None]) -> None:
    def stage(name: str) -> None:
        outcome.stage = name
        send(outcome)

    source = workload(task.workload)
    make = contestant(task.contestant)
    runner = make(source)
    subscriptions = source.subscriptions(task.size, seed=SUBSCRIPTION_SEED)
    events = source.events(task.events, seed=EVENT_SEED, density=task.density)
    gc.disable()
    _warm_up(make(source), subscriptions.slice(0, WARM), events)
    runner.read(subscriptions)
    stage("build")
    before = resident()
    start = time.perf_counter()
    runner.build()
    outcome.build = time.perf_counter() - start
    outcome.bytes = runner.bytes()
    if isinstance(runner, Tamis):  # others had their columns before
        outcome.resident = resident() - before
        outcome.engine = runner.matcher.engine
    stage("few")
    outcome.counts = runner.count(events.slice(0, FEW))
    stage("counts")
    _count(runner, events, outcome, task.patience / 2)
    stage("pairs")
    _pair(runner, events, outcome, task.patience / 2)
    stage("singles")
    _match_singles(runner, events.slice(0, SINGLES), outcome, task.patience / 20)
    runner.close()


def _warm_up(runner: Contestant, subscriptions: pa.Table, events: pa.Table) -> None:
    """Compile the kernels, or load them."""
    runner.read(subscriptions)
    runner.build()
    for size in (1, FEW, BLOCK):
        runner.count(events.slice(0, size))
        runner.pairs(events.slice(0, size))
    runner.close()


def _count(runner: Contestant, events: pa.Table, outcome: Outcome, patience: float) -> None:
    def call(size: int) -> None:
        outcome.counts = runner.count(events.slice(0, size))

    outcome.events = fitting(call, events.num_rows, patience)
    touched = _touched(runner)
    outcome.counted = _rounds(call, outcome.events)
    after = _touched(runner)
    if touched is not None and after is not None:
        outcome.touched = (after - touched) // len(outcome.counted)


def _touched(runner: Contestant) -> int | None:
    """Bytes that the programs of an engine have read so far, if it counts them."""
    return runner.statistics().get("touched") if isinstance(runner, Tamis) else None


def _pair(runner: Contestant, events: pa.Table, outcome: Outcome, patience: float) -> None:
    first = runner.pairs(events.slice(0, FEW))
    outcome.digest = digest(first)
    mean = max(float(np.mean(outcome.counts)), 1e-9)
    most = min(events.num_rows, max(FEW, int(MOST_PAIRS / mean)))

    def call(size: int) -> None:
        found = runner.pairs(events.slice(0, size))
        outcome.pairs, outcome.pair_bytes = found.num_rows, size_of(found)

    size = fitting(call, most, patience)
    paired = _rounds(call, size)
    outcome.pair_events, outcome.paired = size, paired


def fitting(call: Callable[[int], None], most: int, patience: float) -> int:
    """How many events a round should have.

    More and more events are tried, as long as the next try should take less than a quarter of the
    patience. A round should then take a tenth of it, and less than a third in any case.
    """
    before, size = 1, min(FEW, most)
    seconds, earlier = (_steady(call, n, patience / 20) for n in (size, before))
    if seconds * ROUNDS > patience:
        raise TooSlow(f"{size} events take {seconds:,.1f} s")
    while size < most:
        one = max(seconds - earlier, 0) / max(size - before, 1)  # without the fixed cost of a call
        before, size, earlier = size, min(8 * size, most), seconds
        if seconds + one * (size - before) > patience / 4:
            size = before
            break
        seconds = _steady(call, size, patience / 20)
    rate = size / seconds
    wanted = max(rate * patience / 10, min(MANY, rate * patience / ROUNDS))
    fits = int(min(max(wanted, FEW), most))
    return fits if fits in {most, size} or fits < BLOCK else fits // BLOCK * BLOCK


def _steady(call: Callable[[int], None], size: int, patience: float) -> float:
    """Seconds of a call, the best of up to three: the first one may have to warm up."""
    times = [_seconds(call, size)]
    while len(times) < ROUNDS and sum(times) < patience:
        times.append(_seconds(call, size))
    return min(times)


def _rounds(call: Callable[[int], None], size: int) -> list[float]:
    """Seconds of each round."""
    times: list[float] = []
    while len(times) < ROUNDS or (sum(times) < 1 and len(times) < MOST_ROUNDS):
        times.append(_seconds(call, size))
    return times


def _seconds(call: Callable[[int], None], size: int) -> float:
    start = time.perf_counter()
    call(size)
    return time.perf_counter() - start


def _match_singles(
    runner: Contestant, events: pa.Table, outcome: Outcome, patience: float
) -> None:  # fmt: skip
    """One event at a time: as a dict through the front door, or as a table of one row."""
    if not isinstance(runner, Tamis):
        tables = [events.slice(n, 1) for n in range(events.num_rows)]
        outcome.single = _quantiles(runner.pairs, tables, patience)
        return
    outcome.single = _quantiles(runner.matcher.match, events.to_pylist(), patience)
    outcome.engine_single = _quantiles(runner.match_row, runner.rows(events), patience)


def _quantiles(
    call: Callable[[Any], Any], items: Sequence[Any], patience: float
) -> tuple[float, float]:
    """The median and the 99th percentile, of fewer events if they take long."""
    for item in items[:FEW]:
        call(item)
    times: list[float] = []
    for item in items:
        start = time.perf_counter()
        call(item)
        times.append(time.perf_counter() - start)
        if sum(times) > patience and len(times) >= FEW:
            break
    return statistics.median(times), float(np.quantile(times, 0.99))


def digest(pairs: pa.Table) -> int:
    """A number that is the same for the same pairs, whatever their order and types."""
    event, id_ = (np.asarray(pairs[name].cast(pa.int64())) for name in ("event", "subscription"))
    order = np.lexsort((id_, event))
    return zlib.crc32(np.stack([event[order], id_[order]]).tobytes())


def size_of(pairs: pa.Table) -> int:
    """Bytes that were written for the pairs: codes, without their dictionary."""
    return sum(
        chunk.indices.nbytes if pa.types.is_dictionary(chunk.type) else chunk.nbytes
        for column in pairs.columns
        for chunk in column.chunks
    )


# --- comparing answers


def compare(name: str, outcome: Outcome, others: dict[str, Outcome]) -> None:
    """Check that counts and pairs are the same for the events that two contestants share."""
    if outcome.paired and outcome.pair_events <= len(outcome.counts):
        counted = int(outcome.counts[: outcome.pair_events].sum())
        if counted != outcome.pairs:
            raise AssertionError(f"{name} counts {counted} matches and gives {outcome.pairs} pairs")
    for other, known in others.items():
        if outcome.counts is not None and known.counts is not None:
            size = min(len(outcome.counts), len(known.counts))
            differ = np.flatnonzero(outcome.counts[:size] != known.counts[:size])
            if len(differ):
                event = int(differ[0])
                raise AssertionError(
                    f"event {event}: {name} counts {outcome.counts[event]} matches, "
                    f"{other} {known.counts[event]}"
                )
        if None not in {outcome.digest, known.digest} and outcome.digest != known.digest:
            raise AssertionError(
                f"{name} and {other} give different pairs for the first {FEW} events"
            )
