import sys

import pytest

from cases import each
from strategies import SCHEMA
from tamis import Expression, Schema, parse
from tamis.errors import LimitError, ParseError, TypeMismatch
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.limits import MAX_ATOMS, MAX_DEPTH, MAX_TEXT
from tamis.language.parser import parse_tree
from tamis.types import BOOL, INT, STRING


def tree(text, schema=SCHEMA):
    return parse_tree(text, schema)


def refusal(text, kind=ParseError, schema=SCHEMA):
    with pytest.raises(kind) as caught:
        parse(text, schema)
    assert type(caught.value) is kind
    return caught.value


# --- precedence


@each(
    ("text", "explicit"),
    [
        ("b OR c AND b", "b OR (c AND b)"),
        ("b AND c OR b", "(b AND c) OR b"),
        ("b AND c OR c AND b", "(b AND c) OR (c AND b)"),
        ("NOT b AND c", "(NOT b) AND c"),
        ("NOT b OR c", "(NOT b) OR c"),
        ("NOT NOT b", "NOT (NOT b)"),
        ("! b AND c", "(NOT b) AND c"),
        ("!!b", "NOT (NOT b)"),
        ("NOT i = 1", "NOT (i = 1)"),
        ("! i = 1", "NOT (i = 1)"),
        ("NOT i IS NULL", "NOT (i IS NULL)"),
        ("NOT i BETWEEN 1 AND 2 AND b", "(NOT (i BETWEEN 1 AND 2)) AND b"),
        ("i BETWEEN 1 AND 2 AND b", "(i BETWEEN 1 AND 2) AND b"),
        ("i BETWEEN 1 AND 2 OR b", "(i BETWEEN 1 AND 2) OR b"),
        ("i BETWEEN j + 1 AND j * 2", "i BETWEEN (j + 1) AND (j * 2)"),
        ("i = 1 IS NULL", "(i = 1) IS NULL"),
        ("b = c IS TRUE", "(b = c) IS TRUE"),
        ("b = c IN (TRUE, FALSE)", "(b = c) IN (TRUE, FALSE)"),
        ("b = c = b", "(b = c) = b"),
        ("i < j = b", "(i < j) = b"),
        ("i + 1 < j - 1", "(i + 1) < (j - 1)"),
        ("i + j * 2 = 1", "(i + (j * 2)) = 1"),
        ("i * j + 2 = 1", "((i * j) + 2) = 1"),
        ("i - j - 1 = 0", "((i - j) - 1) = 0"),
        ("i / j * 2 = 0", "((i / j) * 2) = 0"),
        ("i * j / 2 = 0", "((i * j) / 2) = 0"),
        ("i % j DIV 2 = 0", "((i % j) DIV 2) = 0"),
        ("i DIV j % 2 = 0", "((i DIV j) % 2) = 0"),
        ("-i * j = 0", "(-i) * j = 0"),
        ("-i + j = 0", "(-i) + j = 0"),
        ("i * -j = 0", "i * (-j) = 0"),
        ("i - -j = 0", "i - (-j) = 0"),
        ("+i = 0", "i = 0"),
        ("- - i = 0", "-(-i) = 0"),
        ("s LIKE 'a' AND b", "(s LIKE 'a') AND b"),
        ("NOT s LIKE 'a' OR b", "(NOT (s LIKE 'a')) OR b"),
        ("s NOT LIKE 'a'", "NOT (s LIKE 'a')"),
        ("b AND c AND b", "b AND c AND (b)"),
        ("(((b)))", "b"),
    ],
)
def test_what_binds_tighter(text, explicit):
    assert tree(text) == tree(explicit)


def test_comparisons_associate_to_the_left_even_where_only_the_right_would_fit():
    assert refusal("b = i < j", TypeMismatch).problem == "= cannot compare bool with int"


@pytest.mark.parametrize("text", ["b AND (c AND b)", "(b AND c) AND b"])
def test_parentheses_keep_chains_apart(text):
    assert tree(text) != tree("b AND c AND b")


def test_a_chain_is_one_node():
    assert len(tree("b AND c AND b AND c").items) == 4
    assert len(tree("b OR c OR b").items) == 3


