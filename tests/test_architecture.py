"""The shape of the house: who may import whom, what is public, and how light the door is."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import tamis

SOURCE = Path(tamis.__file__).parent

ROOT = Path(__file__).parent.parent
# The packages of Spark: each may import from itself and from those before it.
SPARK = (
    "loaded_process", "session", "files", "tables", "parquet", "dead_letters", "compile", "shards",
    "batch", "stream", "compaction", "source", "demo", "profiles", "topic_log", "worker_daemon",
)  # fmt: skip
HEAVY = {
    "numba", "pyspark", "duckdb", "pyarrow", "pandas", "polars", "numpy", "re2", "tqdm", "aiohttp",
    "asyncio",
}  # fmt: skip


def modules():
    return sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


class Room(NamedTuple):
    modules: set[str]
    may_import: set[str]


def rooms():
    """The table of ARCHITECTURE.md: each room, in its order, with what it may import."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| \*\*(\w+)\*\* \| `([^`]+)` \| (.*) \|$", page, re.MULTILINE)
    found = {}
    for name, modules, imports in table:
        may_import = set(found) if imports == "all" else set(imports.split(", ")) - {"–"}
        found[name] = Room(set(modules.split()), may_import)
    return found


ROOMS = rooms()
ROOM_OF = {module: name for name, room in ROOMS.items() for module in room.modules}


@cache
def imported(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "tamis":
            found += [f"tamis.{name.name}" for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names]
    return found


@cache
def imports_between_rooms():
    """For each room, which others its modules import, and for each of those one such module."""
    found = {name: {} for name in ROOMS}
    for module in modules():
        here = ROOM_OF[module.with_suffix("").parts[0]]
        for name in imported(SOURCE / module):
            parts = name.split(".")
            if parts[0] == "tamis" and parts[1:] and parts[1] in ROOM_OF:
                found[here].setdefault(ROOM_OF[parts[1]], f"{module} imports {name}")
        found[here].pop(here, None)
    return found


def test_every_module_is_in_a_room():
    assert set(ROOM_OF) == {module.with_suffix("").parts[0] for module in modules()}


def test_rooms_import_what_the_table_of_the_architecture_says():
    for room, imports in imports_between_rooms().items():
        for other, example in imports.items():
            assert other in ROOMS[room].may_import, example


def test_the_table_of_the_architecture_names_no_import_that_is_not_there():
    found = imports_between_rooms()
    for room, (_, may_import) in ROOMS.items():
        if room != "cli":
            assert may_import <= set(found[room]), room


def test_the_files_that_the_architecture_names_are_there():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/]+\.py|[\w/]+/)`", page):
        found = [*ROOT.glob(name), *SOURCE.glob(name), *SOURCE.glob(f"**/{name}")]
        assert found, name


def test_rooms_import_from_rooms_above_them_in_the_table():
    order = list(ROOMS)
    for number, room in enumerate(order):
        assert ROOMS[room].may_import <= set(order[:number]), room


def test_packages_of_spark_use_those_before_them():
    for path in sorted((SOURCE / "spark").rglob("*.py")):
        here = path.relative_to(SOURCE / "spark").with_suffix("").parts[0]
        for name in imported(path):
            if name.startswith("tamis.spark.") and here != "__init__":
                there = name.split(".")[2]
                assert SPARK.index(there) <= SPARK.index(here), f"{path} imports {name}"


def test_only_engines_and_the_matcher_know_how_filters_are_compiled():
    """Others use `Matcher`, or of `tamis.engines` compiled_filters, match_plan, required_values."""
    for module in modules():
        if module.parts[0] == "engines":
            continue
        text = (SOURCE / module).read_text(encoding="utf-8")
        assert not re.search(r"engines(\.| import .*)\bsliced\b", text), module
        tree = ast.parse(text)
        private = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr in {"_engine", "_subscriptions", "_shapes", "_batching"}
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
        assert not private or module == Path("matcher.py"), f"{module} uses {private}"


def test_importing_tamis_is_light():
    code = f"import sys, tamis; print(sorted({HEAVY!r} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_importing_the_spark_package_starts_no_spark():
    code = "import sys, tamis.spark; print('pyspark' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"


def test_type_checkers_are_told_that_there_are_types():
    assert (SOURCE / "py.typed").is_file()


def test_the_public_names():
    assert sorted(tamis.__all__) == tamis.__all__
    assert set(tamis.__all__) == {
        "BrokerError", "BrokerUnreachable", "BulkError", "Busy", "CapacityError", "Conflict",
        "DeadLetter", "EventError", "Explanation", "Expression", "ExpressionError", "FileError",
        "Forbidden", "LimitError", "LimitReached", "Matcher", "Matches", "MissingDependency",
        "OptionError", "ParseError", "Profile", "RoutingError", "Schema", "SchemaError",
        "SubscriptionError", "TamisError", "TopicExists", "TypeMismatch", "Unauthenticated",
        "UnknownPeer", "UnknownSubscription", "UnknownTopic", "__version__", "aio", "connect",
        "covers", "merge", "parse",
    }  # fmt: skip
    assert all(hasattr(tamis, name) for name in tamis.__all__)


def test_all_errors_are_of_one_family():
    errors = [getattr(tamis, n) for n in tamis.__all__ if n.endswith(("Error", "Mismatch", "ency"))]
    assert all(issubclass(error, tamis.TamisError) for error in errors)


def test_files_are_short_enough_to_read():
    lines = {m: len((SOURCE / m).read_text(encoding="utf-8").splitlines()) for m in modules()}
    assert {module: count for module, count in lines.items() if count > 500} == {}
