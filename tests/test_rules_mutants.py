"""Files with wrong contents and right checksums neither end the process nor are misread."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_a_few_mutants():
    """A hundred times as many, with other seeds: see `rules_fuzzer`."""
    fuzzer = Path(__file__).with_name("rules_fuzzer.py")
    command = [sys.executable, str(fuzzer), "--trials", "20", "--seed", "14"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
