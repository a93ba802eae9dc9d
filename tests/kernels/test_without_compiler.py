"""The kernels as plain functions, in one process that never compiles.

The marker `uncompiled` names the tests that run there a second time: those of the kernels one by
one, and one conformance test of every engine. Coverage sees the lines of the kernels only there.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PLACES = (TESTS / "kernels", TESTS / "engines" / "test_conformance.py")


@pytest.mark.long
def test_all_kernels_without_the_compiler():
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "uncompiled", *map(str, PLACES)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
