"""Mutants: which changes are made of a text, and probes that note which test reaches a place."""

import os
import subprocess
import sys
from pathlib import Path

import mutants

TEXT = '''
import sys

"""A docstring."""
LIMIT: int = 7


@staticmethod
def decide(x: "int", flags=()) -> bool:
    """Another one."""
    if 1 < x <= LIMIT and not flags:
        print(f"{x + 1} of {len(flags)}")
        return True
    match x:
        case 3 | 4:
            x -= 1
    return x != -1 if flags else x in (5, "é") or x is None


print(decide(int(sys.argv[1])))
'''
CHANGES = [
    ("7", "(7 + 1)"),
    ("1 < x <= LIMIT and not flags", "(not (1 < x <= LIMIT and not flags))"),
    ("and", "or"),
    ("<", "<="),
    ("<=", "<"),
    *[("1", "(1 + 1)")] * 4,  # `1 <`, `x -= 1`, `-1` and `argv[1]`
    ("not flags", "flags"),
    ('print(f"{x + 1} of {len(flags)}")', "pass"),
    ("return True", "return None"),
    ("True", "False"),
    ('return x != -1 if flags else x in (5, "é") or x is None', "return None"),
    ("flags", "(not (flags))"),
    ("!=", "=="),
    ("or", "and"),
    ("in", "not in"),
    ("5", "(5 + 1)"),
    ("is", "is not"),
    ("print(decide(int(sys.argv[1])))", "pass"),
]


def found() -> list[mutants.Mutant]:
    return list(mutants.MutatedFile(Path("src/tamis/made_up.py"), TEXT).mutants())


def test_changes_of_a_text():
    """Neither annotations nor decorators, patterns, strings and what is inserted in strings."""
    assert sorted((one.before, one.after) for one in found()) == sorted(CHANGES)


def test_every_change_is_python():
    data = TEXT.encode()
    for one in found():
        compile(data[: one.start] + one.after.encode() + data[one.end :], one.path, "exec")


def test_probes_change_nothing_and_note_who_reached_them(tmp_path):
    source = tmp_path / "src" / "tamis" / "made_up.py"
    source.parent.mkdir(parents=True)
    source.write_text(TEXT, "utf-8")
    every = found()
    mutants.put_probes(every, tmp_path)
    assert "tamis_probe" in source.read_text("utf-8")
    reached: dict[str, set[str]] = {}
    for value, answer in {"3": "True", "20": "False"}.items():
        notes = tmp_path / value
        notes.mkdir()
        test = f"tests/test_made_up.py::test[{value} (x)]"
        environment = os.environ | {
            "PYTHONPATH": str(tmp_path / "src"),
            "PYTEST_CURRENT_TEST": f"{test} (call)",
            "TAMIS_PROBED": str(notes),
        }
        command = [sys.executable, str(source), value]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert said.stdout.splitlines()[-1] == answer
        lines = [line for file in notes.iterdir() for line in file.read_text().splitlines()]
        assert {line.partition(" ")[2] for line in lines} == {test}
        reached[value] = {every[int(line.partition(" ")[0])].before for line in lines}
    assert {"return True", "and", "not flags"} <= reached["3"]
    assert "or" not in reached["3"]
    assert {"or", "in", "is"} <= reached["20"]
    assert not {"return True", "not flags", "!="} & reached["20"]
