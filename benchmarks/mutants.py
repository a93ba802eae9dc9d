"""How many small changes of the source the tests notice: a measurement of the suite.

    $ python benchmarks/mutants.py --count 150 --json mutants.jsonl
    $ python benchmarks/mutants.py --again mutants.jsonl --seconds 120   # more tests for survivors

A mutant is one small change in one place: a comparison turned around, a constant one larger, a
condition negated, a call left out. The places are drawn at random, with a seed. First the tests are
run once on a copy of the tree that has a probe in each place, which notes the test that reaches it,
in whatever process. Then each mutant whose place was reached is written into a copy of the tree,
and the tests that reach it are run there until one fails: first quick ones that need no Spark, and
one of the others if none of them does. Kernels have no probes, because compiled code cannot call
them: their mutants are tried without the compiler, with the tests named after the kernel. A mutant
that no test notices survives.
"""

import argparse
import ast
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from defusedxml import ElementTree

ROOT = Path(__file__).parent.parent
SOURCE = Path("src/tamis")
MOST_SECONDS = 10.0  # that the tests of one mutant took in the run with probes, all together
TESTS_PER_SECOND = 4  # how many they may be
PROBED = 3  # places with a probe for each mutant that is wanted; some are not reached
PATIENCE = 150.0  # seconds; a mutant that makes a test wait for ever is noticed, too

SWAPPED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
}


# A module of the copy that has probes. A process that a test starts inherits the name of the test.
# Those of Spark would have the name of the test that started Spark, whichever test they work for;
# they note no name.
PROBE = """
import os
_noted = set()
def reached(place):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if "SPARK_ENV_LOADED" in os.environ:
        test = ""
    folder = os.environ.get("TAMIS_PROBED")
    if folder and (place, test) not in _noted:
        _noted.add((place, test))
        with open(f"{folder}/{os.getpid()}", "a", encoding="utf-8") as file:
            file.write(f"{place} {test}\\n")
"""


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from `start` to `end` of a file become `after`.

    The expression or call around them is from `first` to `last`.
    """

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str
    first: int
    last: int


class MutatedFile:
    """All mutants of one file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._data = text.encode()
        self._tree = ast.parse(text)
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def mutants(self) -> Iterator[Mutant]:
        left_alone = {id(inner) for outer in ast.walk(self._tree) for inner in _left_alone(outer)}
        for node in ast.walk(self._tree):
            if id(node) not in left_alone:
                yield from self._of_node(node)

    def _of_node(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left, operators, rights):
                operands = [left, *rights]
                for operator, one, other in zip(operators, operands, rights, strict=False):
                    yield from self._swapped(operator, one, other, self._span(node))
            case ast.BoolOp(operator, values):
                for one, other in itertools.pairwise(values):
                    yield from self._swapped(operator, one, other, self._span(node))
            case ast.BinOp(left, operator, right):
                yield from self._swapped(operator, left, right, self._span(node))
            case ast.UnaryOp(ast.Not(), operand):
                yield self._changed(node, self._text(operand))
            case ast.If(test) | ast.IfExp(test) | ast.While(test):
                yield self._changed(test, f"(not ({self._text(test)}))")
            case ast.Constant(bool(value)):
                yield self._changed(node, str(not value))
            case ast.Constant(int(value)):
                yield self._changed(node, f"({value} + 1)")
            case ast.Expr(ast.Call()):
                yield self._changed(node, "pass")
            case ast.Return(ast.expr() as value) if self._text(value) != "None":
                yield self._changed(node, "return None", around=value)

    def _swapped(
        self, operator: ast.AST, left: ast.expr, right: ast.expr, around: tuple[int, int]
    ) -> Iterator[Mutant]:
        if type(operator) in SWAPPED:
            old, new = SWAPPED[type(operator)]
            start, end = self._span(left)[1], self._span(right)[0]
            at = self._data.find(old.encode(), start, end)
            if at >= 0:
                yield Mutant(str(self._path), left.lineno, at, at + len(old), old, new, *around)

    def _changed(
        self, node: ast.expr | ast.stmt, after: str, around: ast.expr | None = None
    ) -> Mutant:
        span, outer = self._span(node), self._span(around or node)
        return Mutant(str(self._path), node.lineno, *span, self._text(node), after, *outer)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._data[start:end].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last = node.end_lineno or node.lineno
        end = self._starts[last - 1] + (node.end_col_offset or node.col_offset)
        return self._starts[node.lineno - 1] + node.col_offset, end


