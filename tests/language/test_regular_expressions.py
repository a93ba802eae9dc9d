import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.language.like_patterns import BadPattern
from tamis.language.limits import MAX_PATTERN
from tamis.language.regular_expressions import compile_regex, to_re2


def found(pattern, value):
    return compile_regex(pattern)(value)


@each(
    ("pattern", "value", "answer"),
    [
        ("", "", True),
        ("", "a", True),
        ("b", "abc", True),
        ("^b", "abc", False),
        ("b$", "abc", False),
        ("^abc$", "abc", True),
        ("A", "a", False),
        ("(?i)A", "a", True),
        ("(?i:A)b", "aB", False),
        ("a|b", "xb", True),
        ("^(?:a|b)c", "bc", True),
        ("^(a|b)+$", "abba", True),
        ("^a{2,3}$", "a", False),
        ("^a{2,3}$", "aaa", True),
        ("a+?b", "aab", True),
        ("[a-c]", "b", True),
        ("[^a-c]", "b", False),
        ("[a-]", "-", True),
        (r"^\d+$", "123", True),
        (r"^\d+$", "١٢", False),
        (r"^\w+$", "a_1", True),
        (r"^\w$", "é", False),
        (r"\bab\b", "x ab y", True),
        (r"\bab\b", "xaby", False),
        (r"\.", "a", False),
        (r"\.", ".", True),
        (r"\p{Lu}", "É", True),
        (r"\p{Lu}", "é", False),
        (r"\x41", "A", True),
        (r"\x{1F600}", "😀", True),
        (r"\t\n\r\f", "\t\n\r\f", True),
        (r"\Aa\z", "a", True),
        ("(?<word>a)", "a", True),
        ("^.$", "😀", True),
        ("日", "日本", True),
        ("\n", "a\nb", True),
        ("\x00", "a\x00b", True),
    ],
)
def test_what_both_dialects_agree_on(pattern, value, answer):
    assert found(pattern, value) is answer


LINE_ENDS = ["\n", "\r", "\x85", "\u2028", "\u2029"]


@each("end", LINE_ENDS)
def test_a_dot_is_any_character_but_a_line_end(end):
    assert not found("a.b", f"a{end}b")
    assert found("(?s)a.b", f"a{end}b")
    assert found("(?s:a.b)", f"a{end}b")


@each(
    ("pattern", "answer"),
    [
        ("(?s:.)", True),
        ("(?s:a)|^.$", False),
        ("((?s).)", True),
        ("((?s)a)|^.$", False),
        ("(?s)(a)|^.$", True),
        ("(?s)(?-s:.)", False),
        ("(?s)(?-s).", False),
        ("(?s)(?i-s:.)", False),
        ("(?s:(.))", True),
        ("(?is)^.$", True),
        ("(?i)^.$", False),
        ("[.]", False),
        (r"(?s)\.", False),
    ],
)
def test_the_flag_s_ends_with_its_group(pattern, answer):
    assert found(pattern, "\n") is answer


@each("end", ["", *LINE_ENDS, "\r\n"])
def test_a_dollar_stands_before_one_last_line_end(end):
    assert found("a$", f"a{end}")
    assert found("(?:b|a$)", f"a{end}")
    assert not found("a$", f"a{end}b")


@each("end", ["\n\n", "\r\r", "\n\r", "\r\n\n", "\x0b", "\f", " "])
def test_a_dollar_stands_before_nothing_longer(end):
    assert not found("a$", f"a{end}")


@each(
    ("pattern", "value", "answer"),
    [
        ("$", "", True),
        ("^$", "\n", True),
        ("^$", "a", False),
        ("a$|b", "bc", True),
        ("a$|b", "ac", False),
        ("b|a$", "ac", False),
        ("(a$|b$)", "cb", True),
        ("((a$))", "ba", True),
        ("(x|(y|a$))", "ba", True),
        ("(a$)|bc", "bcd", True),
        ("[$]a", "$a", True),
        (r"\$a", "$a", True),
        (r"\Q$\Ea", "$a", True),
    ],
)
def test_dollars_at_the_end_of_alternatives(pattern, value, answer):
    assert found(pattern, value) is answer


@each("pattern", ["a$b", "$a", "a$*", "a$?", "$$", "(a$)b", "(a$|b)c", "(a$)*"])
def test_other_dollars_are_refused(pattern):
    with pytest.raises(BadPattern, match=r"\$ is supported only at the end"):
        compile_regex(pattern)


@each("space", [*" \t\n\x0b\f\r"])
def test_the_spaces_of_java(space):
    assert found(r"^\s", space + "a")
    assert found(r"^[\s]", space + "a")
    assert found(r"^[x\s]", space + "a")
    assert not found(r"\S", space)
    assert not found(r"[^\s]", space)


@each("character", ["a", "\x85", "\u00a0", "\u2028", "\u3000"])
def test_other_characters_are_not_spaces(character):
    assert not found(r"\s", character)
    assert not found(r"[\s]", character)
    assert found(r"\S", character)
    assert found(r"[^\s]", character)


@each(
    ("pattern", "value", "answer"),
    [
        (r"^\u0061$", "a", True),
        (r"^[\u0061-\u0063]$", "b", True),
        (r"\u00e9", "é", True),
        (r"^\\u0061$", r"\u0061", True),
        (r"^\\u0061$", "a", False),
        (r"\u002a", "*", True),
        (r"^\u002e$", "a", False),
    ],
)
def test_unicode_escapes(pattern, value, answer):
    assert found(pattern, value) is answer


