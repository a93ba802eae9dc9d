"""Queries of a grammar, many at once (BDD, section 8).

BDD is short for Campailla et al., "Efficient filtering in publish-subscribe systems using binary
decision diagrams" (ICSE 2001).

All derivation trees grow together, level by level. A level is one flat array of symbols; the next
level has the parts of the alternatives that were drawn for its rules, side by side. Then sizes are
summed from the leaves up and places are computed from the roots down, and every text of every level
is written to its place. Each symbol is touched a fixed number of times, however deep the trees are.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.workloads.grammar import Grammar, Text
from tamis.workloads.random_draws import Array, Chance, draw_alternatives, grouped_bounds
from tamis.workloads.token_texts import join_tokens


class _Level(NamedTuple):
    """The symbols of one depth; `inner` are the positions of rules, `counts` their children."""

    symbols: Array
    inner: Array
    counts: Array


@dataclass(frozen=True)
class Expander:
    """A grammar in arrays; symbols below `len(texts)` are texts, the others are rules.

    Alternative a has the symbols ``parts[starts[a] : starts[a] + counts[a]]``; `bounds` finds the
    alternatives of a rule.
    """

    texts: pa.StringArray
    bounds: Array
    starts: Array
    counts: Array
    parts: Array

    @classmethod
    def of(cls, grammar: Grammar) -> "Expander":
        alternatives = [one for rule in grammar.rules for one in rule.alternatives]
        parts = [part for one in alternatives for part in one.parts]
        texts = list(dict.fromkeys(part.text for part in parts if isinstance(part, Text)))
        codes = {text: code for code, text in enumerate(texts)}
        rules = {rule.name: len(texts) + number for number, rule in enumerate(grammar.rules)}
        counts = np.array([len(one.parts) for one in alternatives])
        return cls(
            texts=pa.array(texts, pa.string()),
            bounds=grouped_bounds(
                [np.array([a.probability for a in rule.alternatives]) for rule in grammar.rules]
            ),
            starts=np.cumsum(counts) - counts,
            counts=counts,
            parts=np.array(
                [codes[p.text] if isinstance(p, Text) else rules[p.rule] for p in parts]
            ),
        )

    def queries(self, chance: Chance, rows: int) -> pa.StringArray:
        """`rows` queries."""
        levels = self._grow(chance, rows)
        sizes = _sizes(levels)
        codes = np.empty(int(sizes[0].sum()), np.int64)
        places = np.cumsum(sizes[0]) - sizes[0]
        for depth, level in enumerate(levels):
            is_text = level.symbols < len(self.texts)
            codes[places[is_text]] = level.symbols[is_text]
            if level.inner.size:
                below = sizes[depth + 1]
                before = np.cumsum(below) - below  # texts before each child, in its level
                first = np.cumsum(level.counts) - level.counts
                first_before = np.append(before, 0)[first]  # a rule without children needs none
                places = before + np.repeat(places[level.inner] - first_before, level.counts)
        return join_tokens(self.texts, codes, sizes[0])

    def _grow(self, chance: Chance, rows: int) -> list[_Level]:
        """The levels of the derivation trees, from the roots down to a level of texts only."""
        levels: list[_Level] = []
        symbols = np.full(rows, len(self.texts))
        while True:
            inner = np.flatnonzero(symbols >= len(self.texts))
            chosen = draw_alternatives(chance, self.bounds, symbols[inner] - len(self.texts))
            counts = self.counts[chosen]
            levels.append(_Level(symbols, inner, counts))
            if not inner.size:
                return levels
            # The parts of each chosen alternative, from its start on.
            offsets = self.starts[chosen] - (np.cumsum(counts) - counts)
            symbols = self.parts[np.repeat(offsets, counts) + np.arange(counts.sum())]


def _sizes(levels: list[_Level]) -> list[Array]:
    """For each level, how many texts each of its symbols becomes."""
    sizes: list[Array] = []
    below = np.zeros(0, np.int64)
    for level in reversed(levels):
        size = np.ones(level.symbols.size, np.int64)
        sums = np.concatenate([[0], np.cumsum(below)])
        ends = np.cumsum(level.counts)
        size[level.inner] = sums[ends] - sums[ends - level.counts]
        sizes.append(size)
        below = size
    return sizes[::-1]
