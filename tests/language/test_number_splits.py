"""Comparisons of exact numbers with constants of any type are comparisons with their own."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import Schema, parse
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.language.printer import print_tree

SCHEMA = Schema({"d": "decimal(5, 2)", "n": "int", "e": "decimal(38, 18)"})


@each(
    ("text", "form"),
    [
        ("d > 0.125", "d >= 0.13"), ("d < 0.125", "d <= 0.12"), ("d = 0.125", "FALSE"),
        ("d <> 0.125", "d IS NOT NULL"), ("d >= 0.1", "d >= 0.10"), ("d = 3", "d = 3.00"),
        ("d < 1e1", "d <= 9.99"), ("d = 1e-1", "d = 0.10"), ("d <= 1000", "d IS NOT NULL"),
        ("d > 999.99", "FALSE"), ("d >= 999.99", "d >= 999.99"), ("d < -1e300", "FALSE"),
        ("d IN (0.1, 0.125, 3, 0.10)", "d IN (0.10, 3.00)"), ("0.1 < d", "d >= 0.11"),
        ("d BETWEEN 0.095 AND 0.105", "d >= 0.10 AND d <= 0.10"),
        ("e = 0.1D", "e >= 0.099999999999999999 AND e <= 0.100000000000000012"),
        ("n > 0.5", "n >= 1"), ("n = 0.5", "FALSE"), ("d NOT IN (0.125)", "d IS NOT NULL"),
    ],
)  # fmt: skip
def test_normal_forms(text, form):
    written = print_tree(normalize(parse(text, SCHEMA).tree), suffixes=False)
    assert written == form


@given(
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    st.sampled_from(["0.1", "-0.125", "7", "1e-1", "0.1D", "1e3", "999.995", "-1000", "0.30"]),
    st.integers(-99999, 99999) | st.integers(-20, 20),
)
def test_the_normal_form_is_true_when_the_comparison_is(op, constant, number):
    tree = parse(f"d {op} {constant}", SCHEMA).tree
    row = (Decimal(number).scaleb(-2), None, None)
    plain = compile_tree(tree, SCHEMA)(row)
    assert (compile_tree(normalize(tree), SCHEMA)(row) is True) == plain
