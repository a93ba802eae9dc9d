"""Filters in columns, as the rivals take them: a join written by hand has no texts."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivals.base import LeftOut
from tamis.schema import IntRange, Schema

Array = np.ndarray[Any, Any]

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
EQUAL, DIFFERS, BELOW, AT_MOST, ABOVE, AT_LEAST = range(len(OPERATORS))

_ATOM = r"^a(?P<attribute>\d+) (?P<operator>[<>=]+) (?P<constant>\d+)$"
_ALERT = (
    r"^symbol = '(?P<symbol>\w+)' AND price BETWEEN (?P<low>[\d.]+) AND (?P<high>[\d.]+) "
    r"AND volume >= (?P<least>\d+)$"
)


class Atoms(NamedTuple):
    """Comparisons of numbered attributes with whole numbers, those of a filter together."""

    lengths: Array  # [filter]
    filter: Array  # [atom], ascending
    attribute: Array
    operator: Array
    constant: Array


class Domain(NamedTuple):
    """The values of an attribute."""

    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low + 1


class Bounds(NamedTuple):
    """low <= value <= high and value <> other, for every attribute of every filter.

    Where a filter says nothing, the bounds are the ends of the domain and `other` is below it.
    """

    low: Array  # [attribute, filter]
    high: Array
    other: Array


class Alerts(NamedTuple):
    """Filters of the stock workload."""

    symbol: pa.Array
    low: Array  # prices
    high: Array
    least: Array  # volume


def read_atoms(filters: pa.ChunkedArray) -> Atoms:
    """The comparisons of conjunctions ``a3 <= 7 AND a0 = 2``; TRUE has none."""
    atoms = pc.split_pattern(filters, " AND ").combine_chunks()
    filter_ = np.repeat(np.arange(len(atoms)), np.asarray(atoms.value_lengths()))
    texts = atoms.flatten()
    stated = pc.not_equal(texts, "TRUE")
    filter_ = filter_[np.asarray(stated)]
    parts = pc.extract_regex(texts.filter(stated), _ATOM)
    if parts.null_count:
        raise LeftOut("the filters are not conjunctions of comparisons with numbers")
    operator = pc.index_in(parts.field("operator"), value_set=pa.array(OPERATORS))
    return Atoms(
        np.bincount(filter_, minlength=len(atoms)),
        filter_,
        np.asarray(parts.field("attribute").cast(pa.int64())),
        np.asarray(operator),
        np.asarray(parts.field("constant").cast(pa.int64())),
    )


def read_alerts(filters: pa.ChunkedArray) -> Alerts:
    """The columns of ``symbol = 'S1' AND price BETWEEN 1.50 AND 9.99 AND volume >= 7``."""
    parts = pc.extract_regex(filters, _ALERT).combine_chunks()
    if parts.null_count:
        raise LeftOut("the filters are not alerts")
    return Alerts(
        parts.field("symbol"),
        np.asarray(parts.field("low").cast(pa.float64())),
        np.asarray(parts.field("high").cast(pa.float64())),
        np.asarray(parts.field("least").cast(pa.int64())),
    )


def domains_of(schema: Schema) -> list[Domain]:
    """The domains of attributes that are all ranges of whole numbers."""
    found = []
    for attribute in schema.attributes:
        if not isinstance(attribute.domain, IntRange):
            raise LeftOut("attributes are not all ranges of whole numbers")
        found.append(Domain(attribute.domain.low, attribute.domain.high))
    return found


def atom_bounds(atoms: Atoms, domains: list[Domain]) -> tuple[Array, Array, Array]:
    """low, high and other of every atom."""
    lowest = np.array([domain.low for domain in domains])[atoms.attribute]
    highest = np.array([domain.high for domain in domains])[atoms.attribute]
    op, constant = atoms.operator, atoms.constant
    low = np.where(np.isin(op, (EQUAL, AT_LEAST)), constant, lowest)
    low = np.where(op == ABOVE, constant + 1, low)
    high = np.where(np.isin(op, (EQUAL, AT_MOST)), constant, highest)
    high = np.where(op == BELOW, constant - 1, high)
    return low, high, np.where(op == DIFFERS, constant, lowest - 1)


def bounds_of(atoms: Atoms, domains: list[Domain]) -> Bounds:
    """The bounds of filters that compare an attribute at most once."""
    shape = len(domains), len(atoms.lengths)
    ends = np.array(domains)
    low = np.repeat(ends[:, :1], shape[1], axis=1)
    high = np.repeat(ends[:, 1:], shape[1], axis=1)
    other = low - 1
    place = atoms.attribute, atoms.filter
    low[place], high[place], other[place] = atom_bounds(atoms, domains)
    return Bounds(low, high, other)


def values_of(events: pa.Table, domains: list[Domain]) -> Array:
    """values[attribute, event] of events that lack nothing."""
    return np.array([np.asarray(events[f"a{n}"]) for n in range(len(domains))])
