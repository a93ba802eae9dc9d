"""Compiled kernels on their way from the driver to the workers.

The driver of a cluster compiles what matching needs while the executors compile subscriptions, and
sends it as one archive. Its name has the content key of the driver's kernels, so that a worker
with the same processor and the same versions finds it, and any other compiles for itself.
"""

import atexit
import logging
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("tamis")


# --- on the driver

_archive: Path | None = None  # written once: Spark refuses another file of the same name
_sent: "WeakSet[SparkSession]" = WeakSet()


def start_compiling(spark: "SparkSession") -> None:
    """Compile what matching needs in the background, unless it is there."""
    if _shares_files(spark):
        return
    threading.Thread(target=_prepare, name="tamis-preparing", daemon=True).start()


def _prepare() -> None:
    # In a thread of its own: this loads the compiler, which takes a second.
    from tamis.engines.preparation import batch_preparation

    batch_preparation.start()


def send_code(spark: "SparkSession") -> None:
    """Bring the compiled kernels to all executors, once per session."""
    global _archive  # noqa: PLW0603 - one for the whole process, as the kernels are
    if spark in _sent or _shares_files(spark):
        return
    from tamis.engines.preparation import batch_preparation
    from tamis.kernels.kernel_cache import write_archive

    batch_preparation.wait()
    if _archive is None:
        folder = Path(tempfile.mkdtemp(prefix="tamis-kernels-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # an executor may start late
        _archive = folder / archive_name()
        write_archive(_archive)
    try:
        spark.addArtifacts(str(_archive), file=True)
    except Exception as error:  # noqa: BLE001 - Spark and Spark Connect have many
        logger.warning("compiled kernels cannot be sent, so workers compile them: %s", error)
    _sent.add(spark)


def _shares_files(spark: "SparkSession") -> bool:
    """Whether workers run here, and so find what others have compiled in the same files."""
    master = spark.conf.get("spark.master", "")
    return master is not None and master.startswith("local") and "cluster" not in master


def archive_name() -> str:
    """The name of the archive for this processor and these versions."""
    from tamis.kernels.kernel_cache import content_key

    return f"tamis-kernels-{content_key()}.zip"


# --- in the workers


def take_code() -> None:
    """Use the driver's kernels, if they are for this processor."""
    from pyspark import SparkFiles

    from tamis.kernels.kernel_cache import take_archive

    take_archive(Path(SparkFiles.get(archive_name())))
