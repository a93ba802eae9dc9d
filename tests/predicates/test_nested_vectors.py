"""What is computed from arrays and maps by columns is what is computed event by event."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from array_strategies import ARRAYS, SCALARS, array_atoms, array_rows
from cases import each
from tamis import parse
from tamis.language.evaluation import compile_value
from tamis.language.parser import Parser
from tamis.language.tokens import tokenize
from tamis.language.typing_rules import TypingRules
from tamis.predicates.event_batches import batch_of_rows, rows_of_batch, slice_of
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.vectors import NoColumn, objects_of

TERMS = [term for terms in SCALARS.values() for term in terms]


def tree(text):
    return Parser(tokenize(text), TypingRules(ARRAYS, text), text).expression(0).node


def same(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return ours == theirs


def values(node, batch):
    found = TermColumns(batch).vector(node)
    present = np.broadcast_to(found.present, batch.size)
    spread = np.broadcast_to(found.values, batch.size)
    return objects_of(found._replace(present=present, values=spread), node.type)


@given(rows=st.lists(array_rows(), min_size=1, max_size=6), data=st.data())
@settings(max_examples=150)
def test_columns_agree_with_rows(rows, data):
    text = data.draw(st.one_of(array_atoms(), st.sampled_from(TERMS)))
    node = tree(text) if text in TERMS else parse(text, ARRAYS).tree
    compute = compile_value(node, ARRAYS)
    expected = [compute(row) for row in rows]
    batch = batch_of_rows(rows, ARRAYS)
    assert all(map(same, values(node, batch), expected)), text
    part = slice_of(batch, 1, len(rows))
    assert all(map(same, values(node, part), expected[1:])), text


@given(st.lists(array_rows(), max_size=5))
def test_rows_of_a_batch(rows):
    found = rows_of_batch(batch_of_rows(rows, ARRAYS), ARRAYS)
    assert repr(found) == repr(rows)


@each("text", ["array(s, 'a')", "map_keys(props)", "tags"])
def test_arrays_have_no_values_of_their_own(text):
    batch = batch_of_rows([(None,) * len(ARRAYS)], ARRAYS)
    try:
        found = TermColumns(batch).vector(tree(text))
    except NoColumn:
        return
    assert found.offsets.tolist() == [0, 0]
    assert found.present.tolist() == [False]
