import pytest
from hypothesis import given

from cases import each
from strategies import filters
from tamis.errors import LimitError, ParseError
from tamis.language.limits import MAX_TEXT
from tamis.language.tokens import Token, TokenKind, check_text, tokenize
from tamis.names import RESERVED


def pieces(text):
    return [(token.kind, token.text) for token in tokenize(text)[:-1]]


def refusal(text):
    with pytest.raises(ParseError) as caught:
        tokenize(text)
    return caught.value


@each("text", ["", " ", "\n\t\r ", "\u00a0", "\u3000"])
def test_blank_text_is_only_the_end(text):
    assert tokenize(text) == [Token(TokenKind.END, "", len(text), len(text))]


@each("word", sorted(RESERVED))
@each("spelling", [str.upper, str.lower, str.title])
def test_keywords_are_upper_cased(word, spelling):
    assert pieces(spelling(word)) == [(TokenKind.KEYWORD, word)]


@each(
    "name",
    [
        "price", "Price", "_", "_a1", "a_b", "andy", "orange", "nothing", "inn", "isnull", "r", "R",
        "e1", "É", "größe", "日本", "escape", "timestamp", "date", "substring", "unknown",
    ],
)  # fmt: skip
def test_names_keep_their_spelling(name):
    assert pieces(name) == [(TokenKind.NAME, name)]


@each("text", ["`a`", "``", "`a b`", "`a``b`", "`AND`", "`1`", "`a\nb`", "`'`"])
def test_a_name_in_backticks_is_one_token(text):
    assert pieces(text) == [(TokenKind.QUOTED, text)]


@each(
    "text",
    [
        "''", '""', "'a'", '"a"', "'a''b'", '"a""b"', r"'a\'b'", r'"a\"b"', r"'\\'", "'a\nb'",
        "'\"'", '"\'"', "'`'", "'--'", "'/* */'", "r'a'", "R'a'", 'r"a"', r"r'\'", r"R'\d+'",
        "'''a'''", "'😀'",
    ],
)  # fmt: skip
def test_a_string_is_one_token(text):
    assert pieces(text) == [(TokenKind.STRING, text)]


@each(
    "text",
    [
        "0", "10", "007", "10L", "10l", "1.5", "1.", ".5", "1e5", "1E5", "1e+5", "1e-5", "1.5e5",
        "1.e5", ".5e5", "5D", "5d", "5BD", "5bd", "1.5Bd", "1e5D", "1e5BD",
    ],
)  # fmt: skip
def test_a_number_is_one_token(text):
    assert pieces(text) == [(TokenKind.NUMBER, text)]


@each(
    "text",
    ["<=>", "<=", ">=", "<>", "!=", "==", "=", "<", ">", *"-+*/%!(),.[]{}"],
)
def test_the_longest_operator_wins(text):
    assert pieces(f"a{text}b") == [
        (TokenKind.NAME, "a"),
        (TokenKind.OPERATOR, text),
        (TokenKind.NAME, "b"),
    ]


@each(
    ("text", "words"),
    [
        ("a<-1", ["a", "<", "-", "1"]),
        ("a<=>-b", ["a", "<=>", "-", "b"]),
        ("a=!b", ["a", "=", "!", "b"]),
        ("r.k", ["r", ".", "k"]),
        ("r .k", ["r", ".", "k"]),
        ("1.5.5", ["1.5", ".5"]),
        ("a.5", ["a", ".5"]),
        ("1..2", ["1.", ".2"]),
        ("- -1", ["-", "-", "1"]),
        ("'a' 'b'", ["'a'", "'b'"]),
        ("r'a'r'b'", ["r'a'", "r'b'"]),
        ("ar'b'", ["ar", "'b'"]),
        ("NOTb", ["NOTb"]),
        ("NOT(b)", ["NOT", "(", "b", ")"]),
        ("a\u00a0=\u30001", ["a", "=", "1"]),
    ],
)
def test_where_tokens_end(text, words):
    assert [token.text for token in tokenize(text)[:-1]] == words


@given(filters())
def test_tokens_cover_everything_but_blanks(text):
    covered = set()
    for token in tokenize(text):
        if token.kind is not TokenKind.END:
            assert text[token.start : token.end].upper() == token.text.upper()
            covered.update(range(token.start, token.end))
    assert all(text[place].isspace() for place in range(len(text)) if place not in covered)


