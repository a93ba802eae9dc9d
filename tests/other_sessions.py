"""Spark sessions that cannot live beside the one of the suite: on a cluster, and through Connect.

Each has a process of its own, which is started once and serves all tests that need such a session.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("session_process.py")
CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.cores.max": "2",
    # Not before both executors are there: the first alone might do all of it.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "1h",
}
CONNECT = {"spark.remote": "local[2]", "spark.sql.shuffle.partitions": "3"}


class OtherSession:
    """A session in a process whose working folder is `folder`."""

    def __init__(self, conf: dict[str, str], folder: Path) -> None:
        self.folder = folder
        self._errors = folder.with_name(folder.name + ".stderr")
        # A test server of Connect takes any free port, not the one that another server has.
        environment = {k: v for k, v in os.environ.items() if k != "SPARK_HOME"}
        environment |= {"SPARK_TESTING": "1"} if "spark.remote" in conf else {}
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), json.dumps(conf)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True, cwd=folder, env=environment,
            )  # fmt: skip

    def run(self, code: str, given: object = None) -> tuple[object, str]:
        """What ``main(spark, given)`` of a program returns, and what it wrote to standard error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = self._errors.stat().st_size
        print(json.dumps({"code": code, "given": given}), file=self._process.stdin, flush=True)
        answers = (line.partition(" ") for line in self._process.stdout)
        found = ((kind, text) for kind, _, text in answers if kind in ("said", "failed"))
        kind, text = next(found, ("ended", '""'))
        written = self._errors.read_bytes()[before:].decode()
        assert kind == "said", f"{json.loads(text)}\n{written[-5000:]}"
        return json.loads(text), written

    def stop(self) -> None:
        self._process.communicate()
