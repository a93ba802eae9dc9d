"""Filters over arrays and maps beside each other: covering, tables of it, and mergers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from array_strategies import ARRAYS, array_filters, array_rows
from tamis import covers, merge, parse
from tamis.language.evaluation import compile_tree
from tamis.relations.tables.cover_tables import CoverTable
from tamis.semantics import Semantics

TABLES = [Semantics(name, ARRAYS) for name in ("sql", "strict", "total")]


def holds(expression, row):
    return compile_tree(expression.tree, ARRAYS)(row) is True


@pytest.mark.long
@given(
    texts=st.lists(array_filters(1), min_size=2, max_size=5, unique=True),
    rows=st.lists(array_rows(), min_size=1, max_size=8),
)
@settings(max_examples=60)
def test_answers_hold_for_all_events(texts, rows):
    filters = [parse(text, ARRAYS) for text in texts]
    for a in filters:
        for b in filters:
            if covers(a, b):
                assert all(holds(a, row) for row in rows if holds(b, row)), (str(a), str(b))
    merged = merge(filters)
    for row in rows:
        assert holds(merged, row) == any(holds(one, row) for one in filters)


@pytest.mark.long
@given(texts=st.lists(array_filters(1), min_size=2, max_size=6), semantics=st.sampled_from(TABLES))
@settings(max_examples=40)
def test_tables_of_covering(texts, semantics):
    table = CoverTable(semantics)
    for key, text in enumerate(texts):
        table.insert(key, parse(text, ARRAYS))
    for key in range(len(texts)):
        table.remove(key)
    assert len(table) == 0
