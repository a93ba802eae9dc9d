"""The loop over cases fails with every case that fails, and names it."""

import pytest

from cases import each


def failures_of(test, **fixtures):
    with pytest.raises(BaseExceptionGroup) as caught:
        test(**fixtures)
    return caught.value.message, {note for e in caught.value.exceptions for note in e.__notes__}


def test_every_case_runs_and_those_that_fail_are_named():
    seen = []

    @each("number", [1, 2, 3, 4])
    def test(number):
        seen.append(number)
        assert number % 2

    assert failures_of(test) == ("2 of 4 cases failed", {"case: number=2", "case: number=4"})
    assert seen == [1, 2, 3, 4]


def test_cases_of_several_values_and_of_several_tables():
    seen = []

    @each("sign", "+-")
    @each(("left", "right"), [(1, "a"), pytest.param(2, "b", id="named")])
    def test(sign, left, right):
        seen.append((sign, left, right))

    test()
    assert seen == [("+", 1, "a"), ("+", 2, "b"), ("-", 1, "a"), ("-", 2, "b")]


def test_failures_of_pytest_are_failures_of_a_case():
    @each("number", [1])
    def test(number):
        with pytest.raises(ValueError, match="never"):
            int(number)

    assert failures_of(test) == ("1 of 1 cases failed", {"case: number=1"})


@each("letter", "ab")
def test_other_arguments_are_fixtures(tmp_path, letter):
    (tmp_path / letter).write_text(letter, encoding="utf-8")
    assert (tmp_path / "a").exists()


def test_a_table_without_cases_is_a_mistake():
    with pytest.raises(AssertionError, match="no cases"):
        each("number", [])(lambda number: number)
