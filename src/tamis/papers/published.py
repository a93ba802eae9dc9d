"""The numbers that the papers published, and where in a paper each of them stands.

``published/PAPER.toml`` has a table for each table or figure of the paper whose numbers can be
read: ``where`` (its place), ``unit``, ``x`` and, in ``lines``, the values of each line by the
paper's own name for it, nan where the paper has no value.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.errors import OptionError, choose
from tamis.papers.measurements import X
from tamis.workloads.config import read_text

FOLDER = Path(__file__).parent / "published"
PAPERS = ("BDD", "MBD", "TREE", "COUNT")


@dataclass(frozen=True)
class PublishedNumbers:
    """What a paper published for one measure of an experiment, under the names of our lines."""

    where: str
    unit: str
    names: dict[str, str]  # our line -> the paper's name for it
    lines: dict[str, dict[X, float]]  # our line -> x -> value

    def line(self, line: str) -> dict[X, float]:
        """The published values of one of our lines; there may be none."""
        return self.lines.get(line, {})

    def as_json(self) -> dict[str, Any]:
        lines = {name: [list(pair) for pair in line.items()] for name, line in self.lines.items()}
        return {"where": self.where, "unit": self.unit, "names": self.names, "lines": lines}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "PublishedNumbers":
        lines = {name: dict(pairs) for name, pairs in found["lines"].items()}
        return cls(found["where"], found["unit"], found["names"], lines)


def published_numbers(paper: str, name: str, names: Mapping[str, str]) -> PublishedNumbers:
    """A table of a paper's file; `names` has the paper's names of our lines."""
    path = FOLDER / f"{paper.lower()}.toml"
    tables = tomllib.loads(read_text(path))
    choose(f"table of {path.name}", name, tables)
    table = tables[name]
    lines: dict[str, dict[X, float]] = {}
    for ours, theirs in names.items():
        choose(f"line of {name} in {path.name}", theirs, table["lines"])
        values = table["lines"][theirs]
        if len(values) != len(table["x"]):
            raise OptionError(f"{path}: {name}.lines.{theirs} needs one value for each x")
        pairs = zip(table["x"], values, strict=True)
        lines[ours] = {x: float(y) for x, y in pairs if not math.isnan(y)}
    return PublishedNumbers(table["where"], table["unit"], dict(names), lines)