# --- constructs

B, I, S = (
    ast.Attribute(("b",), BOOL),
    ast.Attribute(("i",), INT),
    ast.Attribute(("s",), STRING),
)


@each(
    ("text", "node"),
    [
        ("TRUE", ast.TRUE),
        ("false", ast.FALSE),
        ("b", B),
        ("`b`", B),
        ("b IS TRUE", ast.IsTruth(B, True)),
        ("b IS NOT FALSE", ast.Not(ast.IsTruth(B, False))),
        ("b IS UNKNOWN", ast.IsNull(B)),
        ("b is not unknown", ast.Not(ast.IsNull(B))),
        ("i IS NULL", ast.IsNull(I)),
        ("i IS NOT NULL", ast.Not(ast.IsNull(I))),
        ("s LIKE 'a%'", ast.Like(S, "a%")),
        ("s like 'a!%' escape '!'", ast.Like(S, "a!%", "!")),
        ("s NOT LIKE 'a'", ast.Not(ast.Like(S, "a"))),
        ("s RLIKE '^a'", ast.RLike(S, "^a")),
        ("s REGEXP '^a'", ast.RLike(S, "^a")),
        (r"s NOT RLIKE r'\d'", ast.Not(ast.RLike(S, r"\d"))),
        ("contains(s, s)", ast.Call("contains", (S, S), BOOL)),
        ("s SUBSTRING OF s", ast.Call("contains", (S, S), BOOL)),
        ("s NOT substring of s", ast.Not(ast.Call("contains", (S, S), BOOL))),
        ("i IN (i)", ast.In(I, (I,))),
        ("i IN {i, i}", ast.In(I, (I, I))),
        ("i NOT IN (i)", ast.Not(ast.In(I, (I,)))),
        ("i IN [i, i]", ast.Between(I, I, I, INT, INT)),
        ("i == i", ast.Compare("=", I, I)),
        ("i != i", ast.Compare("<>", I, I)),
        ("i <=> i", ast.Compare("<=>", I, I)),
    ],
)
def test_the_tree_of_a_construct(text, node):
    assert tree(text) == node


def test_substring_of_looks_for_the_left_in_the_right():
    assert tree("'a' SUBSTRING OF s") == tree("contains(s, 'a')")


WORDS = Schema(
    {
        "and": "bool", "a.or": "int", "a.b.c": "int", "a b": "int", "`a.b`": "int", "`x``y`": "int",
        "timestamp": "timestamp", "date": "timestamp", "escape": "string", "substring": "string",
        "of": "string", "unknown": "bool", "length": "int", "é": "int", "": "int", "A": "int",
    }
)  # fmt: skip


@each(
    ("text", "path"),
    [
        ("`and`", ("and",)),
        ("a.`or` = 1", ("a", "or")),
        ("`a`.`or` = 1", ("a", "or")),
        ("a . b . c = 1", ("a", "b", "c")),
        ("`a b` = 1", ("a b",)),
        ("`a.b` = 1", ("a.b",)),
        ("`x``y` = 1", ("x`y",)),
        ("timestamp > TIMESTAMP '2024-01-01'", ("timestamp",)),
        ("date > DATE '2024-01-01'", ("date",)),
        ("escape LIKE 'a' ESCAPE '!'", ("escape",)),
        ("substring = 'a'", ("substring",)),
        ("'a' SUBSTRING OF substring", ("substring",)),
        ("unknown IS UNKNOWN", ("unknown",)),
        ("length > 1", ("length",)),
        ("é = 1", ("é",)),
        ("`` = 1", ("",)),
        ("A = 1", ("A",)),
    ],
)
def test_names_of_attributes(text, path):
    assert ast.attributes(tree(text, WORDS)) == {path}


# --- errors

