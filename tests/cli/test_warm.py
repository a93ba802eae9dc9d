"""``tamis warm`` compiles everything, and says where it is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.cli import main
from tamis.engines.rehearsal import rehearse_matching
from tamis.kernels import (
    kernel_cache,
    match_bits,
    one_event,
    predicate_rows,
    programs,
    text_facts,
)
from tamis.kernels.kernel_cache import KernelCache


def warm(*arguments):
    """The output of the command in a process of its own, where no kernel is loaded yet."""
    answer = subprocess.run(
        [sys.executable, "-m", "tamis", "warm", "--only", "matching", *map(str, arguments)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert answer.stderr == ""
    return answer.stdout


@pytest.mark.long
def test_all_kernels_of_matching(tmp_path, monkeypatch):
    """Every kernel that Python calls is there, for the types that matching has."""
    rehearse_matching()  # compiled here for the whole run, and only copied by the command
    report = json.loads(warm("--to", tmp_path, "--json"))
    folder = Path(report["folder"])
    assert folder == tmp_path / "tamis" / kernel_cache.content_key()
    names = {path.name.partition("-")[0] for path in folder.glob(f"*{kernel_cache.SUFFIX}")}
    for module in (predicate_rows, programs, match_bits, one_event, text_facts):
        for name, kernel in vars(module).items():
            is_called = isinstance(getattr(kernel, "_cache", None), KernelCache)
            if is_called and kernel.py_func.__module__ == module.__name__:
                assert f"{module.__name__.rpartition('.')[2]}.{name}" in names
    assert report["kernels"] == len(list(folder.glob(f"*{kernel_cache.SUFFIX}")))
    assert report["bytes"] > 100_000
    assert report["compiled"] == 0

    # Where nothing else is kept, what is missing is compiled.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    smallest = min(folder.glob(f"*{kernel_cache.SUFFIX}"), key=lambda path: path.stat().st_size)
    smallest.unlink()
    again = warm("--to", tmp_path).splitlines()
    assert again[0].startswith(f"{report['kernels']} kernels, ")
    assert again[0].endswith(f" MB, in {folder}")
    assert again[1].startswith("1 kernel compiled in ")
    assert smallest.exists()


def test_a_folder_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main(["warm", "--to", str(tmp_path / "file")]) == 1
    assert "files cannot be written there" in capsys.readouterr().err


def test_nowhere_to_keep_it(capsys, monkeypatch):
    monkeypatch.setattr(kernel_cache, "can_be_written", lambda _: False)
    monkeypatch.setattr(kernel_cache, "usual_folder", lambda: None)
    assert main(["warm"]) == 1
    assert "--to FOLDER" in capsys.readouterr().err
