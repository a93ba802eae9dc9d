"""Programs of computed values against the definition of the language, also for extreme values."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from function_differences import value_tree
from oracles import expected_key
from strategies import DECIMALS, EXACT, LONG_DECIMALS, MOMENTS, SCHEMA
from tamis import TypeMismatch
from tamis.kernels.term_operations import MOST_OPERANDS, OPERATIONS
from tamis.kernels.term_steps import LANES
from tamis.language import ast
from tamis.language.evaluation import compile_value
from tamis.language.functions.table import FUNCTIONS
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.term_programs import TermProgram, in_programs
from tamis.types import DOUBLE

pytestmark = pytest.mark.uncompiled

WHOLE = st.sampled_from([None, 0, 1, -1, 2, 7, -7, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)])
REAL = st.sampled_from(
    [None, 0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 0.49999999999999994, 1e300, -1e300, 9.3e18, 2.0**63,
     -(2.0**63), 5e-324, math.inf, -math.inf, math.nan]
)  # fmt: skip
TRUTH = st.sampled_from([None, True, False])
MOMENT = st.sampled_from([None, *MOMENTS])
SHORT = st.sampled_from([None, *DECIMALS])
# Of 17 to 19 digits, between the ends of 64 bits, and beyond them.
EDGES = [10**16, 10**17 - 1, 10**17, 10**17 + 7, 10**18 - 1, 10**18, 10**18 + 70, 2**63 - 1, 2**63,
         -(2**63), -(2**63) + 1, 2**62, -(2**62) - 1, 2**53, 2**53 + 1]  # fmt: skip
LONG = st.sampled_from([None, *LONG_DECIMALS, *(Decimal(n).scaleb(-10, EXACT) for n in EDGES)])


@st.composite
def rows(draw):
    given = dict.fromkeys(SCHEMA)
    given |= {name: draw(WHOLE) for name in "ij"} | {name: draw(REAL) for name in "xy"}
    given |= {name: draw(TRUTH) for name in "bc"} | {"s": draw(st.sampled_from([None, "a", "bc"]))}
    given |= {"at": draw(MOMENT), "until": draw(MOMENT), "d": draw(SHORT), "e": draw(LONG)}
    return tuple(given.values())


def _numbers(inner):
    """Texts of numbers, which may be whole or not."""
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from("+-*/%"), two).map(lambda t: f"({t[1][0]} {t[0]} {t[1][1]})"),
        st.tuples(st.sampled_from(["abs", "-", "floor", "ceil", "sqrt", "round"]), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        st.tuples(st.sampled_from(["coalesce", "greatest", "least"]), two).map(
            lambda t: f"{t[0]}({t[1][0]}, {t[1][1]}, i)"
        ),
        st.tuples(conditions(inner), two).map(
            lambda t: f"CASE WHEN {t[0]} THEN {t[1][0]} WHEN b THEN {t[1][1]} END"
        ),
    )


def conditions(inner):
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    plain = st.one_of(
        st.tuples(inner, operators, inner), st.tuples(DURATIONS, operators, DURATIONS)
    ).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    part = st.one_of(plain, st.sampled_from(["b", "(i IS NULL)", "(b IS FALSE)", "(s = 'a')"]))
    return st.one_of(
        part,
        st.tuples(part, st.sampled_from(["AND", "OR"]), part).map(
            lambda t: f"({t[0]} {t[1]} NOT {t[2]})"
        ),
    )


DURATIONS = st.sampled_from(
    ["(until - at)", "(at - until)", "INTERVAL 90 MINUTES", "(at - until - INTERVAL '2' DAYS)",
     "(until - (at + INTERVAL 1000000 DAYS))", "(INTERVAL '5' HOURS + (until - at))"]
)  # fmt: skip
LEAVES = st.sampled_from(
    ["i", "j", "x", "y", "3", "-1", "0", "2.5D", "length(s)", "(i DIV j)", "(j DIV -1)", "NULL",
     "CAST(i AS DOUBLE)", "CAST(i AS INT)"]
)  # fmt: skip
EXACT_LEAVES = st.sampled_from(
    ["d", "d", "e", "i", "7", "0", "0.25", "-99.9", "1234567890123456789.5", "CAST(i AS INT)",
     "CAST(x AS DECIMAL(12, 3))", "CAST(NULL AS DECIMAL(4, 1))", "x", "3D"]
)  # fmt: skip
NUMBERS = st.recursive(LEAVES, _numbers, max_leaves=6)
EXACT_NUMBERS = st.recursive(EXACT_LEAVES, _numbers, max_leaves=6)
TERMS = st.one_of(NUMBERS, conditions(NUMBERS), EXACT_NUMBERS, conditions(EXACT_NUMBERS))


def trees(texts):
    """The terms that are accepted; a few mix types."""
    for text in texts:
        try:
            yield value_tree(text)
        except TypeMismatch:
            continue


@settings(max_examples=250)
@given(st.lists(TERMS, min_size=1, max_size=5), st.lists(rows(), min_size=1, max_size=6))
def test_programs_compute_what_terms_mean(texts, some):
    terms = list(trees(texts))
    chosen = in_programs(terms)
    program = TermProgram(chosen, SCHEMA)
    batch = batch_of_rows(some, SCHEMA)
    keys, present = program.of_batch(TermColumns(batch), len(terms))
    for event, row in enumerate(some):
        own, there = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.uint8)
        program.of_row(row, own, there)
        for number, term in chosen.items():
            value = compile_value(term, SCHEMA)(row)
            found = value is not None, 0 if value is None else expected_key(value, term.type)
            assert (present[number, event], keys[number, event]) == found, (str(term), row)
            assert (there[number], own[number]) == found, (str(term), row)


def test_blocks_are_computed_one_after_the_other():
    count = 2 * LANES + 3
    empty = dict.fromkeys(SCHEMA)
    some = [
        tuple((empty | {"i": n, "j": None if n % 5 == 0 else 2}).values()) for n in range(count)
    ]
    program = TermProgram({0: value_tree("i * j + 1")}, SCHEMA)
    keys, present = program.of_batch(TermColumns(batch_of_rows(some, SCHEMA)), 1)
    assert keys[0].tolist() == [0 if n % 5 == 0 else 2 * n + 1 for n in range(count)]
    assert present[0].tolist() == [int(n % 5 != 0) for n in range(count)]
    no_events = program.of_batch(TermColumns(batch_of_rows([], SCHEMA)), 1)
    assert [part.shape for part in no_events] == [(1, 0), (1, 0)]


def test_every_operation_of_a_function_exists():
    """All that entries of the table name, for each type that they are defined for."""
    numbers = [value_tree(text) for text in ("i", "x", "CAST(i AS INT)", "d")]
    span = value_tree("until - at")
    assert all(FUNCTIONS[name].operations(ast.Call(name, (span, span), span.type)) for name in "+-")
    for name in ("+", "-", "*", "/", "%", "DIV", "negative", "abs", "floor", "ceil", "greatest"):
        for operand in numbers:
            call = ast.Call(name, (operand, operand), operand.type)
            if name in {"floor", "ceil"}:
                call = ast.Call(name, (operand,), operand.type)
            if (name == "DIV") == (operand.type == DOUBLE) or name == "/":
                continue
            assert all(one in OPERATIONS for one in FUNCTIONS[name].operations(call)), name
    assert {arity for _, arity in OPERATIONS.values()} == set(range(1, MOST_OPERANDS + 1))
    assert len({operation for operation, _ in OPERATIONS.values()}) == len(OPERATIONS)
