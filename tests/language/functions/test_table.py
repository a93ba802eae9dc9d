"""The table of functions: every entry has a meaning, a kernel that agrees, and a name."""

import math
from decimal import Decimal

import pytest

from cases import each
from function_differences import accepted, events, same, value_tree
from strategies import SCHEMA
from tamis import Schema
from tamis.language.evaluation import Logic, compile_tree, compile_value
from tamis.language.functions.table import BY_SPELLING, FUNCTIONS
from tamis.language.normal_form import normalize
from tamis.language.nulls import needed_attributes
from tamis.language.parser import parse_tree
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.keys import scaled
from tamis.predicates.term_columns import TermColumns
from tamis.types import Kind

ROW = dict.fromkeys(SCHEMA) | {"i": 7, "x": -2.5, "s": " aBc ", "b": True}


def value(text, **given):
    """The value of a term."""
    row = tuple((ROW | given)[name] for name in SCHEMA)
    return compile_value(value_tree(text), SCHEMA)(row)


@each(
    ("text", "expected"),
    [
        ("trim(s)", "aBc"), ("ltrim(s)", "aBc "), ("upper(s)", " ABC "), ("reverse(s)", " cBa "),
        ("substring(s, 2, 2)", "aB"), ("substring(s, -2)", "c "), ("substring(s, 0, 2)", " a"),
        ("substring(s, -9, 6)", " a"), ("left(s, 2)", " a"), ("right(s, 2)", "c "),
        ("right(s, -1)", ""), ("TRIM('a ' FROM s)", "Bc"), ("ltrim(' a', s)", "Bc "),
        ("TRIM(TRAILING 'c ' FROM s)", " aB"), ("btrim(s, '')", " aBc "), ("btrim(s)", "aBc"),
        ("instr(s, 'B')", 3), ("instr(s, 'x')", 0), ("locate('', s)", 1), ("locate('c', s, 4)", 4),
        ("locate('c', s, 5)", 0), ("locate('c', s, 0)", 0), ("locate('c', s, NULL)", 0),
        ("locate(t, s, 1)", None), ("lpad(s, 8, 'xy')", "xyx aBc "), ("rpad(s, 3)", " aB"),
        ("rpad(s, 7, 'x')", " aBc xx"), ("lpad(s, -1)", ""), ("lpad(s, 9, '')", " aBc "),
        ("split_part('a,b,c', ',', 2)", "b"), ("split_part('a,b,c', ',', -1)", "c"),
        ("split_part('a,b', ',', 3)", ""), ("split_part('a,b', '', 1)", "a,b"),
        ("split_part('a,b', ',', -3)", ""), ("s ILIKE '%BC_'", True), ("s LIKE '%bc_'", False),
        ("s NOT LIKE ANY ('%B%', 'x')", True), ("s NOT LIKE ALL ('%B%', 'x')", False),
        ("t ILIKE ANY ('a', 'b')", None), ("regexp_like(s, '^ a')", True),
        ("replace(s, 'B', 'xx')", " axxc "), ("replace(s, '')", " aBc "), ("s || '!'", " aBc !"),
        ("concat(s, t)", None), ("floor(x)", -3), ("ceil(x)", -2), ("round(x)", -3.0),
        ("round(2.675D, 2)", 2.68), ("round(i, -1)", 10), ("round(2.5)", Decimal(3)),
        ("floor(1e300)", 2**63 - 1), ("sqrt(16)", 4.0), ("power(2, 10)", 1024.0),
        ("sign(x)", -1.0), ("signum(i)", 1.0), ("sign(0)", 0.0), ("sign(y)", None),
        ("isnan(x)", False), ("isnan(y)", False), ("isnan(double('NaN'))", True),
        ("nvl2(j, 1, 2)", 2), ("nvl2(i, 1, 2)", 1), ("int(' 12.7 ')", 12),
        ("array_max(array(3, NULL, 9))", 9), ("array_min(array('b', 'a'))", "a"),
        ("array_max(array(NULL, j))", None), ("array_max(array(1D, double('NaN')))", math.nan),
        ("array_position(array(1, i, NULL), 7)", 2), ("array_position(array(j), 7)", 0),
        ("array_position(array(1), j)", None),
        ("power(0D, -1)", math.inf), ("coalesce(j, i)", 7), ("coalesce(j, y)", None),
        ("nullif(i, 7)", None), ("nullif(i, j)", 7), ("greatest(i, j, 3)", 7), ("least(x, y)",
        -2.5),
        ("if(b, 1, 2)", 1), ("if(c, 1, 2)", 2), ("CASE WHEN c THEN 1 WHEN b THEN 2 END", 2),
        ("CASE i WHEN 7.0 THEN 'a' ELSE 'b' END", "a"), ("CASE j WHEN 7 THEN 1 END", None),
        ("CAST(' 12.7 ' AS INT)", 12), ("TRY_CAST('12.7' AS INT)", None), ("CAST(3e9 AS INT)",
        2**31 - 1),
        ("CAST(3000000000 AS INT)", 3_000_000_000 - 2**32), ("TRY_CAST(3e9 AS INT)", None),
        ("CAST('1e2' AS DOUBLE)", 100.0), ("CAST('yes' AS BOOLEAN)", True), ("CAST(b AS STRING)",
        "true"),
        ("CAST('1.005' AS DECIMAL(5, 2))", Decimal("1.01")), ("CAST('x' AS DOUBLE)", None),
        ("CAST(1234.5 AS DECIMAL(4, 1))", None), ("CAST(x AS BIGINT)", -2), ("mod(i, -4)", 3),
    ],
)  # fmt: skip
def test_what_functions_compute(text, expected):
    assert same(value(text), expected)


