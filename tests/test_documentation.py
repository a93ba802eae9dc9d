"""What the documentation shows is run: its code, its commands, its examples."""

import ast
import doctest
import importlib
import re
import runpy
import shlex
import subprocess
from importlib.metadata import entry_points
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
    "docs/language.md", "docs/engines.md", "docs/profile.md", "docs/routing.md",
    "docs/compaction.md",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("page", PYTHON)
def test_python_blocks_run_and_say_what_they_promise(page, capsys):
    assert_blocks_are_true(page, capsys)


@pytest.mark.parametrize("page", ["README.md", "docs/spark.md"])
def test_python_blocks_on_spark_run_and_say_what_they_promise(page, spark, monkeypatch, capsys):
    manager, listeners = type(spark.streams), []
    add = manager.addListener
    monkeypatch.setattr(manager, "addListener", lambda *of: (listeners.append(of[1]), add(*of)))
    assert_blocks_are_true(page, capsys)
    for listener in listeners:  # the session has other streams
        spark.streams.removeListener(listener)


def assert_blocks_are_true(page, capsys):
    """A comment after an expression is its value: ``m.match(e)  # ['alice']``.

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
                assert repr(eval(source, names)) == promise.strip(), source  # noqa: S307 - our own pages
                kept += 1
            else:
                exec(statement, names)  # noqa: S102 - our own pages
    assert kept or "  # " not in "".join(found)
    assert capsys.readouterr().out in (ROOT / page).read_text(encoding="utf-8")


def statements(body):
    """The statements of a block, each with the comment after it."""
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


def of_spark(command):
    return command.split()[:2] in (
        ["tamis", name] for name in ("match", "profile", "compact", "demo")
    )


@pytest.mark.parametrize("command", [c for c in commands() if of_spark(c)])
def test_commands_on_spark_run(command, spark, tmp_path, monkeypatch, capsys):
    assert spark is not None
    call_in_example_folder(command, tmp_path, monkeypatch)
    assert capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    "command", [c for c in commands() if c.startswith("tamis") and not of_spark(c)]
)
def test_other_commands_run(command, tmp_path, monkeypatch, capsys):
    call_in_example_folder(command, tmp_path, monkeypatch)
    assert capsys.readouterr().out


def call_in_example_folder(command, folder, monkeypatch):
    """What the command `tamis` calls, in a folder with the files of the README."""
    write_example_files(folder)
    monkeypatch.chdir(folder)
    (tamis_command,) = entry_points(group="console_scripts", name="tamis")
    try:
        code = tamis_command.load()(shlex.split(command, comments=True)[1:])
    except SystemExit as end:  # after --help
        code = end.code
    assert not code


def test_targets_of_make_are_there():
    """What they call is shown, not run: they would run this test again, or reach beyond it."""
    lines = [c for c in commands() if not c.startswith("tamis")]
    calls = {}
    for command in lines:
        words = shlex.split(command, comments=True)
        assert words[0] == "make", command
        answer = subprocess.run(
            [*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (answer.returncode, answer.stderr) == (0, ""), command
        calls[words[1]] = answer.stdout
    assert ".venv/bin/tamis demo" in calls["demo"]
    assert all(calls.values())


def write_example_files(folder):
    for body in blocks("README.md", "text"):
        name, content = body.split("\n", 1)
        if re.fullmatch(r"\w+\.\w+:", name):
            (folder / name[:-1]).write_text(content, encoding="utf-8")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def modules_with_examples():
    source = Path(tamis.__file__).parent
    for path in sorted(source.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(source.parent).with_suffix("").parts)


@each("name", modules_with_examples())
def test_docstrings_are_true(name):
    found = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert not found.failed


@each("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
