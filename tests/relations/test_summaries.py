"""Summaries match whatever one of their filters matches, in every semantics, and are short."""

from hypothesis import given, settings
from hypothesis import strategies as st

from filter_readings import semantics_of
from oracles import accepted
from strategies import SCHEMA, filters, rows
from tamis import Schema, parse
from tamis.relations import summaries
from tamis.relations.summaries import one_filter, reading, summary
from tamis.semantics import Semantics

SEMANTICS = ("sql", "strict", "default", "total")
STOCK = Schema({"symbol": "string", "price": "double", "volume": "int"})
SQL = Semantics("sql", STOCK)


def text_of(texts, semantics=SQL):
    schema = semantics.schema
    parts = summary([parse(text, schema) for text in texts], reading(semantics))
    return str(one_filter(parts, schema))


@settings(max_examples=20)
@given(st.lists(filters(2), min_size=1, max_size=6), st.lists(rows(), max_size=8), st.booleans())
def test_what_a_filter_matches_its_summary_matches(texts, events, few):
    for name in SEMANTICS:
        check_summary(name, texts, events, few)


def check_summary(name, texts, events, few):
    semantics = semantics_of(name, SCHEMA)
    read = reading(semantics)
    known = [parse(text, SCHEMA) for text in accepted(texts)]
    most = summaries.MOST_PARTS
    summaries.MOST_PARTS = most if few else 0
    try:
        found = one_filter(summary(known, read), SCHEMA)
    finally:
        summaries.MOST_PARTS = most
    wanted = read.condition(parse(str(found), SCHEMA))  # as whoever gets the text reads it
    for row in events:
        if name == "total" and None in row:
            continue
        if any(semantics.condition(one)(semantics.prepare(row)) for one in known):
            assert wanted(read.prepare(row)), (name, str(found))


def test_few_filters_are_summed_up_exactly():
    assert text_of([]) == "FALSE"
    assert text_of(["price < 5"]) == "price < 5"
    assert text_of(["price < 5", "price < 3", "symbol = 'A' AND price < 9"]) == (
        "price < 5 OR symbol = 'A' AND price < 9"
    )


def test_many_filters_are_summed_up_by_what_they_have_in_common():
    some = [f"symbol = 'S{n}' AND price < {n} AND volume > 5" for n in range(100)]
    assert text_of(some).startswith("symbol IN ('S0', ")
    assert text_of(some).endswith(") AND price < 99.0D AND volume >= 6L")
    assert text_of([*some, "price > 200 AND volume = 7"]) == (
        "(price < 99.0D OR price > 200.0D) AND volume >= 6L"
    )
    assert text_of([*some, "length(symbol) > 3"]) == "TRUE"


def test_a_summary_is_bounded(monkeypatch):
    monkeypatch.setattr(summaries, "MOST_COMPARED", 10)
    monkeypatch.setattr(summaries, "MOST_LENGTH", 1_000)
    some = [f"symbol = 'a long name {n}' AND volume = {1000 * n}" for n in range(200)]
    assert text_of(some) == (
        "(symbol >= 'a long name 0' AND symbol <= 'a long name 99') AND "
        "(volume >= 0L AND volume <= 199000L)"
    )