REFUSED = [
    # filter, the part at fault, the problem, the hint
    ("", "", "the filter is empty", "write TRUE to match every event"),
    (" \n ", " \n ", "the filter is empty", "write TRUE to match every event"),
    ("b AND", "", "the filter ends too early", "expected an attribute, a constant"),
    ("AND b", "AND", "unexpected 'AND'", "in backticks: `and`"),
    ("b OR OR c", "OR", "unexpected 'OR'", "expected an attribute, a constant or a condition"),
    ("b c", "c", "unexpected 'c'", "expected AND, OR, or the end of the filter"),
    ("b)", ")", "unexpected ')'", "there is no open parenthesis for it to close"),
    ("(b", "", "the filter ends too early", "expected ) to close the ( at column 1"),
    ("b AND ((c)", "", "the filter ends too early", "expected ) to close the ( at column 7"),
    ("(b]", "]", "unexpected ']'", "expected ) to close"),
    ("()", ")", "unexpected ')'", "expected an attribute"),
    ("i = ", "", "the filter ends too early", "expected an attribute"),
    ("= 1", "=", "unexpected '='", "expected an attribute"),
    ("i = = 1", "=", "unexpected '='", "expected an attribute"),
    ("i =< 1", "<", "unexpected '<'", "expected an attribute"),
    ("i = NOT b", "NOT", "NOT is not allowed here", "put parentheses around it"),
    ("b = !c", "!", "! is not allowed here", "put parentheses around it"),
    ("1 + NOT b = 2", "NOT", "NOT is not allowed here", "put parentheses around it"),
    ("- NOT b", "NOT", "NOT is not allowed here", "put parentheses around it"),
    ("i BETWEEN NOT b AND c", "NOT", "NOT is not allowed here", "put parentheses around it"),
    ("i BETWEEN 1", "", "ends too early", "expected AND between the two bounds of BETWEEN"),
    ("i BETWEEN 1 OR 2", "OR", "unexpected 'OR'", "expected AND between the two bounds"),
    ("i BETWEEN 1, 2", ",", "unexpected ','", "expected AND between the two bounds"),
    ("i IN 1", "1", "unexpected '1'", "expected a list in parentheses: IN (1, 2)"),
    ("i IN ()", "()", "the list of IN is empty", None),
    ("i IN {}", "{}", "the list of IN is empty", None),
    ("i IN (1, 2", "", "ends too early", "expected ) at the end of the list, or a comma"),
    ("i IN (1 2)", "2", "unexpected '2'", "expected ) at the end of the list, or a comma"),
    ("i IN (1, )", ")", "unexpected ')'", "expected an attribute"),
    ("i IN (1}", "}", "unexpected '}'", "expected ) at the end of the list"),
    ("i IN [1]", "[1]", "an interval has two ends, not 1", "write IN (...) for a list"),
    ("i IN [1, 2, 3]", "[1, 2, 3]", "an interval has two ends, not 3", "write IN (...)"),
    ("i IN [1, 2)", ")", "unexpected ')'", "expected ] at the end of the list"),
    ("s LIKE s", "s", "unexpected 's'", "expected a string in quotes after LIKE"),
    ("s LIKE", "", "the filter ends too early", "expected a string in quotes after LIKE"),
    ("s LIKE 'a' ESCAPE", "", "ends too early", "expected a string in quotes after ESCAPE"),
    ("s LIKE 'a' ESCAPE ''", "''", "must be a single character", None),
    ("s LIKE 'a' ESCAPE '!!'", "'!!'", "must be a single character", None),
    ("s RLIKE 1", "1", "unexpected '1'", "expected a string in quotes after RLIKE"),
    ("s REGEXP t", "t", "unexpected 't'", "expected a string in quotes after REGEXP"),
    ("s SUBSTRING t", "t", "unexpected 't'", "expected OF after SUBSTRING"),
    ("s NOT = 'a'", "=", "unexpected '='", "expected BETWEEN, IN, LIKE, ILIKE, RLIKE or"),
    ("s NOT IS NULL", "IS", "unexpected 'IS'", "expected BETWEEN, IN, LIKE, ILIKE, RLIKE or"),
    ("b NOT", "", "the filter ends too early", "expected BETWEEN, IN, LIKE, ILIKE, RLIKE or"),
    ("i IS 1", "1", "unexpected '1'", "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"),
    ("i IS NOT", "", "ends too early", "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"),
    ("i IS NULL IS NULL", "IS", "unexpected 'IS'", "put parentheses around what comes before"),
    ("i IS NULL = b", "=", "unexpected '='", "put parentheses around what comes before"),
    ("NOT b IS NULL IN (b)", "IN", "unexpected 'IN'", "put parentheses around"),
    ("i IN (1) + 1", "+", "unexpected '+'", "put parentheses around what comes before"),
    ("r. = 1", "=", "unexpected '='", "expected a name after the dot"),
    ("i.1 = 1", ".1", "unexpected '.1'", "expected AND, OR, or the end of the filter"),
    ("r.'k' = 1", "'k'", 'unexpected "\'k\'"', "expected a name after the dot"),
    ("r.and = 1", "and", "unexpected 'AND'", "write `and` in backticks"),
    ("length(s", "", "ends too early", "expected ) at the end of the list, or a comma"),
    ("length(s,) = 1", ")", "unexpected ')'", "expected an attribute"),
    ("`b`(s) = 1", "(", "unexpected '('", "expected AND, OR, or the end"),
    ("at = DATE '2024-01-01 12:00'", "'2024-01-01 12:00'", "no time of day", "TIMESTAMP"),
    ("i = 5.5L", "5.5L", "the suffix L is for whole numbers", None),
    ("i = -9223372036854775809L", "9223372036854775809L", "does not fit in 64 bits", None),
    ("x = 1e999", "1e999", "the number is too large for a double", None),
    (r"s = '\ud800'", r"'\ud800'", "half of a surrogate pair", None),
    (r"s LIKE '\ud800'", r"'\ud800'", "half of a surrogate pair", None),
    ("i = 1, j = 2", ",", "unexpected ','", "expected AND, OR, or the end of the filter"),
    ("[b]", "[", "unexpected '['", "expected an attribute"),
]  # fmt: skip