def test_names_are_found_and_unique():
    assert len(BY_SPELLING) == len(
        {s for f in FUNCTIONS.values() for s in (f.name,
        *f.spellings) if s.isidentifier()} - {"CASE", "DIV"}
    )  # fmt: skip
    assert BY_SPELLING["nvl"] is BY_SPELLING["ifnull"]
    assert "case" not in BY_SPELLING


@pytest.mark.parametrize("seed", range(3))
def test_columns_have_the_values_of_rows(seed):
    """By kernels, by distinct strings or by rows: what the meaning gives."""
    rows = [row for row in events(seed) if row is not None] + [(None,) * len(SCHEMA)]
    batch = batch_of_rows(rows, SCHEMA)
    columns = TermColumns(batch)
    for text, tree in accepted(150, seed):
        if tree.type.kind is Kind.NULL:
            continue
        vector = columns.vector(tree)
        compute = compile_value(tree, SCHEMA)
        for event, row in enumerate(rows):
            there, ours = _at(vector, event, tree.type)
            expected = compute(row)
            assert there == (expected is not None), text
            assert not there or same(ours, expected), (text, row, ours, expected)


def _at(vector, event, of):
    """Whether an event has a value, and the value."""
    there = vector.present if vector.present.ndim == 0 else vector.present[event]
    one = vector.values if vector.values.ndim == 0 else vector.values[event]
    one = one.item() if hasattr(one, "item") else one
    if of.kind is Kind.DECIMAL:
        (one,) = scaled([one], of.scale)
    return bool(there), vector.texts[one] if vector.texts is not None else one


def test_what_a_value_needs():
    def needed(text):
        return sorted(".".join(path) for path in needed_attributes(value_tree(text)))

    assert needed("i + j") == ["i", "j"]
    assert needed("coalesce(i, j) + r.k") == ["r.k"]
    assert needed("CASE WHEN b THEN i ELSE j END") == []
    assert needed("lower(s) || t") == ["s", "t"]
    assert needed("i IS NULL") == []


@each(
    "text",
    ["CASE WHEN NOT i = 1 THEN 2 ELSE 3 END = 2", "coalesce(NOT i = 1, c)", "NOT coalesce(b, c)",
     "if(NOT (i > 1 AND j > 1), s, t) = 'a'", "coalesce(b, c) IS NULL", "nullif(b, c) <=> c"],
)  # fmt: skip
def test_conditions_inside_values_mean_the_same_in_both_logics(text):
    schema = Schema(
        {"i": "int", "j": "int", "b": "bool", "c": "bool", "s": "string", "t": "string"}
    )
    tree = parse_tree(text, schema)
    for logic in Logic:
        form = compile_tree(normalize(tree, logic), schema)
        direct = compile_tree(tree, schema, logic)
        for i in (None, 1, 2):
            for j in (None, 2):
                for b in (None, True, False):
                    for c in (None, True, False):
                        row = (i, j, b, c, "a", None)
                        assert (form(row) is True) == (direct(row) is True), (text, logic, row)
