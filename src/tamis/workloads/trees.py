"""Random trees of AND, OR and NOT, of which hardly two have the same structure.

Beyond the papers: it is what people's rules look like when they write them by hand or click them
together. A tree has a number of atoms. If it has more than one, it is an AND or an OR of two trees,
which share the atoms at random; every tree, however small, may be negated.

Keys of the config:

* ``atoms``: the fewest and the most atoms of a filter; all numbers between are equally probable
* ``all``: the share of ANDs among the connectives; the others are ORs
* ``negated``: the share of trees that have a NOT before them
* ``needless``: the share of parentheses that are written though nothing depends on them
* ``[[attributes]]``: one or more tables, each with ``names``, ``type`` (int, double or string),
  ``range`` or ``values`` as for the kind `grammar`, and

  * ``tests``: texts of atoms, with ``@`` for the name of the attribute and ``#`` for a constant
  * ``constants``: how many constants there are, evenly spread over the range; for strings, a list
    of texts, or a number of made-up words, the first of which are those of ``values``
  * ``exponent``: of Zipf's law, which says how often each of the constants is used
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.workloads.config import Config
from tamis.workloads.queries import TYPES, WIDEST, attribute_columns
from tamis.workloads.random_draws import Array, Chance, draw_ranks, zipf_bounds
from tamis.workloads.token_texts import chunks, join_tokens
from tamis.workloads.value_generators import AttributeColumn

MOST_ATOMS = 1000  # of a filter
MOST_CONSTANTS = 100_000  # of an attribute
MOST_TEXTS = 5_000_000  # distinct atoms

# A symbol is a token, or a tree that is not drawn yet: WAITING + 3 * atoms + what it is a part of.
_NOT, _OPEN, _CLOSE, _AND, _OR = range(5)
_TOKENS = ("NOT ", "(", ")", " AND ", " OR ")
WAITING = 2**40
_WHOLE, _OF_AND, _OF_OR = range(3)
_NOTHING = -1


@dataclass(frozen=True)
class AtomGroup:
    """The atoms of some attributes that are tested alike."""

    names: tuple[str, ...]
    tests: tuple[str, ...]
    constants: tuple[str, ...]
    exponent: float

    @property
    def size(self) -> int:
        return len(self.names) * len(self.tests) * len(self.constants)

    def texts(self) -> list[str]:
        """All atoms: by attribute, test and constant."""
        return [
            test.replace("@", name).replace("#", constant)
            for name in self.names
            for test in self.tests
            for constant in self.constants
        ]

    def draw(self, chance: Chance, attributes: Array) -> Array:
        """For each atom, of which the attribute is given, its place among the texts."""
        tests = chance.integers(0, len(self.tests), attributes.size)
        bounds = zipf_bounds(len(self.constants), self.exponent)
        constants = draw_ranks(chance, bounds, attributes.size)
        found: Array = (attributes * len(self.tests) + tests) * len(self.constants) + constants
        return found


@dataclass(frozen=True)
class Trees:
    """This kind of workload; see the module."""

    atoms: tuple[int, int]
    all: float
    negated: float
    needless: float
    columns: tuple[AttributeColumn, ...]
    groups: tuple[AtomGroup, ...]

    least = 0

    @classmethod
    def read(cls, config: Config) -> "Trees":
        atoms = config.interval("atoms", 1, MOST_ATOMS)
        shares = {key: config.number(key, 0, 1) for key in ("all", "negated", "needless")}
        columns: list[AttributeColumn] = []
        groups = []
        for table in config.tables("attributes"):
            groups.append(_atom_group(table))
            columns += attribute_columns(table)
        if sum(group.size for group in groups) > MOST_TEXTS:
            raise config.bad("attributes", f"tables that have at most {MOST_TEXTS:,} atoms")
        return cls(atoms, **shares, columns=tuple(columns), groups=tuple(groups))

    @property
    def pairs(self) -> int:
        return len(self.columns)

    def parameters(self, count: int) -> dict[str, Any]:
        return {
            "subscriptions": count,
            "atoms": list(self.atoms),
            "all": self.all,
            "negated": self.negated,
            "needless": self.needless,
            "distinct atoms": sum(group.size for group in self.groups),
        }

    @cached_property
    def _dictionary(self) -> pa.StringArray:
        """The tokens, and after them the texts of all atoms."""
        texts = [text for group in self.groups for text in group.texts()]
        return pa.array([*_TOKENS, *texts], pa.string())

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        for rows in chunks(count):
            sizes = chance.integers(*self.atoms, rows, endpoint=True)
            symbols = WAITING + 3 * sizes + _WHOLE
            lengths = np.ones(rows, np.int64)
            while (symbols >= WAITING).any():
                symbols, lengths = self._grown(chance, symbols, lengths)
            yield join_tokens(self._dictionary, symbols, lengths)

    def _grown(self, chance: Chance, symbols: Array, lengths: Array) -> tuple[Array, Array]:
        """The symbols with one more level of all trees, and how many each filter has."""
        waiting = np.flatnonzero(symbols >= WAITING)
        sizes, parts = np.divmod(symbols[waiting] - WAITING, 3)
        # NOT, an opening parenthesis, the left tree or the atom, AND or OR, the right tree, and a
        # closing parenthesis.
        grown = np.full((symbols.size, 6), _NOTHING, np.int64)
        grown[:, 2] = symbols
        negated = chance.random(waiting.size) < self.negated
        grown[waiting[negated], 0] = _NOT
        single = sizes == 1
        grown[waiting[single], 2] = self._draw_atoms(chance, int(np.count_nonzero(single)))
        inner, sizes, parts = waiting[~single], sizes[~single], parts[~single]
        signs = np.where(chance.random(inner.size) < self.all, _OF_AND, _OF_OR)
        left = chance.integers(1, sizes)
        grown[inner, 2] = WAITING + 3 * left + signs
        grown[inner, 3] = np.where(signs == _OF_AND, _AND, _OR)
        grown[inner, 4] = WAITING + 3 * (sizes - left) + signs
        needed = negated[~single] | ((parts == _OF_AND) & (signs == _OF_OR))
        bracketed = inner[needed | (chance.random(inner.size) < self.needless)]
        grown[bracketed, 1], grown[bracketed, 5] = _OPEN, _CLOSE
        there = grown != _NOTHING
        starts = np.cumsum(lengths) - lengths
        return grown[there], np.add.reduceat(np.count_nonzero(there, axis=1), starts)

    def _draw_atoms(self, chance: Chance, count: int) -> Array:
        """Codes of atoms; all attributes are equally probable."""
        attributes = chance.integers(0, len(self.columns), count)
        found = np.empty(count, np.int64)
        first, code = 0, len(_TOKENS)
        for group in self.groups:
            mine = (attributes >= first) & (attributes < first + len(group.names))
            found[mine] = code + group.draw(chance, attributes[mine] - first)
            first, code = first + len(group.names), code + group.size
        return found


def _atom_group(table: Config) -> AtomGroup:
    """The atoms of a table of attributes."""
    kind = table.choice("type", TYPES)
    tests = table.texts("tests")
    if not all("@" in test for test in tests):
        raise table.bad("tests", "texts that have @ for the attribute, such as '@ < #'")
    if kind == "string":
        constants = table.words("constants")
    else:
        count = table.whole("constants", 1, MOST_CONSTANTS)
        low, high = table.interval("range", -WIDEST, WIDEST)
        constants = _spread(kind, low, high, count)
    return AtomGroup(table.texts("names"), tests, constants, table.number("exponent", 0, 10))


def _spread(kind: str, low: int, high: int, count: int) -> tuple[str, ...]:
    """Constants in the middle of `count` equal parts of a range, as texts."""
    if kind == "int":
        found = [str(low + (high - low) * (2 * k + 1) // (2 * count)) for k in range(count)]
    else:
        found = [str(low + (high - low) * (2 * k + 1) / (2 * count)) for k in range(count)]
    return tuple(dict.fromkeys(found))
