"""No event that can occur contradicts the dependency function; what a diagram gains by it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from diagram_programs import support
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import LimitError, Matcher, Schema, TypeMismatch, parse
from tamis.diagrams.diagram import DO_AND, DO_NOT, DO_OR, DO_TRUE, FALSE, TRUE
from tamis.diagrams.restriction import (
    MOST_PAIRS,
    always_present,
    dependency_facts,
    single_clauses,
    whole_function,
)
from tamis.engines import make_engine
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.semantics import NAMES, Semantics
from tamis.timestamps import timestamp_text
from tamis.types import TIMESTAMP

# Many predicates of few attributes, so that most pairs of them have something to say.
DENSE = Schema(
    {
        "n": "int", "x": "double", "s": "string", "b": "bool", "at": "timestamp",
        "level": "int(1, 5)", "side": "enum('buy', 'sell', 'hold')",
    }
)  # fmt: skip
ATOMS = [
    *(f"n {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in (8, 9, 10)),
    *(f"x {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in (0, 1.5)),
    *(f"level {op} {c}" for op in ("=", "<>", "<", ">=") for c in (1, 3, 5)),
    *(f"side {op} {c}" for op in ("=", "<>", "<", ">=") for c in ("'buy'", "'hold'")),
    "n IN (8, 10)", "n IN (8, 9, 10)", "NOT n IN (8, 10)", "n IS NULL", "n IS NOT NULL",
    "n > 9223372036854775807", "n >= -9223372036854775808", "x IS NULL", "x IS NOT NULL",
    "s = 'abc'", "s <> 'abc'", "s = ''", "s IN ('abc', 'b')", "NOT s IN ('abc', 'b')", "s < 'b'",
    "s LIKE 'a%'", "s LIKE 'ab%'", "s LIKE '%c'", "s LIKE '%b%'", "s LIKE '_b%'",
    "s RLIKE '^a'", "s SUBSTRING OF 'abc'", "'b' SUBSTRING OF s", "s IS NULL", "s IS NOT NULL",
    "side LIKE 'b%'", "side LIKE '%l%'", "side IN ('buy', 'sell')", "level IN (1, 2, 3, 4, 5)",
    "b", "b = FALSE", "b <> TRUE", "b IS NULL", "at < '2024-01-01'", "at >= '2024-01-01'",
    "n + 1 > 9", "n < level", "x <=> 1.5", "side IS NOT NULL", "level IS NULL",
]  # fmt: skip
DENSE_VALUES = {
    "n": [None, -(2**63), 0, 7, 8, 9, 10, 11, 2**63 - 1],
    "x": [None, -math.inf, -1.0, -0.0, 0.0, 1.0, 1.5, 2.0, math.inf, math.nan],
    "s": [None, "", "a", "b", "abc", "ab", "bc", "abcd", "xbc", "z"],
    "b": [None, True, False],
    "at": [None, 1_704_067_199_999_999, 1_704_067_200_000_000],
    "level": [None, 1, 2, 3, 4, 5],
    "side": [None, "buy", "sell", "hold"],
}
DENSE_FILTERS = st.lists(
    st.tuples(st.sampled_from(["", "NOT "]), st.sampled_from(ATOMS)), min_size=2, max_size=8
).map(lambda atoms: " OR ".join(f"{negation}({atom})" for negation, atom in atoms))
DENSE_ROWS = st.tuples(*(st.sampled_from(some) for some in DENSE_VALUES.values()))

PRICES = Schema({"price": "double"})


def leaves(tree):
    if isinstance(tree, ast.And | ast.Or):
        return [leaf for item in tree.items for leaf in leaves(item)]
    return [] if isinstance(tree, ast.Literal) else [tree]


def run(program, truth):
    """The values that a program leaves."""
    stack = []
    for step in program.tolist():
        if step >= 0:
            stack.append(truth[step])
        elif step == DO_TRUE:
            stack.append(True)
        elif step == DO_NOT:
            stack.append(not stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if step == DO_AND else left or right)
            assert step in {DO_AND, DO_OR}
    return stack


def facts_of(expression, meaning):
    predicates = list(dict.fromkeys(leaves(normalize(expression.tree, meaning.logic))))
    numbered = [(predicate, number) for number, predicate in enumerate(predicates)]
    return predicates, dependency_facts(numbered, meaning.schema, always_present(meaning))


def check(expression, meaning, row):
    """The dependency function is true of a row, as a whole and in all its pieces."""
    predicates, facts = facts_of(expression, meaning)
    truth = [compile_tree(p, meaning.schema)(row) is True for p in predicates]
    assert run(whole_function(facts), truth) == [True]
    assert all(run(single_clauses(facts), truth))


def fill(row, full, positions):
    """A row that has the attributes at some positions."""
    return tuple(
        f if v is None and n in positions else v
        for n, (v, f) in enumerate(zip(row, full, strict=True))
    )


def rows_that_can_occur(expression, meaning, row, full):
    """A row as the semantics lets it be; in strict semantics with the attributes of the filter."""
    positions = meaning.schema.positions
    if meaning.name == "strict":
        return fill(row, full, {positions[path] for path in expression.attributes})
    return meaning.prepare(fill(row, full, range(len(full))) if meaning.name == "total" else row)


def semantics_of(name, schema, defaults):
    """The semantics of a name; defaults are a row."""
    if name != "default":
        return Semantics(name, schema)
    pairs = zip(schema.attributes, defaults, strict=True)
    return Semantics(
        name,
        schema,
        {
            a.name: timestamp_text(v) if v is not None and a.type == TIMESTAMP else v
            for a, v in pairs
        },
    )


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(text=filters(), some=st.lists(rows(), max_size=4), defaults=rows())
@settings(max_examples=50)
def test_the_dependency_function_is_true_of_every_event(name, text, some, defaults):
    try:
        expression = parse(text, SCHEMA)
    except (TypeMismatch, LimitError):
        return
    meaning = semantics_of(name, SCHEMA, defaults)
    full = delicate_rows()[3]
    for row in [*some, full]:
        check(expression, meaning, rows_that_can_occur(expression, meaning, row, full))


@pytest.mark.parametrize("name", NAMES)
@given(
    text=DENSE_FILTERS, some=st.lists(DENSE_ROWS, min_size=1, max_size=20), defaults=DENSE_ROWS
)  # fmt: skip
@settings(max_examples=50)
def test_the_same_where_predicates_have_much_to_say_about_each_other(name, text, some, defaults):
    expression = parse(text, DENSE)
    meaning = semantics_of(name, DENSE, defaults)
    full = (9, 1.5, "abc", True, 0, 3, "buy")
    for row in some:
        check(expression, meaning, rows_that_can_occur(expression, meaning, row, full))


@pytest.mark.parametrize("restriction", ["query", "iterative"])
@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(DENSE_FILTERS, min_size=1, max_size=4), some=st.lists(DENSE_ROWS, max_size=9))
@settings(max_examples=25)
def test_restricted_filters_answer_as_they_did(name, restriction, texts, some):
    meaning = semantics_of(name, DENSE, (9, None, "abc", None, None, 3, "buy"))
    tested = make_engine("bdd", meaning, {"restriction": restriction})
    oracle = make_engine("naive", meaning)
    for handle, text in enumerate(texts):
        for engine in (tested, oracle):
            engine.add(handle, engine.prepare(parse(text, DENSE)))
    full = (9, 1.5, "abc", True, 0, 3, "buy")
    for row in some:
        asked = meaning.prepare(fill(row, full, range(7)) if name == "total" else row)
        assert tested.match(asked).tolist() == oracle.match(asked).tolist()


# --- by hand


def root(text, semantics="sql", schema=DENSE, restriction="query", defaults=None):
    """The engine that holds one filter, and its node."""
    engine = make_engine(
        "bdd", Semantics(semantics, schema, defaults), {"restriction": restriction}
    )
    form = engine.prepare(parse(text, schema))
    engine.add(0, form)
    return engine, engine.root(form)


def size(text, *arguments, **options):
    engine, node = root(text, *arguments, **options)
    return len(engine.diagram.reachable([node]))


def asked(text, *arguments, **options):
    """The predicates that the diagram of a filter still tests."""
    engine, node = root(text, *arguments, **options)
    tested = support(engine.diagram, node)
    return {predicate for predicate, variable in engine.variables() if variable in tested}


def predicate(text, schema=DENSE):
    return normalize(parse(text, schema).tree)


def test_ten_is_more_than_eight():
    """The paper's example: n = 10 implies n > 8."""
    ten, more = predicate("n = 10"), predicate("n > 8")
    (facts,) = dependency_facts([(ten, 0), (more, 1)], DENSE, lambda _: True)
    assert facts.always == [[0, DO_NOT, 1, DO_OR]]
    assert facts.if_present == []
    for semantics in ("sql", "strict", "total"):
        assert asked("n = 10 AND n > 8", semantics) == {ten}
        assert asked("n > 8 OR n = 10", semantics) == {more}
    assert asked("n = 10 AND n > 8", restriction="none") == {ten, more}