@each(
    ("pattern", "value", "answer"),
    [
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "axb", False),
        (r"\Q[(*", "x[(*", True),
        (r"^\Qab\E+$", "abbb", True),
        (r"\Q\E", "", True),
        (r"\Q\d\E", r"\d", True),
        (r"\Q\d\E", "1", False),
        ("\\Q \n\t-\\E", " \n\t-", True),
        (r"^\Q(?s)\E.$", "(?s)\n", False),
    ],
)
def test_quoted_parts(pattern, value, answer):
    assert found(pattern, value) is answer


@each(
    ("pattern", "value", "answer"),
    [
        (r"[\]]", "]", True),
        (r"[^\]]", "]", False),
        (r"[\[]", "[", True),
        (r"[(?i)]", "?", True),
        (r"[(?m)]", "m", True),
        (r"[.$^]", "^", True),
        (r"[&]", "&", True),
        (r"[a\&&]", "&", True),
        (r"[\\]", "\\", True),
        (r"[^^]", "^", False),
        (r"[a^]", "^", True),
        (r"([)])", ")", True),
        ("[ab](?s).", "a\n", True),
    ],
)
def test_classes(pattern, value, answer):
    assert found(pattern, value) is answer


@each(
    ("pattern", "reason"),
    [
        (r"a\v", r"\v is not supported: list the characters instead"),
        (r"\C", r"\C is not supported: it would match a part of a character"),
        (r"a\Z", r"\Z is not supported: use $"),
        (r"[\S]", r"\S is not supported: write [^\s]"),
        ("(?m)^a", "the flag (?m) is not supported"),
        ("(?im:a)", "the flag (?m) is not supported"),
        ("(?-m)a", "the flag (?m) is not supported"),
        ("(?U)a", "the flag (?U) is not supported: it means something else in RE2"),
        ("(?u)a", "the flag (?u) is not supported"),
        ("[]", "a class [...] is empty"),
        ("[]a]", r"write \] for a bracket"),
        ("[^]a]", "a class [...] is empty"),
        ("[a[b]]", "a [ inside a class is not supported"),
        ("[[:alpha:]]", "a [ inside a class is not supported"),
        ("[a-z&&b]", "&& inside a class is not supported"),
        (r"[\Qa\E]", r"\Q is not supported inside a class"),
    ],
)
def test_what_the_translation_refuses(pattern, reason):
    with pytest.raises(BadPattern) as caught:
        to_re2(pattern)
    assert reason in str(caught.value)


@each(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(?>a)", r"(?<n>a)\k<n>", "a++", "a*+",
        "a?+", "a{2}+", "(", ")", "a)", "(?", "(?s", "[a", "[z-a]", "*", "+a", "a**", "\\", "[\\",
        r"\h", r"\R", r"\X", r"\G", r"\y", "a{1001}", "(?x)a", "(?d)a", r"\p{Nonsense}",
    ],
)  # fmt: skip
def test_what_re2_refuses(pattern):
    with pytest.raises(BadPattern, match=r"(?s)RE2 refuses the pattern: .* linear time"):
        compile_regex(pattern)


def test_the_longest_pattern_runs():
    assert found("a" * MAX_PATTERN, "a" * MAX_PATTERN)


def test_a_pattern_that_needs_too_much_memory_is_refused():
    with pytest.raises(BadPattern, match="RE2 refuses"):
        compile_regex("((a{100}){100}){100}")


@each("pattern", ["[ab]{1000}" * 30, "(?:[ab]{900}c?)" * 30, "(a{1000})" * 30])
def test_a_pattern_that_repeats_too_much_is_refused(pattern):
    with pytest.raises(BadPattern, match="repeats too much: written out it has"):
        compile_regex(pattern)


@each("pattern", [r"^[\p{L} ]{1,50}$", r"^[\p{L}\u4e00-\u9fff]{1,60}$", "^(?:é|日){1,100}$"])
def test_letters_of_unicode_may_be_repeated(pattern):
    assert found(pattern, "éé")
    assert not found(pattern, "")


def test_groups_cost_nothing():
    assert found("(a?)" * 2000, "b" * 2000)
    assert not found("(" * 3300 + "a" + ")" * 3300, "b" * 1000)


@each("pattern", ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "^(.*a){20}$"])
def test_patterns_that_make_others_hang_do_not(pattern):
    assert not found(pattern, "a" * 5000 + "b")


@pytest.mark.parametrize("depth", [100, 4000])
def test_deep_groups_end_before_their_dollar(depth):
    assert found("(" * depth + "a$" + ")" * depth, "ba\n")


@given(
    st.lists(st.sampled_from([*"ab.$^|()[]{}*+?-\\,12", r"\s", r"\Q", "(?s)", "(?", r"\u"])).map(
        "".join
    ),
    st.text(alphabet="ab\n\r.", max_size=6),
)
def test_every_pattern_answers_or_is_refused(pattern, value):
    try:
        search = compile_regex(pattern)
    except BadPattern:
        return
    assert isinstance(search(value), bool)


@given(st.text(), st.text(max_size=3), st.text(max_size=3))
def test_a_quoted_pattern_is_found_where_it_is(value, before, after):
    quoted = r"\E\\E\Q".join(value.split(r"\E"))
    assert found(rf"^(?s:.*)\Q{quoted}\E", before + value + after)
