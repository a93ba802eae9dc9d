"""What the documentation shows is run: its code, its commands, its examples."""

import ast
import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from cases import each

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/language.md", "docs/engines.md", "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page, kind):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [body for language, body in BLOCK.findall(text) if language == kind]


PYTHON = [
    "README.md", "docs/language.md", "docs/engines.md", "docs/spark.md", "docs/profile.md",
    "docs/routing.md", "docs/compaction.md",
]  # fmt: skip


@pytest.mark.parametrize("page", PYTHON)
def test_python_blocks_run_and_say_what_they_promise(page, capsys):
    """A value behind an expression is its own: ``m.match(e)  # ['alice']``.

    What a block prints stands on the page, too.
    """
    names = {}
    found = blocks(page, "python")
    assert found
    kept = 0
    for body in found:
        for statement in statements(body):
            source, _, promise = statement.partition("  # ")
            if is_value(promise) and is_expression(source):
                assert repr(eval(source, names)) == promise.strip(), source  # noqa: S307
                kept += 1
            else:
                exec(statement, names)  # noqa: S102
    assert kept or "  # " not in "".join(found)
    assert capsys.readouterr().out in (ROOT / page).read_text(encoding="utf-8")


def statements(body):
    """The statements of a block, each with the remark behind it."""
    lines = body.splitlines()
    for node in ast.parse(body).body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        yield "\n".join(lines[first - 1 : node.end_lineno])


def test_the_error_that_the_readme_shows():
    with pytest.raises(tamis.TypeMismatch) as caught:
        tamis.parse("company = 'x' AND prise < 3", {"company": "string", "price": "double"})
    assert str(caught.value) in (ROOT / "README.md").read_text(encoding="utf-8")


def is_value(promise):
    """Whether a comment is a value, and not a remark."""
    try:
        ast.literal_eval(promise.strip())
    except (SyntaxError, ValueError):
        return False
    return True


def is_expression(source):
    try:
        compile(source.strip(), "line", "eval")
    except SyntaxError:
        return False
    return True


def commands():
    for page in PAGES:
        for body in blocks(page, "console"):
            yield from (line[2:] for line in body.splitlines() if line.startswith("$ "))


@pytest.mark.parametrize("command", list(commands()))
def test_commands_run(command, tmp_path):
    """Those of `make` in the repository, those of `tamis` in a folder with the README's files."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        # Only demo is run, a small one: the others would run this test again, or reach beyond it.
        small = "DEMO=--events 4000 --subscriptions 1000 --out " + str(tmp_path / "demo")
        call, folder = [*words, small if words[1:] == ["demo"] else "--dry-run"], ROOT
    else:
        assert words[0] == "tamis", command
        write_example_files(tmp_path)
        call, folder = [str(Path(sys.executable).parent / "tamis"), *words[1:]], tmp_path
    answer = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


def write_example_files(folder):
    for body in blocks("README.md", "text"):
        name, content = body.split("\n", 1)
        if re.fullmatch(r"\w+\.\w+:", name):
            (folder / name[:-1]).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example, tmp_path):
    answer = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


def module_names():
    packages = pkgutil.walk_packages(tamis.__path__, "tamis.")
    return ["tamis", *(m.name for m in packages if not m.name.endswith("__main__"))]


@each("name", module_names())
def test_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@each("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