@each(
    ("text", "before", "after"),
    [
        ("n < 5 AND n > 8", 2, 0),  # they exclude each other
        ("n = 10 AND n = 11", 2, 0),
        ("side = 'buy' OR side = 'sell'", 2, 2),
        ("s LIKE 'ab%' AND s LIKE 'a%'", 2, 1),
        ("s = 'abc' AND s LIKE '%b%'", 2, 1),
        ("s = 'abc' AND s LIKE 'x%'", 2, 0),
        ("n = 10 AND n IS NOT NULL", 2, 1),
        ("n = 10 AND n IS NULL", 2, 0),
        ("(n < 5 AND b) OR (n < 3 AND b)", 3, 2),
        ("level = 1 AND level < 2", 2, 1),  # in the domain these are the same
    ],
)
def test_diagrams_become_smaller(text, before, after):
    assert size(text, restriction="none") == before
    assert size(text) == after
    assert size(text, restriction="iterative") == after


@each(
    ("semantics", "defaults", "constant"),
    [
        ("strict", None, True),  # what decides is whether the event has a price
        ("total", None, True),
        ("sql", None, False),
        ("default", {"price": 0}, True),
        ("default", {"price": None}, False),
    ],
)
def test_every_price_is_below_a_thousand_or_above_five_hundred(semantics, defaults, constant):
    """The paper's example 5."""
    text = "price < 1000 OR price > 500"
    _, node = root(text, semantics, PRICES, defaults=defaults)
    assert (node == TRUE) is constant


