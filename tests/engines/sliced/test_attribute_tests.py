"""Patterns are searched in all new strings of a batch at once."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Matcher
from tamis.engines.sliced import value_classes

SCHEMA = {"s": "string", "t": "string"}
PARTS = ["", "a", "b", "ab", "\u00e9", "\U0001f600", "%", "_", "\n", "\x00", "'"]
texts = st.lists(st.sampled_from(PARTS), max_size=4).map("".join)


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def filters(text):
    s = quoted(text)
    return [
        f"contains(s, {s})", f"startswith(s, {s})", f"endswith(s, {s})", f"NOT contains(s, {s})",
        f"NOT startswith(s, {s}) AND endswith(t, {s})", f"lower(s) = {s} OR contains(t, {s})",
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("fewest", [1, 8, 1000])
@given(st.lists(texts, min_size=1, max_size=4), st.lists(st.none() | texts, max_size=20))
def test_searched_together_or_one_by_one(fewest, patterns, values):
    held = [text for pattern in patterns for text in filters(pattern)]
    events = pa.table(
        {"s": pa.array(values, pa.string()), "t": pa.array(values[::-1], pa.string())}
    )
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_classes, "FEWEST_LEARNED", fewest)
        for engine in ("sliced", "naive"):
            matcher = Matcher(SCHEMA, engine)
            matcher.subscribe_many(enumerate(held))
            once = matcher.match_batch(events, "lists").to_pydict()
            assert matcher.match_batch(events, "lists").to_pydict() == once
            answers.append(once)
    assert answers[0] == answers[1]


@pytest.mark.long
@given(st.lists(texts, min_size=1, max_size=4), st.lists(st.none() | texts, max_size=20))
def test_tests_are_sought_by_the_texts_that_they_need(patterns, values):
    held = [
        *(text for pattern in patterns for text in filters(pattern)),
        *(f"s {test} {quoted(pattern)}" for pattern in patterns
          for test in ("LIKE", "NOT LIKE", "ILIKE")),
        *(f"s {test} {quoted('a' + pattern.replace('%', '.*').replace(chr(0), 'b?'))}"
          for pattern in patterns for test in ("RLIKE", "NOT RLIKE")),
        *(f"s SUBSTRING OF {quoted(pattern)}" for pattern in patterns),
    ]  # fmt: skip
    events = pa.table({name: pa.array(values, pa.string()) for name in SCHEMA})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_classes, "FEWEST_SOUGHT", 1)
        patch.setattr(value_classes, "MOST_SEARCHED", 0)
        answers = []
        for engine in ("sliced", "naive"):
            matcher = Matcher(SCHEMA, engine)
            matcher.subscribe_many(enumerate(held))
            lists = matcher.match_batch(events, "lists")["subscriptions"].to_pylist()
            again = Matcher(SCHEMA, engine)
            again.subscribe_many(enumerate(held))
            assert [again.match(event) for event in events.to_pylist()] == lists
            answers.append(lists)
    assert answers[0] == answers[1]


def test_few_tests_are_run_where_few_may_be_true(monkeypatch):
    matcher = Matcher(SCHEMA, "sliced")
    matcher.subscribe_many({n: f"s LIKE 'w{n}x%_'" for n in range(500)})
    asked = []
    real = value_classes._passed
    monkeypatch.setattr(
        value_classes, "_passed", lambda tests, row: asked.append(len(tests)) or real(tests, row)
    )
    assert matcher.match({"s": "w17xy"}) == [17]
    assert matcher.match({"s": "w17x"}) == matcher.match({"s": "w"}) == []
    assert asked == [1, 1, 0]


def test_no_function_is_called_for_a_pattern(monkeypatch):
    matcher = Matcher(SCHEMA, "sliced")
    matcher.subscribe_many({n: f"s LIKE '%w{n}x%'" for n in range(50)} | {50: "s RLIKE '^w3x$'"})
    asked = []
    real = value_classes._passed
    monkeypatch.setattr(
        value_classes, "_passed", lambda tests, row: asked.append(len(tests)) or real(tests, row)
    )
    events = pa.table({"s": [f"w{n}x" for n in range(50)]})
    assert matcher.match_batch(events, "counts")["count"].to_pylist() == [1] * 3 + [2] + [1] * 46
    assert asked.count(1) == 50  # the one that is not a pattern, of each string
    assert set(asked) == {1, 51}  # all of them of what is missing


@pytest.mark.parametrize("most", [1, 1_500, 4_000])
def test_few_strings_are_remembered(monkeypatch, most):
    monkeypatch.setattr(value_classes, "MOST_REMEMBERED", most)
    monkeypatch.setattr(value_classes, "FEWEST_LEARNED", 2)
    matcher = Matcher(SCHEMA, "sliced")
    matcher.subscribe_many({n: f"contains(s, '{n}')" for n in range(10)})
    for start in (0, 3, 30, 0):
        values = [str(n) for n in range(start, start + 10)]
        found = matcher.match_batch(pa.table({"s": values}), "lists")["subscriptions"].to_pylist()
        assert found == [sorted({int(digit) for digit in value}) for value in values]
