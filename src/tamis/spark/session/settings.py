"""The settings of a Spark session: the user's, and tamis' own for what the user did not set.

Spark reads most settings when a context starts, and by then the JVM knows the user's. A few are
read before there is a JVM (its options, the master, whether to draw a progress bar). To respect
those of the user, we read what `spark-submit` reads: the file ``spark-defaults.conf`` and the
variable ``PYSPARK_SUBMIT_ARGS``.
"""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

# For every session: timestamps without a zone are in UTC, and columns go to Python by Arrow.
EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}

# Spark would bind to the machine's outer address, which a local session does not need.
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}

_DAEMON, _OUR_DAEMON = "spark.python.daemon.module", "tamis.spark.worker_daemon"
_QUIET = Path(__file__).with_name("log4j2.properties")
_GIGABYTE = 1 << 30
_LOCAL = re.compile(r"local(?:\[(?P<threads>\*|\d+)(?:,\s*\d+)?\])?")
_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
_ON_LOOPBACK = re.compile(r"spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?(,|$)")


def settings_at_launch(conf: Mapping[str, str]) -> dict[str, str]:
    """The user's settings that ``spark-submit`` will read, as far as we can know them."""
    submitted = _submitted(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    defaults = submitted.pop("", None) or str(conf_folder() / "spark-defaults.conf")
    known = _properties(Path(defaults)) | submitted | dict(conf)
    if "spark.master" not in known and os.environ.get("MASTER"):
        known["spark.master"] = os.environ["MASTER"]
    return known


def spark_home() -> Path:
    """Where Spark is installed: ``SPARK_HOME``, or the folder of PySpark."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def conf_folder() -> Path:
    """Where Spark's configuration files are."""
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")


def is_local(master: str) -> bool:
    """Whether everything of this session runs on this machine."""
    return master.startswith("local")


def is_on_loopback(master: str) -> bool:
    """Whether a session needs no address outside this machine."""
    return is_local(master) or _ON_LOOPBACK.match(master) is not None


def launch_defaults(known: Mapping[str, str], master: str) -> dict[str, str]:
    """Settings that the JVM needs when it starts, without those that the user has set."""
    ours = {}
    if "spark.ui.showConsoleProgress" not in known:
        ours["spark.ui.showConsoleProgress"] = str(sys.stderr.isatty()).lower()
    if not _configures_logging(known):
        quiet = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
        ours["spark.driver.defaultJavaOptions"] = quiet
        if is_local(master):  # executors elsewhere do not have the file
            ours["spark.executor.defaultJavaOptions"] = quiet
    return ours


def context_defaults(master: str) -> dict[str, str]:
    """Settings for a new context on `master`."""
    ours = dict(EVERYWHERE)
    if is_on_loopback(master):
        ours |= LOOPBACK
    if is_local(master):
        if workers_find_tamis():
            ours[_DAEMON] = _OUR_DAEMON
        ours["spark.ui.enabled"] = "false"
        ours["spark.sql.shuffle.partitions"] = str(2 * cores_of(master))
    return ours


def workers_find_tamis() -> bool:
    """Whether a new Python finds tamis: it is installed, or ``PYTHONPATH`` leads to it."""
    if os.name != "posix":
        return False  # Spark has no daemon there
    home = Path(__file__).parents[3]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if any(path and Path(path).resolve() == home for path in paths):
        return True
    try:
        return bool(metadata.version("tamis"))
    except metadata.PackageNotFoundError:
        return False


def has_our_workers(conf: Mapping[str, str]) -> bool:
    """Whether workers are made by our daemon, with the Python that runs this."""
    is_ours = conf.get(_DAEMON) == _OUR_DAEMON
    return is_ours and os.environ.get("PYSPARK_PYTHON") == sys.executable


def launch_environment(master: str) -> dict[str, str]:
    """Environment variables for the JVM; those of the user and of ``spark-env.sh`` win."""
    ours = {}
    if is_on_loopback(master):
        ours["SPARK_LOCAL_IP"] = "127.0.0.1"
    if is_local(master):
        ours["SPARK_DRIVER_MEMORY"] = f"{driver_memory() // (1 << 20)}m"
    return ours


def cores_of(master: str) -> int:
    """How many tasks a local master runs at once."""
    if cluster := _CLUSTER.fullmatch(master):
        return max(1, int(cluster[1]) * int(cluster[2]))
    local = _LOCAL.fullmatch(master)
    threads = local["threads"] if local else None
    if threads == "*":
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    return max(1, int(threads or 1))


def driver_memory() -> int:
    """Bytes for the JVM of a local session: a quarter of the memory, the rest is for Python."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            machine = min(machine, int(Path(limit).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return min(max(machine // 4, _GIGABYTE), 16 * _GIGABYTE)


def _configures_logging(known: Mapping[str, str]) -> bool:
    """Whether the user has configured how Spark logs."""
    if os.environ.get("LOG4J_CONFIGURATION_FILE") or "spark.log.level" in known:
        return True
    if any(conf_folder().glob("log4j2*")):
        return True
    options = ("extraJavaOptions", "defaultJavaOptions")
    return any("log4j" in known.get(f"spark.driver.{option}", "") for option in options) or (
        "spark.driver.defaultJavaOptions" in known
    )


def _submitted(arguments: str) -> dict[str, str]:
    """The settings among arguments of ``spark-submit``; "" is the path of another defaults file."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--conf", "-c", action="append", default=[])
    flags = {
        "--master": "spark.master",
        "--name": "spark.app.name",
        "--driver-memory": "spark.driver.memory",
        "--driver-java-options": "spark.driver.extraJavaOptions",
        "--remote": "spark.remote",
        "--properties-file": "",
    }
    for flag in flags:
        parser.add_argument(flag, dest=flag)
    try:
        found, _ = parser.parse_known_args(shlex.split(arguments))
    except (argparse.ArgumentError, ValueError):
        return {}  # Spark itself will complain about them
    values = vars(found)
    settings = dict(pair.partition("=")[::2] for pair in values.pop("conf"))
    return settings | {flags[flag]: value for flag, value in values.items() if value is not None}


def _properties(path: Path) -> dict[str, str]:
    """A file of Java properties: ``key value``, ``key=value`` or ``key: value``, one per line."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = {}
    for line in text.replace("\\\n", "").splitlines():
        found = re.match(r"\s*([^#!\s=:][^\s=:]*)\s*[=:]?\s*(.*?)\s*$", line)
        if found:
            pairs[found[1]] = found[2]
    return pairs