@each(("text", "part", "problem", "hint"), REFUSED)
def test_an_error_points_at_its_place(text, part, problem, hint):
    error = refusal(text)
    assert problem in error.problem
    assert text[error.start : error.end] == part
    assert error.hint is None if hint is None else hint in error.hint


# --- limits

NESTINGS = [
    # what opens a level, the innermost part, what closes a level, what follows
    ("(", "b", ")", ""),
    ("NOT ", "b", "", ""),
    ("!", "b", "", ""),
    ("NOT (", "b", ")", ""),
    ("- ", "i", "", " = 1"),
    ("+ ", "i", "", " = 1"),
    ("-(", "i", ")", " = 1"),
    ("abs(", "i", ")", " = 1"),
    ("lower(", "s", ")", " = 'a'"),
    ("(1 + ", "i", ")", " = 1"),
    ("(", "i", " * 2)", " = 1"),
    ("", "i", " + 1", " = 1"),
    ("", "i", " / 2", " = 1"),
    ("", "b", " = c", ""),
    ("c = (", "b", ")", ""),
    ("b IN (", "b", ")", ""),
    ("b IN {c, ", "b", "}", ""),
    ("b IN [c, ", "b", "]", ""),
    ("b BETWEEN c AND (", "b", ")", ""),
    ("(", "b", ") BETWEEN b AND c", ""),
    ("(", "b", ") IS NULL", ""),
    ("(b OR c AND ", "b", ")", ""),
]


def nested(nesting, levels):
    opening, core, closing, tail = nesting
    return opening * levels + core + closing * levels + tail


@pytest.mark.long
@each("nesting", NESTINGS)
def test_ten_thousand_levels_are_refused(nesting):
    error = refusal(nested(nesting, 10_000), LimitError)
    assert error.problem == f"the filter is nested more than {MAX_DEPTH} levels deep"


@each("nesting", NESTINGS)
def test_a_few_levels_are_fine(nesting):
    text = nested(nesting, 9)
    assert tree(str(parse(text, SCHEMA))) == tree(text)


def test_levels_that_use_much_of_the_stack_are_refused():
    refusal("b OR c AND i = 1 + 2 * abs(" * 10_000, LimitError)


def test_the_deepest_parentheses():
    assert tree("(" * MAX_DEPTH + "b" + ")" * MAX_DEPTH) == B
    error = refusal("(" * (MAX_DEPTH + 1) + "b" + ")" * (MAX_DEPTH + 1), LimitError)
    assert error.start == MAX_DEPTH + 1
    assert error.hint == "a chain of ANDs or of ORs needs no parentheses"


