"""The shape of the house: who may import whom, what is public, and how light the door is."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import tamis
from cases import each

SOURCE = Path(tamis.__file__).parent

# A package may import from itself and from those before it.
LAYERS = (
    "ground", "language", "kernels", "predicates", "diagrams", "engines", "relations", "matcher",
    "workloads", "routing", "spark", "cli",
)  # fmt: skip
# Modules at the top of the package, by the layer they belong to; the others are ground.
PLACES = {
    "events": "language", "semantics": "language", "explanation": "language",
    "subscriptions": "language", "matcher": "matcher", "rules_file": "matcher",
    "matcher_settings": "matcher", "compaction": "matcher", "restoration": "matcher",
    "profiles": "predicates", "__init__": "matcher", "__main__": "cli",
}  # fmt: skip
# The same for the packages of Spark.
SPARK = (
    "session", "files", "tables", "dead_letters", "compile", "shards", "batch", "stream",
    "compaction", "source", "demo", "profiles",
)  # fmt: skip
HEAVY = {"numba", "pyspark", "duckdb", "pyarrow", "pandas", "polars", "numpy", "re2", "tqdm"}


def modules():
    return sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def layer_of(parts):
    return parts[0] if parts[0] in LAYERS else PLACES.get(parts[0], "ground")


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@each("module", modules())
def test_imports_point_one_way(module):
    here = LAYERS.index(layer_of(module.with_suffix("").parts))
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    for name in imported(tree):
        if name.startswith("tamis."):
            there = LAYERS.index(layer_of(name.split(".")[1:]))
            assert there <= here, f"{module} imports {name}"


def test_packages_of_spark_use_those_before_them():
    for path in sorted((SOURCE / "spark").rglob("*.py")):
        here = path.relative_to(SOURCE / "spark").with_suffix("").parts[0]
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_every_layer_is_there():
    found = {layer_of(module.with_suffix("").parts) for module in modules()}
    assert found == set(LAYERS)


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


def test_the_public_names():
    assert sorted(tamis.__all__) == tamis.__all__
    assert set(tamis.__all__) == {
        "BulkError", "CapacityError", "EventError", "Explanation", "Expression",
        "ExpressionError", "FileError", "LimitError", "Matcher", "MissingDependency",
        "OptionError", "ParseError", "Profile", "RoutingError", "Schema", "SchemaError",
        "SubscriptionError", "TamisError", "TypeMismatch", "__version__", "covers", "merge",
        "parse",
    }  # fmt: skip
    assert all(hasattr(tamis, name) for name in tamis.__all__)


def test_all_errors_are_of_one_family():
    errors = [getattr(tamis, n) for n in tamis.__all__ if n.endswith(("Error", "Mismatch", "ency"))]
    assert all(issubclass(error, tamis.TamisError) for error in errors)


def test_files_are_short_enough_to_read():
    lines = {m: len((SOURCE / m).read_text(encoding="utf-8").splitlines()) for m in modules()}
    assert {module: count for module, count in lines.items() if count > 600} == {}
