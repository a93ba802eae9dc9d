"""What filters say of events in classical logic, where a missing value makes a test false."""

from answers import NAN, F, T, answer
from cases import each
from tamis.language.evaluation import Logic


@each(
    ("text", "expected"),
    [
        ("i = 1", F),
        ("i <> 1", T),
        ("i < 1", F),
        ("i >= 1", F),
        ("NOT i < 1", T),
        ("NOT i = 1", T),
        ("NOT i <> 1", F),
        ("i <> 1 AND i = 1", F),
        ("i < 1 OR NOT i < 1", T),
        ("i BETWEEN 1 AND 2", F),
        ("i NOT BETWEEN 1 AND 2", T),
        ("i IN (1, 2)", F),
        ("i NOT IN (1, 2)", T),
        ("s LIKE '%'", F),
        ("s NOT LIKE '%'", T),
        ("s RLIKE ''", F),
        ("s NOT RLIKE ''", T),
        ("contains(s, '')", F),
        ("NOT contains(s, '')", T),
        ("i + 1 = 1", F),
        ("NOT i + 1 = 1", T),
        ("i IS NULL", T),
        ("i IS NOT NULL", F),
        ("i <=> NULL", T),
        ("i <=> 1", F),
        ("b", F),
        ("NOT b", T),
        ("b IS TRUE", F),
        ("b IS NOT TRUE", T),
        ("b = TRUE", F),
        ("b = FALSE", F),
        ("b <> TRUE", T),
        ("(i = 1) IS NULL", F),
        ("(i = 1) IS UNKNOWN", F),
        ("(i = 1) IS TRUE", F),
        ("(i = 1) IS FALSE", T),
        ("i = 1 OR b", F),
        ("NOT (i = 1 OR b)", T),
        ("NULL", F),
        ("NOT NULL", T),
        ("1 / 0 = 1", F),
        ("NOT 1 / 0 = 1", T),
    ],
)
def test_a_missing_value_in_classical_logic(text, expected):
    assert answer(text, {}, Logic.CLASSICAL) is expected


@each(
    ("text", "values", "expected"),
    [
        ("i = 1 AND s = 'a'", {"i": 1, "s": "a"}, T),
        ("i = 1 AND s = 'a'", {"i": 1}, F),
        ("i = 1 AND s <> 'a'", {"i": 1}, T),
        ("i IN (1, NULL)", {"i": 2}, F),
        ("i NOT IN (1, NULL)", {"i": 2}, T),
        ("i IN (1, NULL)", {"i": 1}, T),
        ("x > 1", {"x": NAN}, T),
        ("x <> 1", {"x": NAN}, T),
        ("b IS FALSE", {"b": F}, T),
        ("b IS FALSE", {"b": T}, F),
    ],
)
def test_present_values_in_classical_logic(text, values, expected):
    assert answer(text, values, Logic.CLASSICAL) is expected
