"""Which text decides a test of a string or is needed by it; `test_text_facts` finds them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cases import each
from stocks import SMALL
from tamis import parse
from tamis.language.normal_form import normalize
from tamis.predicates import text_index
from tamis.predicates.text_index import TextIndex, TextTest, text_test


@each(
    "text, expected",
    [
        ("s LIKE 'abc%'", ("startswith", "abc", False, False, True)),
        ("s NOT LIKE '%abc'", ("endswith", "abc", False, True, True)),
        ("contains(s, '')", ("contains", "", False, False, True)),
        ("s SUBSTRING OF 'abc'", ("contains", "abc", True, False, True)),
        ("NOT startswith('abc', s)", ("startswith", "abc", True, True, True)),
        ("endswith('', s)", ("endswith", "", True, False, True)),
        ("s LIKE 'ab%cde'", ("endswith", "cde", False, False, False)),
        ("s NOT LIKE 'ab_c'", ("startswith", "ab", False, True, False)),
        ("NOT s RLIKE 'a.*bc'", ("contains", "bc", False, True, False)),
        ("s LIKE '_'", None),
        ("s RLIKE 'a|b'", None),
    ],
)
def test_what_a_test_asks_of_a_string(text, expected):
    found = text_test(normalize(parse(text, SMALL).tree))
    assert found == (None if expected is None else TextTest(*expected))


def part_of(text):
    return TextTest("contains", text, of_constant=True, negated=False, decided=True)


def test_the_shortest_constants_are_found_by_their_parts(monkeypatch):
    monkeypatch.setattr(text_index, "MOST_CONSTANTS", 10)
    index = TextIndex({1: part_of("x" * 5), 2: part_of("abc"), 3: part_of("xyxy"), 4: part_of("")})
    assert index.left_out == [1]
    assert [index.of_text(value).passed.tolist() for value in ("x", "b", "")] == [
        [3],
        [2],
        [4, 2, 3],
    ]


def test_an_index_with_nothing_in_it(monkeypatch):
    monkeypatch.setattr(text_index, "LONGEST_CONSTANT", 2)
    index = TextIndex({1: part_of("xxx")})
    assert (index.left_out, index.decides_all) == ([1], True)
    assert [part.tolist() for part in index.of_text("x")] == [[], [], []]
    for size in (0, 3):
        found = index.of_texts(np.zeros(size + 1, np.int64), np.empty(0, np.uint8))
        ends = (found.passed_at, found.failed_at, found.open_at)
        assert [at.tolist() for at in ends] == [[0] * (size + 1)] * 3


def test_threads_do_not_disturb_each_other():
    tests = {n: TextTest("contains", f"w{n}", False, n % 2 > 0, True) for n in range(300)}
    index, values = TextIndex(tests), [f"w{n}w{n // 2}" for n in range(300)] * 5
    expected = [index.of_text(value).passed.tolist() for value in values]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda value: index.of_text(value)[0].tolist(), values))
    assert found == expected
