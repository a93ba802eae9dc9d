import pickle

import pytest

import tamis
from cases import each
from tamis.errors import (
    BrokerError,
    BrokerUnreachable,
    BulkError,
    Busy,
    Conflict,
    EventError,
    ExpressionError,
    FileError,
    Forbidden,
    LimitError,
    LimitReached,
    MissingDependency,
    OptionError,
    ParseError,
    SchemaError,
    SubscriptionError,
    TamisError,
    TopicExists,
    TypeMismatch,
    Unauthenticated,
    UnknownPeer,
    UnknownTopic,
    choose,
    did_you_mean,
)

ALL = [
    BulkError, EventError, ExpressionError, FileError, LimitError, MissingDependency, OptionError,
    ParseError, SchemaError, SubscriptionError, TypeMismatch,
    BrokerError, BrokerUnreachable, Busy, Conflict, Forbidden, LimitReached, TopicExists,
    Unauthenticated, UnknownPeer, UnknownTopic,
]  # fmt: skip


@each("kind", ALL)
def test_one_base_catches_every_error(kind):
    assert issubclass(kind, TamisError)


@each("kind", [*ALL, TamisError])
def test_every_error_stands_at_the_top_of_the_package(kind):
    assert getattr(tamis, kind.__name__) is kind
    assert kind.__name__ in tamis.__all__


@each("kind", [ParseError, TypeMismatch, LimitError])
def test_errors_about_a_filter_share_a_base(kind):
    assert issubclass(kind, ExpressionError)


# --- the place in a filter


def test_an_expression_error_draws_the_place():
    error = ParseError("odd", "price << 10", 7, 8, "write <")
    assert str(error) == "odd; write < (line 1, column 8)\n  price << 10\n         ^"


def test_an_expression_error_without_a_hint():
    assert str(ParseError("odd", "a", 0)).startswith("odd (line 1, column 1)\n")


def test_the_line_at_fault_is_the_one_that_is_drawn():
    error = ParseError("odd", "a = 1 AND\n  b = = 2\nOR c", 16, 17)
    assert (error.line, error.column) == (2, 7)
    assert error._drawing() == "    b = = 2\n        ^"


@each(("start", "end"), [(0, None), (3, 99), (99, None), (2, 1)])
def test_a_place_beyond_the_text_is_brought_inside(start, end):
    error = ParseError("odd", "abc", start, end)
    assert 0 <= error.start <= error.end <= 3
    assert str(error).rstrip().endswith("^")


@each("start", [0, 500, 995])
def test_a_long_line_is_cut_around_the_place(start):
    text = "x" * start + "!" + "x" * (995 - start)
    shown, carets = ParseError("odd", text, start, start + 1)._drawing().splitlines()
    assert len(shown) < 85
    assert shown[carets.index("^")] == "!"


def test_characters_that_would_break_the_drawing_are_shown_as_spaces():
    error = ParseError("odd", "a\t\x1b[31m = 1", 0, 1)
    assert error._drawing().splitlines()[0] == "  a  [31m = 1"


# --- events and bulk


def test_an_event_error_names_its_row_if_it_has_one():
    assert str(EventError("odd")) == "odd"
    assert str(EventError("odd").at(7)) == "event 7: odd"
    assert EventError("odd").at(0).row == 0


def test_a_bulk_error_lists_the_first_failures_and_counts_the_rest():
    failures = [(row, f"s{row}", SubscriptionError("odd")) for row in range(12)]
    error = BulkError(failures, 100)
    lines = str(error).splitlines()
    assert lines[0] == "12 of 100 subscriptions cannot be used; none was subscribed"
    assert lines[1] == "  row 0, id 's0': odd"
    assert lines[10] == "  row 9, id 's9': odd"
    assert lines[11:] == ["  ... and 2 more, in .failures of this error"]
    assert error.failures == failures


def test_a_bulk_error_indents_what_has_several_lines():
    text = str(BulkError([(0, "a", ParseError("odd", "x y", 2))], 1))
    assert text.splitlines()[2:] == ["      x y", "        ^"]


@each(
    "error",
    [
        OptionError("odd"),
        SchemaError("odd"),
        FileError("odd"),
        ParseError("odd", "a = = 1", 4, 5, "write ="),
        TypeMismatch("odd", "a = 1", 0),
        LimitError("odd", "a", 0, 0),
        EventError("odd", 3),
        EventError("odd"),
        BulkError([(1, "a", ParseError("odd", "x y", 2))], 5),
    ],
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


# --- suggestions


@each(
    ("name", "known", "hint"),
    [
        ("prize", ["company", "price"], "did you mean 'price'?"),
        ("PRICE", ["company", "price"], "did you mean 'price'?"),
        ("price", ["Price"], "did you mean 'Price'?"),
        ("zzz", ["company", "price"], "available: 'company', 'price'"),
        ("zzz", [], None),
        ("", ["a"], "available: 'a'"),
    ],
)
def test_a_misspelt_name_brings_the_nearest_or_the_list(name, known, hint):
    assert did_you_mean(name, known) == hint


def test_a_long_list_of_names_is_cut():
    hint = did_you_mean("zzz", [f"a{n}" for n in range(11)])
    assert hint is not None
    assert hint.endswith("'a9', ...")


def test_choose_gives_back_a_choice():
    assert choose("colour", "red", ["red", "blue"]) == "red"


@each(
    ("value", "message"),
    [
        ("rde", "unknown colour 'rde'; did you mean 'red'? choices: red, blue"),
        ("zzz", "unknown colour 'zzz'; choices: red, blue"),
        (None, "unknown colour None; choices: red, blue"),
        ([], r"unknown colour \[\]; choices: red, blue"),
    ],
)
def test_choose_refuses_anything_else_and_lists_the_choices(value, message):
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        choose("colour", value, ["red", "blue"])