@each(
    ("text", "problem", "hint", "start", "end"),
    [
        ("a = 'b", "a string is not closed", "expected another '", 4, 6),
        ('a = "b', "a string is not closed", 'expected another "', 4, 6),
        ("a = 'b''", "a string is not closed", "expected another '", 7, 8),
        (r"a = 'b\'", "a string is not closed", "expected another '", 4, 8),
        (r"a = r'b\'c'", "a string is not closed", "expected another '", 10, 11),
        ("a = `b", "a name in backticks is not closed", None, 4, 6),
        ("a -- b", "-- starts a comment in SQL", "write - -x for --x", 2, 4),
        ("a /* b */", "/* starts a comment in SQL", "comments are not part of a filter", 2, 4),
        ("a = 1b", "a number runs into a word", "put a space between them", 4, 6),
        ("a = 1_000", "a number runs into a word", "put a space between them", 4, 6),
        ("a = 1e", "a number runs into a word", "put a space between them", 4, 6),
        ("a = 5LL", "a number runs into a word", "put a space between them", 4, 7),
        ("a = 0x1F", "a number runs into a word", "put a space between them", 4, 6),
        ("a && b", "unexpected character '&'", "write AND", 2, 3),
        ("a | b", "unexpected character '|'", "write OR", 2, 3),
        ("a ~ 'b'", "unexpected character '~'", "write RLIKE for a regular expression", 2, 3),
        ("a = 1;", "unexpected character ';'", "without a semicolon", 5, 6),
        ("a = ‘b’", "unexpected character '‘'", "write a straight quote '", 4, 5),
        ("a = “b”", "unexpected character '“'", "write a straight quote '", 4, 5),
        ("a ≤ 1", "unexpected character '≤'", "write <=", 2, 3),
        ("a ≥ 1", "unexpected character '≥'", "write >=", 2, 3),
        ("a ≠ 1", "unexpected character '≠'", "write <>", 2, 3),
        ("a = $1", "unexpected character '$'", None, 4, 5),
        ("a = ?", "unexpected character '?'", None, 4, 5),
        ("a = #", "unexpected character '#'", None, 4, 5),
        ("a = \x00", "unexpected character '\\x00'", None, 4, 5),
        ("😀 = 1", "unexpected character '😀'", None, 0, 1),
    ],
)
def test_refusals_say_where_and_what_to_write(text, problem, hint, start, end):
    error = refusal(text)
    assert error.problem == problem
    assert (error.start, error.end) == (start, end)
    assert error.hint is None if hint is None else hint in error.hint


@each("value", [None, 5, 1.5, b"a = 1", ["a = 1"], object()])
def test_a_filter_is_a_string(value):
    with pytest.raises(ParseError, match=f"not {type(value).__name__}"):
        check_text(value)


@each("text", ["\ud800", "s = '\udc00'", "a\udfff"])
def test_half_a_surrogate_pair_is_not_text(text):
    error = refusal(text)
    assert error.problem == "the filter is not valid Unicode text"
    assert text[error.start : error.end].isprintable() is False


def test_text_of_the_greatest_length_is_read():
    assert len(tokenize("a" + " " * (MAX_TEXT - 1))) == 2


def test_longer_text_is_refused_before_anything_else_is():
    with pytest.raises(LimitError, match="1,000,001 characters, the limit is 1,000,000") as caught:
        tokenize("'" * (MAX_TEXT + 1))
    assert (caught.value.start, caught.value.end) == (MAX_TEXT, MAX_TEXT + 1)
    assert caught.value.hint == "split it into several subscriptions"


@pytest.mark.parametrize("name", ["a" * MAX_TEXT, "`" + "a" * (MAX_TEXT - 2) + "`"], ids=len)
def test_a_name_of_a_million_characters_is_one_token(name):
    assert len(tokenize(name)) == 2


@pytest.mark.long
@each("character", ["'a", "''", "`", "r'", "\\", "-", "1", '"'])
def test_a_million_alike_characters_are_read_or_refused(character):
    text = (character * MAX_TEXT)[: MAX_TEXT - 1]
    try:
        read = "".join(token.text for token in tokenize(text))
    except ParseError as error:
        read = error.text
    assert read == text
