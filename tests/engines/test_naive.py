import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, filters, rows
from tamis import ExpressionError, OptionError, Schema, parse
from tamis.engines import ENGINES, make_engine
from tamis.engines.base import Options
from tamis.engines.naive import NaiveEngine
from tamis.semantics import Semantics

SQL = Semantics("sql", Schema({"price": "double"}))


def engine_of(**texts):
    """An engine with filters under the handles h0, h1, ..."""
    engine = NaiveEngine(SQL, Options())
    for name, text in texts.items():
        engine.add(int(name[1:]), parse(text, SQL.schema))
    return engine


def test_an_empty_engine_matches_nothing():
    engine = NaiveEngine(SQL, Options())
    assert engine.match((5.0,)).tolist() == []
    assert [found.tolist() for found in engine.match_many([(5.0,), (None,)])] == [[], []]


def test_handles_come_in_ascending_order():
    engine = engine_of(h7="TRUE", h2="price < 10", h5="price < 1", h0="price IS NOT NULL")
    assert engine.match((5.0,)).tolist() == [0, 2, 7]


def test_unknown_is_not_a_match():
    assert engine_of(h0="price < 10", h1="NOT price < 10").match((None,)).tolist() == []


def test_a_removed_filter_is_gone():
    engine = engine_of(h0="TRUE", h1="TRUE")
    assert engine.match((5.0,)).tolist() == [0, 1]
    engine.remove(0)
    assert engine.match((5.0,)).tolist() == [1]


def test_a_handle_can_be_used_again_for_another_filter():
    engine = engine_of(h0="price < 10")
    assert engine.match((5.0,)).tolist() == [0]
    engine.remove(0)
    engine.add(0, parse("price > 10", SQL.schema))
    assert engine.match((5.0,)).tolist() == []
    assert engine.match((50.0,)).tolist() == [0]


def test_many_rows_are_matched_one_by_one():
    engine = engine_of(h0="price < 10", h1="price IS NULL")
    assert [found.tolist() for found in engine.match_many([(5.0,), (None,), (50.0,)])] == [
        [0],
        [1],
        [],
    ]


@each("name", ["auto", *ENGINES])
def test_engines_are_made_by_name(name):
    assert make_engine(name, SQL).name in ENGINES


def test_an_unknown_engine():
    with pytest.raises(OptionError, match=r"unknown engine 'bddd'; .*choices: auto, "):
        make_engine("bddd", SQL)


@pytest.mark.parametrize("name", ["naive"])
@settings(max_examples=20)
@given(
    texts=st.lists(filters(), min_size=1, max_size=5),
    some_rows=st.lists(rows(), min_size=1, max_size=3),
    removed=st.sets(st.integers(0, 4)),
)
def test_every_engine_answers_as_the_semantics_say(name, texts, some_rows, removed):
    semantics = Semantics("sql", SCHEMA)
    engine = make_engine(name, semantics)
    held = {}
    for handle, text in enumerate(texts):
        try:
            held[handle] = parse(text, SCHEMA)
        except ExpressionError:
            continue
        engine.add(handle, held[handle])
    for handle in removed & held.keys():
        engine.remove(handle)
        del held[handle]
    expected = [[h for h in held if semantics.condition(held[h])(row)] for row in some_rows]
    assert [found.tolist() for found in engine.match_many(some_rows)] == expected
    assert [engine.match(row).tolist() for row in some_rows] == expected


def test_options_that_no_engine_has():
    with pytest.raises(OptionError, match="the engine naive has no options"):
        make_engine("naive", SQL, {"order": "random"})
