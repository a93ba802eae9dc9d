"""Events as classes between cuts: of one event and of many."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from interned import predicates_of
from kernel_calls import from_python
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import Schema
from tamis.engines.sliced.event_values import EventWriter, ValueBuffers
from tamis.engines.sliced.segment_predicates import Texts
from tamis.engines.sliced.value_classes import classes_of
from tamis.kernels.event_truth import read_classes
from tamis.kernels.value_classes import MISSING
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.keys import Keys, decimal_key, key_values
from tamis.types import Kind

read_classes = from_python(read_classes)

SMALL = Schema(
    {"i": "int", "x": "double", "s": "string", "side": "enum('sell', 'buy')", "t": "string"}
)
TEXTS = [
    "i > 3 AND i < 7", "i = 3", "x >= 0.5", "x IN (-1, 2, 8)", "s = 'b' OR s > 'd'", "s <> ''",
    "side = 'sell'", "t IS NULL",
]  # fmt: skip


def cut_values(predicates, schema, attribute):
    """The cuts of an attribute as values."""
    cuts = predicates.cuts[attribute]
    if isinstance(cuts, Texts):
        return [text.decode() for text in cuts.to_arrow().to_pylist()]
    if schema.attributes[attribute].type.kind is Kind.DECIMAL:
        return cuts.tolist()  # the keys, of which many values have one
    return key_values(schema.attributes[attribute], cuts)


def expected_class(value, cuts, first):
    """A class by its definition; nan is above everything, and equal to itself."""
    if value is None:
        return MISSING

    def order(one):
        return (one != one, 0 if one != one else one)  # noqa: PLR0124 - nan

    below = sum(order(cut) < order(value) for cut in cuts)
    return 2 * (first + below) + (order(value) in map(order, cuts))


def check(predicates, schema, some):
    computed = ComputedAttributes(schema, predicates.terms)
    batch, schema = computed.batch(batch_of_rows(some, schema)), computed.schema
    plain = some
    apart = ComputedAttributes(computed.plain, predicates.terms, range(len(schema)))
    some = [apart.row(row) for row in some]
    used = np.arange(len(schema))
    found = classes_of(batch, predicates, used)
    single = SingleEvents(predicates, used, computed)
    for attribute, described in enumerate(schema.attributes):
        cuts = cut_values(predicates, schema, attribute)
        first = int(predicates.starts[attribute]) + 1
        values = [row[attribute] for row in some]
        if described.type.kind is Kind.DECIMAL:
            of = described.type
            values = [None if value is None else decimal_key(value, of) for value in values]
        expected = [expected_class(value, cuts, first) for value in values]
        assert found[attribute].tolist() == expected
    for event, (row, whole) in enumerate(zip(plain, some, strict=True)):
        assert single.classes(row, whole) == found[:, event].tolist()


class SingleEvents:
    """The classes of one event after the other, in the same buffers."""

    def __init__(self, predicates, used, computed):
        self._predicates, self._used, self._computed = predicates, used, computed
        self._writer = EventWriter(used, Keys(computed.schema), keyed=computed.keyed)
        self._buffers = ValueBuffers(len(predicates.cuts))

    def classes(self, plain, row):
        """Of an event without and with the values of terms."""
        self._writer.write(row, self._buffers)
        values, of = self._buffers.values, self._predicates
        self._computed.write_keys(plain, values.numbers, values.kinds)
        found = np.empty(len(of.cuts), np.int32)
        read_classes(values, self._used, of.flat, of.starts, found)
        return found.tolist()


@given(st.lists(filters(), min_size=1, max_size=10), st.lists(rows(), max_size=8))
@settings(max_examples=25)
def test_classes_of_any_events(texts, some):
    predicates = predicates_of(texts, SCHEMA)
    if predicates is not None:
        check(predicates, SCHEMA, [*some, *delicate_rows()[:5], (None,) * len(SCHEMA)])


@each("size", [0, 1, 70])
def test_classes_of_values_at_and_between_cuts(size):
    predicates = predicates_of(TEXTS, SMALL)
    pools = [[2, 3, 4, 7, 8, None, -(2**63), 2**63 - 1],
             [-1.0, -0.5, 0.5, 2.0, 9.0, -0.0, math.nan, math.inf, -math.inf, None],
             ["", "a", "b", "ba", "d", "da", "é", None],
             ["buy", "sell", None], ["", "z", None]]  # fmt: skip
    chance = np.random.default_rng(size)
    some = [tuple(pool[chance.integers(len(pool))] for pool in pools) for _ in range(size)]
    check(predicates, SMALL, some)


def test_attributes_that_nobody_tests_are_missing():
    predicates = predicates_of(["i > 3", "s = 'a'"], SMALL)
    some = [(4, 1.0, "a", "buy", "z"), (None,) * 5]
    used = np.array([0, 2])
    found = classes_of(batch_of_rows(some, SMALL), predicates, used)
    assert (found[[1, 3, 4]] == MISSING).all()
    assert (found[[0, 2], 0] != MISSING).all()
    single = SingleEvents(predicates, used, ComputedAttributes(SMALL, ()))
    for event, row in enumerate(some):
        assert single.classes(row, row) == found[:, event].tolist()


def test_a_column_of_strings_that_are_all_missing():
    predicates = predicates_of(["s = 'a'", "t > ''"], SMALL)
    check(predicates, SMALL, [(None,) * 5] * 3)
    check(predicates, SMALL, [(None, None, None, None, "t"), (1, None, "a", None, None)])
