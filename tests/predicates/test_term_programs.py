"""Which terms are in a program, and what it shares among them."""

import numpy as np
import pytest

from cases import each
from function_differences import accepted, events, value_tree
from oracles import expected_key
from strategies import SCHEMA
from tamis import Matcher, Schema
from tamis.language.evaluation import compile_value
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.term_columns import TermColumns
from tamis.predicates.term_programs import TermProgram, in_programs


@each(
    ("text", "expected"),
    [
        ("i + j", True), ("x * 2 > y", True), ("length(s) + 1", True), ("length(s)", False),
        ("s < t", False), ("lower(s)", False), ("coalesce(s, t)", False), ("power(x, 2)", False),
        ("round(x, 2)", False), ("round(x)", True), ("if(s < t, 1, 2)", True),
        ("i IS NULL OR s = 'a'", True), ("nullif(i, j)", False),
        ("d * i > 1", True), ("d + e", False), ("d + 1", True), ("d - 0.005", True),
        ("e % d", True), ("-d", True), ("CAST(d AS DOUBLE) + x", True), ("d / 3", False),
        ("e * e", False), ("round(d)", False),
        ("at + INTERVAL 2 DAYS", True), ("until - at", True), ("at + INTERVAL 1 MONTH", False),
        ("to_date(at) - INTERVAL 1 DAY", False),
        ("d * 12345678901234567890", False),  # the constant is too long
    ],
)  # fmt: skip
def test_what_a_program_computes(text, expected):
    assert bool(in_programs([value_tree(text)])) == expected


def test_what_terms_have_in_common_is_computed_once():
    both = TermProgram({0: value_tree("i * j + 1"), 1: value_tree("i * j - x")}, SCHEMA)
    apart = [TermProgram({0: value_tree(text)}, SCHEMA) for text in ("i * j + 1", "i * j - x")]
    assert both.steps == sum(one.steps for one in apart) - 3  # two inputs and a product


@pytest.mark.parametrize("seed", range(3))
def test_functions_in_programs_have_their_meaning(seed):
    rows = [row for row in events(seed) if row is not None] + [(None,) * len(SCHEMA)]
    terms = [tree for _, tree in accepted(150, seed)]
    chosen = in_programs(terms)
    program = TermProgram(chosen, SCHEMA)
    keys, present = program.of_batch(TermColumns(batch_of_rows(rows, SCHEMA)), len(terms))
    for number, term in chosen.items():
        compute = compile_value(term, SCHEMA)
        values = [compute(row) for row in rows]
        assert present[number].tolist() == [value is not None for value in values], term
        wanted = [0 if v is None else expected_key(v, term.type) for v in values]
        assert keys[number].tolist() == wanted, term


def test_a_deep_term_is_computed():
    text = "i" + " + i" * 98
    row = tuple((dict.fromkeys(SCHEMA) | {"i": 2}).values())
    found, there = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    TermProgram({0: value_tree(text)}, SCHEMA).of_row(row, found, there)
    assert (found[0], there[0]) == (198, 1)


def test_matches_after_loading_from_a_file(tmp_path):
    schema = Schema({"price": "double", "qty": "int", "name": "string"})
    rules = [(n, f"price * {n} + qty > {100 * n} OR length(name) * qty < {n}") for n in range(200)]
    some = [
        {"price": 2.5 * k, "qty": None if k % 7 == 0 else k, "name": "x" * k} for k in range(60)
    ]
    naive, sliced = Matcher(schema, engine="naive"), Matcher(schema, engine="sliced")
    for matcher in (naive, sliced):
        matcher.subscribe_many(rules)
    sliced.save(tmp_path / "rules.tamis")
    loaded = Matcher.load(tmp_path / "rules.tamis")
    expected = [naive.match(event) for event in some]
    assert any(expected)
    for matcher in (sliced, loaded):
        assert [matcher.match(event) for event in some] == expected
        assert matcher.match_batch(some, output="counts")["count"].to_pylist() == [
            len(one) for one in expected
        ]