def _left_alone(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that are not about behaviour, or not expressions whose place in the text is known."""
    roots: list[ast.AST | None] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        roots = [node.returns, *node.decorator_list]
    elif isinstance(node, ast.AnnAssign | ast.arg):
        roots = [node.annotation]
    elif isinstance(node, ast.pattern | ast.JoinedStr):
        roots = [node]
    for root in roots:
        if root is not None:
            yield from ast.walk(root)


def draw_mutants(seed: int) -> list[Mutant]:
    """All mutants that can be made, in a random order."""
    every: list[Mutant] = []
    for file in sorted((ROOT / SOURCE).rglob("*.py")):
        path = file.relative_to(ROOT)
        every += MutatedFile(path, file.read_text("utf-8")).mutants()
    random.Random(seed).shuffle(every)
    return every


class KnownTests:
    """Which tests reach which mutants, which of them need no Spark, and how long each one takes.

    They are run for it, with a probe in the place of each mutant.
    """

    def __init__(self, mutants: Sequence[Mutant], copy: Path, options: Sequence[str]) -> None:
        notes, times = copy / "probed", copy / "times.xml"
        notes.mkdir()
        put_probes(mutants, copy)
        environment = _environment(copy) | {"TAMIS_PROBED": str(notes)}
        command = [
            sys.executable, "-m", "pytest", "-q", "--numprocesses", "auto", "--dist", "loadgroup",
            "--no-loadscope-reorder", "--junitxml", str(times), *options,
        ]  # fmt: skip
        subprocess.run(command, cwd=copy, env=environment, check=False)  # noqa: S603 - our own tests
        self.seconds: dict[str, float] = {}
        failed: set[str] = set()  # already without mutants, some because of the probes
        for case in ElementTree.parse(times).iter("testcase"):
            file = case.get("classname", "").replace(".", "/") + ".py"
            name = f"{file}::{case.get('name', '').partition('@')[0]}"
            self.seconds[name] = float(case.get("time", 0))
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(name)
        self.all = _collected(*options) - failed
        self.light = _collected("-m", "not spark") - failed
        self._reaching: dict[Mutant, set[str]] = {}
        for note in notes.iterdir():
            for line in note.read_text("utf-8").splitlines():
                place, _, test = line.partition(" ")
                # pytest-xdist adds the group of a test to its name.
                self._reaching.setdefault(mutants[int(place)], set()).add(test.partition("@")[0])

    def reach(self, mutant: Mutant) -> bool:
        """Whether its place was reached, by a test or before the first one; always in a kernel."""
        return _is_kernel(mutant) or mutant in self._reaching

    def reach_early(self, mutant: Mutant) -> bool:
        """Whether its place was reached outside tests: before the first one, or by Spark."""
        return "" in self._reaching.get(mutant, ())

    def tests(self, mutant: Mutant) -> set[str]:
        """The tests that reach its place."""
        return self._reaching.get(mutant, set()) & self.all


def put_probes(mutants: Sequence[Mutant], copy: Path) -> None:
    """Put a probe in the place of each mutant that is not in a kernel.

    a < b -> (__import__("tamis_probe").reached(7) or (a < b))
    """
    (copy / "src" / "tamis_probe.py").write_text(PROBE, "utf-8")
    of_files: dict[str, list[tuple[int, int, int, bytes]]] = {}
    for place, mutant in enumerate(mutants):
        if not _is_kernel(mutant):
            begin = f'(__import__("tamis_probe").reached({place}) or ('.encode()
            texts = of_files.setdefault(mutant.path, [])
            # Where several begin, the one that ends last begins first.
            texts += [(mutant.first, 1, -mutant.last, begin), (mutant.last, 0, 0, b"))")]
    for path, texts in of_files.items():
        data = (copy / path).read_bytes()
        for at, _, _, text in sorted(texts, reverse=True):
            data = data[:at] + text + data[at:]
        (copy / path).write_bytes(data)


def _collected(*options: str) -> set[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *options]
    answer = subprocess.run(  # noqa: S603 - our own tests
        command, cwd=ROOT, env=_environment(ROOT), capture_output=True, text=True, check=True
    )
    return {line for line in answer.stdout.splitlines() if "::" in line}


def survivors(results: Path) -> list[Mutant]:
    """The mutants that an earlier run did not notice."""
    names = [field.name for field in fields(Mutant)]
    found = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    return [Mutant(*(one[name] for name in names)) for one in found if not one["noticed"]]


def tests_for(mutant: Mutant, known: KnownTests, seconds: float) -> list[list[str]]:
    """The tests that reach the place: several that need no Spark, and one that does.

    Tests in files that are named after the module come first, quick ones before slow ones. They are
    also tried where a place is reached while modules are imported, or in processes of Spark: nobody
    knows for which tests. In kernels no test is known, and the files named after them are run.
    """
    stem = Path(mutant.path).stem

    def turn(test: str) -> tuple[bool, float]:
        return stem not in test.partition("::")[0], known.seconds.get(test, seconds)

    reaching = known.tests(mutant)
    if known.reach_early(mutant):
        named = set(_named_after(mutant))
        reaching = reaching | {test for test in known.all if test.partition("::")[0] in named}
    tests = sorted(reaching, key=turn)
    without = [test for test in tests if test in known.light][: int(TESTS_PER_SECOND * seconds)]
    left = seconds
    for number, test in enumerate(without):
        left -= turn(test)[1]
        if left < 0:
            del without[max(number, 1) :]
            break
    on_spark = [test for test in tests if test not in known.light][:1]
    return [group for group in (without, on_spark) if group] or [_named_after(mutant)]


def _named_after(mutant: Mutant) -> list[str]:
    path = Path(mutant.path)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    family = stem.partition("_")[0] if _is_kernel(mutant) else stem
    found = sorted((ROOT / "tests").rglob(f"test_{family}*.py"))
    if _is_kernel(mutant):
        found.append(ROOT / "tests" / "engines" / "test_conformance.py")
    return [str(test.relative_to(ROOT)) for test in found]


def _is_kernel(mutant: Mutant) -> bool:
    return "/kernels/" in mutant.path or mutant.path in _kernels_elsewhere()


@cache
def _kernels_elsewhere() -> set[str]:
    files = (ROOT / SOURCE).rglob("*.py")
    found = (file for file in files if "from tamis.kernels.jit import" in file.read_text("utf-8"))
    return {str(file.relative_to(ROOT)) for file in found}


def is_noticed(
    mutant: Mutant, groups: Sequence[list[str]], copy: Path, patience: float
) -> tuple[bool, str]:
    """Whether a test fails with the mutant in place, and the last line of pytest."""
    environment = _environment(copy)
    if _is_kernel(mutant):
        environment["NUMBA_DISABLE_JIT"] = "1"
    file, said = copy / mutant.path, "no test"
    bytecode = Path(cache_from_source(str(file)))
    original = file.read_bytes()
    try:
        bytecode.unlink(missing_ok=True)
        file.write_bytes(original[: mutant.start] + mutant.after.encode() + original[mutant.end :])
        for tests in filter(None, groups):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
            answer = subprocess.run(  # noqa: S603 - our own tests
                command, cwd=copy, env=environment, capture_output=True, text=True,
                timeout=patience, check=False,
            )  # fmt: skip
            said = (answer.stdout.strip().splitlines() or [answer.stderr[-200:]])[-1]
            if answer.returncode:
                break
    except subprocess.TimeoutExpired:
        return True, "took too long"
    finally:
        file.write_bytes(original)
        bytecode.unlink(missing_ok=True)
    return said != "no test" and answer.returncode != 0, said


def _environment(copy: Path) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is not changed is compiled once
    return environment


def is_light(mutant: Mutant, known: KnownTests) -> bool:
    """Whether tests that need no Spark reach the place."""
    return not _is_kernel(mutant) and not known.tests(mutant).isdisjoint(known.light)


def measure(
    mutants: Sequence[Mutant], chosen: Sequence[list[list[str]]], workers: int, patience: float
) -> Iterator[dict[str, object]]:
    """Try each mutant with its tests in one of several copies of the tree."""
    copies: queue.Queue[Path] = queue.Queue()

    def attempt(mutant: Mutant, groups: list[list[str]]) -> dict[str, object]:
        copy = copies.get()
        noticed, said = is_noticed(mutant, groups, copy, patience)
        copies.put(copy)
        count = sum(map(len, groups))
        return asdict(mutant) | {"noticed": noticed, "tests": count, "said": said}

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        for number in range(workers):
            copies.put(copy_of_tree(Path(folder) / str(number)))
        yield from pool.map(attempt, mutants, chosen)


def copy_of_tree(copy: Path) -> Path:
    """A new copy of the tree."""
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", ".*_cache"))
    return copy


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=150, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other mutants")
    parser.add_argument("--workers", type=int, default=2, help="how many are tried at once")
    parser.add_argument(
        "--light", action="store_true", help="only places that quick tests without Spark reach"
    )
    parser.add_argument(
        "--seconds", type=float, default=MOST_SECONDS, help="of tests that are run for a mutant"
    )
    parser.add_argument("--again", type=Path, help="try the survivors of an earlier run's --json")
    parser.add_argument("--json", type=Path, help="write one line per mutant here")
    options = parser.parse_args()
    if options.again:
        drawn = survivors(options.again)
    else:
        drawn = draw_mutants(options.seed)[: PROBED * options.count]
    with tempfile.TemporaryDirectory() as folder:
        which = ["-m", "not spark and not long"] if options.light else []
        known = KnownTests(drawn, copy_of_tree(Path(folder) / "probed"), which)
    reached = filter(known.reach, drawn)
    pairs = ((one, tests_for(one, known, options.seconds)) for one in reached)
    if options.light:
        pairs = ((one, groups[:1]) for one, groups in pairs if is_light(one, known))
    mutants, chosen = zip(*itertools.islice(pairs, options.count), strict=True)
    patience = max(PATIENCE, 3 * options.seconds)
    noticed, tried = 0, measure(mutants, chosen, options.workers, patience)
    for number, result in enumerate(tried, 1):
        noticed += bool(result["noticed"])
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
        verdict = "noticed " if result["noticed"] else "SURVIVES"
        change = f"{str(result['before'])[:40]!r} -> {str(result['after'])[:40]!r}"
        print(f"{number:4} {verdict} {result['path']}:{result['line']} {change}", flush=True)
    print(f"{noticed} of {len(mutants)} mutants noticed ({noticed / len(mutants):.0%})")


if __name__ == "__main__":
    main()