@each("engine", ["bdd", "mbd"])
@each("semantics", ["strict", "sql"])
def test_a_message_without_a_price_does_not_match(engine, semantics):
    """Whatever the diagram says: adequacy is a matter of the text."""
    m = Matcher(PRICES, engine=engine, semantics=semantics)
    m.subscribe("both", "price < 1000 OR price > 500")
    m.subscribe("neither", "price < 500 AND price > 1000")
    m.subscribe("opposite", "NOT (price < 500 AND price > 1000)")
    m.subscribe("always", "TRUE OR price > 0")
    assert m.match({}) == (["always"] if semantics == "sql" else [])
    assert m.match({"price": 700}) == ["both", "opposite", "always"]
    assert m.match({"price": math.nan}) == ["both", "opposite", "always"]


def test_a_bottom_that_is_neither_below_nor_above():
    for engine in ("bdd", "mbd"):
        m = Matcher(PRICES, engine=engine, semantics="default", defaults={"price": None})
        m.subscribe("both", "price < 1000 OR price > 500")
        m.subscribe("not below", "NOT price < 1000")
        m.subscribe("missing", "price IS NULL")
        assert m.match({}) == ["not below", "missing"]
        assert m.match({"price": 700}) == ["both"]


def test_what_is_certain_only_of_events_with_the_attribute():
    """Of an event without n neither half is true; with IS NULL the three exhaust all events."""
    below, above, missing = predicate("n < 10"), predicate("n >= 10"), predicate("n IS NULL")
    members = [(below, 0), (above, 1), (missing, 2)]
    (facts,) = dependency_facts(members, DENSE, lambda _: False)
    assert [0, 1, DO_OR] in facts.if_present
    whole, pieces = whole_function([facts]), single_clauses([facts])
    for truth, possible in [
        ([True, False, False], True),
        ([False, True, False], True),
        ([False, False, True], True),
        ([False, False, False], False),
        ([True, True, False], False),
        ([True, False, True], False),
    ]:
        assert run(whole, truth) == [possible]
        assert all(run(pieces, truth)) is possible
    assert size("n < 10 OR n >= 10 OR n IS NULL") == 0
    assert root("n < 10 OR n >= 10 OR n IS NULL")[1] == TRUE
    assert root("n IS NULL AND n IS NOT NULL")[1] == FALSE
    assert root("n IS NULL OR n IS NOT NULL")[1] == TRUE
    assert root("n IS NULL", "strict")[1] == FALSE
    assert root("n IS NOT NULL", "total")[1] == TRUE


def test_predicates_of_different_attributes_know_nothing_of_each_other():
    texts = ["n = 8", "level = 3", "n < level", "n + 1 > 9", "x > 1.5"]
    members = [(predicate(text), number) for number, text in enumerate(texts)]
    assert dependency_facts(members, DENSE, lambda _: True) == []
    assert whole_function([]).tolist() == [DO_TRUE]
    assert single_clauses([]).dtype == np.int64
    assert len(single_clauses([])) == 0


def test_a_filter_of_very_many_predicates_is_compared_in_part():
    """Beyond a number of pairs no more are compared, and what is known stays true."""
    most = 200
    members = [(predicate(f"n < {number}"), number) for number in range(most)]
    (facts,) = dependency_facts(members, DENSE, lambda _: True)
    assert len(facts.always) == MOST_PAIRS < most * (most - 1) // 2
    for value in (-1, 0, 7, 150, 199, 200):
        truth = [value < number for number in range(most)]
        assert run(whole_function([facts]), truth) == [True]
