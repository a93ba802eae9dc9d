"""A compiled file on its way to the workers, and their cache of opened files.

Spark brings a file to each executor once. All workers of an executor map the same file,
so its pages are in memory once. A worker keeps what it has opened for the tasks that follow.

Subscriptions of a stream change. A worker then has the file of some version, and makes the changes
since that version in its own matcher: a change costs microseconds there, and nothing is compiled or
sent again. Each micro-batch brings all changes since the file, of which the worker makes those that
it has not made yet.
"""

import atexit
import shutil
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.container import trust
from tamis.matcher import Matcher
from tamis.spark.compile.sent_code import send_code, take_code
from tamis.spark.compile.worker import ONE_THREAD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Changes = dict[str | int, str | None]  # the new filter of each id that changed, None if removed

OPENED = 4  # files that a worker keeps open


# --- on the driver


def send_to_executors(spark: "SparkSession", path: Path) -> str:
    """Bring a file to all executors, and the kernels that match with it.

    Returns the name under which workers find it.
    """
    send_code(spark)
    spark.addArtifacts(str(path), file=True)
    return path.name


def folder_for_files() -> Path:
    """A folder that lives as long as the driver: an executor may start late and need a file."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-rules-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# --- in the workers


class _Opened(NamedTuple):
    """The matcher of a file, and the changes that were made in it."""

    matcher: Matcher
    made: Changes


_opened: "OrderedDict[str, _Opened]" = OrderedDict()  # the most recently used last


@dataclass(frozen=True)
class SentRules:
    """Opens the rules that a worker was sent, and makes the changes since they were compiled.

    The driver has written or checked the file. If it gives the fingerprint, workers need not check
    the file again.
    """

    name: str
    changes: Changes = field(default_factory=dict)
    fingerprint: str | None = None

    def __call__(self) -> Matcher:
        """The matcher of the rules; the one of an earlier task, if this worker has it."""
        from pyspark import SparkFiles

        take_code()
        opened = _opened.pop(self.name, None)
        # A micro-batch that is repeated may be of an older version: then the file is opened again.
        if opened is None or not opened.made.keys() <= self.changes.keys():
            if self.fingerprint is not None:
                trust(self.fingerprint)
            opened = _Opened(Matcher.load(SparkFiles.get(self.name), options=ONE_THREAD), {})
        make_changes(opened.matcher, opened.made, self.changes)
        _opened[self.name] = opened
        while len(_opened) > OPENED:
            _opened.popitem(last=False)
        return opened.matcher


def make_changes(matcher: Matcher, made: Changes, changes: Changes) -> None:
    """Make the changes that were not `made` yet, and add them to those."""
    nothing = object()
    new = {
        subscription: text
        for subscription, text in changes.items()
        if made.get(subscription, nothing) != text
    }
    for subscription, text in new.items():
        if text is None and subscription in matcher:
            matcher.unsubscribe(subscription)
    added = [pair for pair in new.items() if pair[1] is not None]
    if added:
        matcher.subscribe_many(added)
    made.update(changes)
