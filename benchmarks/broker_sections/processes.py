"""Load generators as processes, on another core than the broker."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from broker_sections.servers import Server

FOLDER = Path(__file__).parents[1]


def cores() -> tuple[set[int], set[int]]:
    """The core of the broker, and those of the load generators."""
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others) or {first}


def pin(server: Server) -> None:
    """Keep all threads of a broker on its one core."""
    for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores()[0])


def begun(module: str, task: Any) -> "subprocess.Popen[str]":
    """A load generator with this task."""
    pipe = subprocess.PIPE
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", f"broker_sections.{module}", json.dumps(task._asdict())],
        cwd=FOLDER, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores()[1]),  # noqa: PLW1509 - one thread
    )  # fmt: skip


def generate(module: str, task: Any) -> dict[str, Any]:
    """Run a load generator with this task, and return what it found."""
    with begun(module, task) as generator:
        output, errors = generator.communicate()
    if generator.returncode:
        raise GeneratorError(errors.strip()[-600:] or "it failed")
    return dict(json.loads(output.splitlines()[-1]))


def wait_for_line(generator: "subprocess.Popen[str]") -> None:
    """Wait until a load generator says something."""
    if generator.stdout is None or not generator.stdout.readline():
        raise GeneratorError("the load generator ended")


def go_on(generator: "subprocess.Popen[str]") -> None:
    """Let a load generator go on that waits for a line."""
    if generator.stdin is not None:
        generator.stdin.write("\n")
        generator.stdin.flush()


class GeneratorError(Exception):
    """A load generator that failed, or got what it should not get."""