@each(
    "text",
    ["NOT " * 99 + "b", "abs(" * 98 + "i" + ")" * 98 + " = 1", "i" + " + 1" * 98 + " = 1"],
)
def test_the_deepest_trees_can_be_used(text):
    expression = parse(text, SCHEMA)
    again = parse(str(expression), SCHEMA)
    assert again == expression
    assert hash(again) == hash(expression)
    row = [True if name == "b" else 0 for name in SCHEMA]
    assert compile_tree(expression.tree, SCHEMA)(row) is False


@pytest.mark.long
@pytest.mark.parametrize("opening", ["NOT ", "abs("])
def test_a_million_characters_that_only_open_levels_are_refused(opening):
    refusal((opening * MAX_TEXT)[:MAX_TEXT], LimitError)


@pytest.mark.long
def test_a_filter_of_a_million_characters():
    count = (MAX_TEXT - 1) // 6
    expression = tree("b AND " * count + "b")
    assert len(expression.items) == count + 1
    assert tree("b" + " " * (MAX_TEXT - 1)) == B
    assert refusal("b" + " " * MAX_TEXT, LimitError).start == MAX_TEXT


def test_the_greatest_number_of_comparisons():
    expression = tree(" OR ".join(["i=1"] * MAX_ATOMS))
    assert len(expression.items) == MAX_ATOMS


@pytest.mark.long
@each(
    "text",
    [
        " OR ".join(["i=1"] * (MAX_ATOMS + 1)),
        " AND ".join(["i IS NULL"] * (MAX_ATOMS + 1)),
        "i IN (" + "1," * MAX_ATOMS + "1)",
        "i IN {" + "1," * MAX_ATOMS + "1}",
        "i = 1 OR i IN (" + "1," * (MAX_ATOMS - 1) + "1)",
        " OR ".join(["contains(s,t)"] * (MAX_ATOMS + 1)),
    ],
)
def test_more_comparisons_and_members_are_refused(text):
    error = refusal(text, LimitError)
    assert error.problem == "the filter has more than 20,000 comparisons and list members"
    assert error.hint == "split it into several subscriptions"


def test_the_longest_list():
    assert len(tree("i IN (" + "1," * (MAX_ATOMS - 1) + "1)").items) == MAX_ATOMS


# --- the stack


def with_frames_left(count, action):
    """Call `action` where Python's stack has room for about `count` more frames."""
    used, frame = 0, sys._getframe()
    while frame is not None:
        used, frame = used + 1, frame.f_back

    def descend(levels):
        return action() if levels == 0 else descend(levels - 1)

    return descend(sys.getrecursionlimit() - used - count)


@each("frames", [25, 50, 100, 150])
@each(
    "text",
    ["(" * 100 + "b" + ")" * 100, "NOT " * 99 + "b", "abs(" * 98 + "i" + ")" * 98 + " = 1"],
)
def test_a_deep_filter_near_the_end_of_the_stack_is_read(frames, text):
    assert with_frames_left(frames, lambda: parse(text, SCHEMA)) == parse(text, SCHEMA)


def test_a_deep_filter_is_refused_if_no_stack_is_long_enough():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        with pytest.raises(LimitError, match="nested too deeply for Python's stack") as caught:
            parse("(" * 100 + "b" + ")" * 100, SCHEMA)
    finally:
        sys.setrecursionlimit(limit)
    assert "sys.setrecursionlimit" in caught.value.hint


def test_a_flat_filter_near_the_end_of_the_stack_is_read():
    text = "i = 1 AND s LIKE 'a%' OR NOT b"
    assert with_frames_left(60, lambda: parse(text, SCHEMA)) == parse(text, SCHEMA)


@each("frames", range(20, 80, 6))
def test_no_other_error_comes_from_the_end_of_the_stack(frames):
    def attempt():
        try:
            return parse("i = 1 AND (s LIKE 'a%' OR NOT (b IN (c, abs(i) > 2)))", SCHEMA)
        except LimitError as error:
            return error

    assert isinstance(with_frames_left(frames, attempt), Expression | LimitError)
