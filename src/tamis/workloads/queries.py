"""BDD: queries that a grammar file describes.

Keys of the config:

* ``grammar``: the grammar file, beside the config; its format is described in `grammar.py`
* ``[[attributes]]``: one or more tables, each with ``names``, ``type`` (int, double or string) and
  ``range``, two whole numbers between which the values of events are uniform, or, for strings,
  ``values``, of which each is as probable as another
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.workloads.config import Config, read_text
from tamis.workloads.distributions import Column, Distribution, Real, Whole, Words
from tamis.workloads.expansion import Expander
from tamis.workloads.filter_texts import ROWS, chunks
from tamis.workloads.grammar import Grammar, parse_grammar
from tamis.workloads.random_draws import Chance

TYPES = ("int", "double", "string")
EXPANSIONS = 400_000  # rules expanded together, on average: what the cache holds
WIDEST = 2**53  # a range beyond it has whole numbers that no double tells apart


@dataclass(frozen=True)
class Queries:
    """The recipe; see the module."""

    source: Path
    grammar: Grammar
    columns: tuple[Column, ...]

    least = 0

    @classmethod
    def read(cls, config: Config) -> "Queries":
        source = config.path.parent / config.text("grammar")
        grammar = parse_grammar(read_text(source), str(source))
        columns = [column for table in config.tables("attributes") for column in _columns(table)]
        return cls(source, grammar, tuple(columns))

    @property
    def pairs(self) -> int:
        return len(self.columns)

    def parameters(self, count: int) -> dict[str, Any]:
        return {
            "subscriptions": count,
            "grammar": self.source.name,
            "expectations": self.grammar.expectations(),
        }

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        expander = Expander.of(self.grammar)
        # Rounded, because how many are made together is part of what a seed means.
        size = round(sum(self.grammar.expectations().values()))
        for rows in chunks(count, max(1, min(ROWS, EXPANSIONS // size))):
            yield expander.queries(chance, rows)


def _columns(table: Config) -> list[Column]:
    names = table.texts("names")
    kind = table.choice("type", TYPES)
    values: Distribution
    if kind == "string":
        values = Words(table.texts("values"))
    else:
        low, high = table.interval("range", -WIDEST, WIDEST)
        values = Whole(low, high) if kind == "int" else Real(low, high)
    table.finish()
    return [Column(name, kind, values) for name in names]
