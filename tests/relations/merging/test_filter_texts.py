"""Boxes as filters: they match what the filter matched that the box was made of."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, atoms, delicate_rows, filters, rows
from tamis import parse
from tamis.errors import TamisError
from tamis.predicates.boxes import box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.filter_texts import expression_of
from tamis.semantics import Semantics

NOTHING = dict.fromkeys(SCHEMA)
MEANINGS = {
    "sql": Semantics("sql", SCHEMA),
    "strict": Semantics("strict", SCHEMA),
    "default": Semantics("default", SCHEMA, NOTHING),
    "total": Semantics("total", SCHEMA),
}


def box_text(text, name="sql"):
    meaning = MEANINGS[name]
    box = box_of(form_of(parse(text, SCHEMA), meaning), EventSpace.of(meaning))
    return str(expression_of(box, meaning))


@each(
    ("name", "text", "said"),
    [
        ("sql", "i < 10 AND x > 5e300", "i <= 9 AND x > 5e+300"),
        ("sql", "i BETWEEN 5 AND 7", "i >= 5 AND i <= 7"),
        ("sql", "i IN (1, 2, 7)", "i IN (1, 2, 7)"),
        ("sql", "i > 3 AND i <> 9", "i >= 4 AND i <= 8 OR i >= 10"),
        ("sql", "NOT s LIKE 'a%b'", "s NOT LIKE 'a%b'"),
        ("sql", "i = -9223372036854775808", "i = -9223372036854775808"),
        ("sql", "TRUE", "TRUE"),
        # a moment after the last one that can be written
        ("sql", "at > TIMESTAMP '9999-12-31 23:59:59.999999'",
         "at > TIMESTAMP '9999-12-31 23:59:59.999999Z'"),
        ("sql", "at < TIMESTAMP '0001-01-01'", "at < TIMESTAMP '0001-01-01 00:00:00Z'"),
        ("strict", "s LIKE 'a%b' AND s < 'b'", "s LIKE 'a%b' AND s < 'b'"),
        ("strict", "i > 0 OR i <= 0", "i IS NOT NULL"),
        # a negation is true of what is missing, in the classical logic
        ("default", "i <> 5 AND i IS NOT NULL", "i <> 5 AND i IS NOT NULL"),
        ("default", "i <> 5", "i <> 5"),
        ("default", "NOT i < 5", "i >= 5 OR i IS NULL"),
        ("total", "i <> 5 AND x IS NOT NULL", "i <> 5"),
    ],
)  # fmt: skip
def test_what_is_said(name, text, said):
    assert box_text(text, name) == said


@pytest.mark.long
@pytest.mark.parametrize("name", MEANINGS)
@given(tests=st.lists(atoms(0) | filters(1), min_size=1, max_size=3), row=rows())
@settings(max_examples=20)
def test_a_box_matches_what_its_filter_matches(name, tests, row):
    meaning = MEANINGS[name]
    try:
        expression = parse(" AND ".join(f"({test})" for test in tests), SCHEMA)
        box = box_of(form_of(expression, meaning), EventSpace.of(meaning))
    except TamisError:  # a few exceed a limit of decimals
        return
    if box is None:
        return
    said = expression_of(box, meaning)
    assert parse(str(said), SCHEMA) == said
    before, after = meaning.condition(expression), meaning.condition(said)
    for event in [row, *delicate_rows()]:
        if name != "total" or None not in event:
            assert before(meaning.prepare(event)) == after(meaning.prepare(event))
