"""The time of a run: after a warm-up, in seconds of the clock and of the broker's processor."""

import os
import time
from pathlib import Path

LONGEST_WARM_UP = 3.0  # of the time of a run
WARM_UP = 0.25  # of the time of a run, before it: code is loaded, compiled, and in caches


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Runs for some seconds after a warm-up, and measures only those.

    The warm-up has at least that many events, if they do not take too long.
    """

    def __init__(self, pid: int, seconds: float, least: int = 0) -> None:
        self._pid = pid
        self._seconds = seconds
        self._least = least
        self._longest = time.perf_counter() + LONGEST_WARM_UP * seconds
        self._end = time.perf_counter() + WARM_UP * seconds
        self._begun: tuple[float, float, int] | None = None

    def goes_on(self, done: int) -> bool:
        """Whether there is time left; `done` is the number of events so far."""
        now = time.perf_counter()
        is_warm = now >= self._end and (done >= self._least or now >= self._longest)
        if self._begun is None and is_warm:
            self._begun = now, cpu_seconds(self._pid), done
            self._end = now + self._seconds
        return self._begun is None or now < self._end

    def result(self, done: int) -> dict[str, float]:
        """Events, seconds and processor time since the warm-up."""
        if self._begun is None:
            raise SystemExit("the run ended in its warm-up")
        begun, cpu, before = self._begun
        return {
            "events": done - before, "seconds": time.perf_counter() - begun,
            "cpu": cpu_seconds(self._pid) - cpu,
        }  # fmt: skip
