"""The normal form says the same as the filter, in canonical predicates."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import LimitError, Schema, TypeMismatch, parse
from tamis.language import ast
from tamis.language.evaluation import Logic, compile_tree
from tamis.language.normal_form import normalize
from tamis.language.printer import print_tree

FIXTURE = Path(__file__).parent / "fixtures" / "normal_forms.txt"


def fixture_lines():
    for line in FIXTURE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            text, form = line.split("  =>  ")
            logic = Logic.CLASSICAL if text.startswith("classical: ") else Logic.KLEENE
            yield text.removeprefix("classical: "), form, logic


@each(("text", "form", "logic"), list(fixture_lines()))
def test_normal_forms(text, form, logic):
    assert print_tree(normalize(parse(text, SCHEMA).tree, logic)) == form


@pytest.mark.long
@pytest.mark.parametrize("logic", list(Logic))
@given(text=filters(), some_rows=st.lists(rows(), min_size=1, max_size=5))
def test_the_normal_form_is_true_when_the_filter_is(logic, text, some_rows):
    try:
        tree = parse(text, SCHEMA).tree
    except TypeMismatch:
        return
    filter_, form = compile_tree(tree, SCHEMA, logic), compile_tree(normalize(tree, logic), SCHEMA)
    for row in some_rows:
        assert (filter_(row) is True) == (form(row) is True)


@given(
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    st.sampled_from(
        ["9007199254740993e0", "-9007199254740993e0", "9.3e18", "-9.3e18", "1e300", "0.5", "-0.5",
         "9223372036854775807", "-9223372036854775808", "9223372036854775807.5", "2.5D", "-0.0D",
         "9223372036854775808", "9223372036854775807e0"]
    ),
)  # fmt: skip
def test_whole_numbers_are_cut_at_the_right_place(op, constant):
    tree = parse(f"i {op} {constant}", SCHEMA).tree
    filter_, form = compile_tree(tree, SCHEMA), compile_tree(normalize(tree), SCHEMA)
    for row in delicate_rows():
        assert (filter_(row) is True) == (form(row) is True), row


def formula_nodes(form):
    """The nodes of a form, without the conditions inside values."""
    yield form
    if not isinstance(form, ast.Call):
        for part in ast.children(form):
            yield from formula_nodes(part)


@given(filters())
def test_no_negation_is_above_a_connective(text):
    try:
        form = normalize(parse(text, SCHEMA).tree)
    except TypeMismatch:
        return
    for node in formula_nodes(form):
        assert not isinstance(node, ast.Between | ast.IsTruth | ast.Slot)
        if isinstance(node, ast.Not):
            assert not isinstance(node.operand, ast.And | ast.Or | ast.Not | ast.Compare)


@given(filters())
def test_normalising_twice_changes_nothing(text):
    try:
        form = normalize(parse(text, SCHEMA).tree)
    except TypeMismatch:
        return
    assert normalize(form) == form


@pytest.mark.long
@each(
    "text",
    ["b" + " = (i > 3)" * 90, "b" + " < (i > 3)" * 90, "(" * 60 + "b" + " IN (b, i > 3))" * 60],
)
def test_a_form_that_would_explode_meets_a_limit(text):
    tree = parse(text, Schema({"i": "int", "b": "bool"})).tree
    with pytest.raises(LimitError, match="normal form"):
        normalize(tree)
