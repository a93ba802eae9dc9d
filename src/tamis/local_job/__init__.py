"""The job of ``tamis match`` in this process, without Spark: same files, same folder, same numbers.

In: paths of events and subscriptions. Out: a folder of matches, dead letters and a summary.

The functions that Spark's workers run (`tamis.spark.*.worker`) know nothing of Spark: they take
record batches and give record batches. Here one process runs them, one after the other, over the
batches of a `FileTable`. So both jobs agree, and files of any size go through a few megabytes.
`job` is the job, `event_columns` selects what workers need, `match_files` writes the matches.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.local_job.job import LocalJob

__all__ = ["LocalJob"]


def __getattr__(name: str) -> Any:
    """Import the job when it is first used: the command line only asks whether there is one."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tamis.local_job.job import LocalJob

    return LocalJob
