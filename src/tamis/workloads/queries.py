"""The workload of BDD: queries that a grammar file describes.

BDD is short for Campailla et al., "Efficient filtering in publish-subscribe systems using binary
decision diagrams" (ICSE 2001).

Keys of the config:

* ``grammar``: the grammar file, beside the config; its format is described in `grammar.py`
* ``[[attributes]]``: one or more tables, each with ``names``, ``type`` (int, double or string) and
  ``range``, two whole numbers between which the values of events are uniform, or, for strings,
  ``values``, which are equally probable: a list of texts, or a number of made-up words
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.workloads.config import Config, read_text
from tamis.workloads.expansion import Expander
from tamis.workloads.grammar import Grammar, parse_grammar
from tamis.workloads.random_draws import Chance
from tamis.workloads.token_texts import ROWS, chunks
from tamis.workloads.value_generators import AttributeColumn, Real, ValueGenerator, Whole, Words

TYPES = ("int", "double", "string")
EXPANSIONS = 400_000  # rules that are expanded together, on average: what fits into the cache
WIDEST = 2**53  # beyond it, doubles cannot represent every whole number


@dataclass(frozen=True)
class Queries:
    """This kind of workload; see the module."""

    source: Path
    grammar: Grammar
    columns: tuple[AttributeColumn, ...]

    least = 0

    @classmethod
    def read(cls, config: Config) -> "Queries":
        source = config.path.parent / config.text("grammar")
        grammar = parse_grammar(read_text(source), str(source))
        columns = [
            column for table in config.tables("attributes") for column in attribute_columns(table)
        ]
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
        # Rounded, because the filters of a seed depend on how many are made together.
        size = round(sum(self.grammar.expectations().values()))
        for rows in chunks(count, max(1, min(ROWS, EXPANSIONS // size))):
            yield expander.queries(chance, rows)


def attribute_columns(table: Config) -> list[AttributeColumn]:
    """The attributes of a table, and what values they have in events."""
    names = table.texts("names")
    kind = table.choice("type", TYPES)
    values: ValueGenerator
    if kind == "string":
        values = Words(table.words("values"))
    else:
        low, high = table.interval("range", -WIDEST, WIDEST)
        values = Whole(low, high) if kind == "int" else Real(low, high)
    table.finish()
    return [AttributeColumn(name, kind, values) for name in names]
