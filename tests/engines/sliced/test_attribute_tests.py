"""Which tests of an attribute its values pass, for all strings of a batch and for one."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Matcher
from tamis.engines.sliced import attribute_tests, segment_tests
from tamis.engines.sliced.attribute_tests import AttributeTests
from tamis.predicates import text_index

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
        f"contains({s}, s)", f"NOT startswith({s}, t)", f"endswith({s}, s) OR s = 'a'",
        f"NOT endswith({s}, s)",
    ]  # fmt: skip


def answers(engine, held, events):
    """The matches of a batch, found twice, and those of each event alone."""
    matcher = Matcher(SCHEMA, engine)
    matcher.subscribe_many(enumerate(held))
    found = matcher.match_batch(events, "lists")["subscriptions"].to_pylist()
    assert matcher.match_batch(events, "lists")["subscriptions"].to_pylist() == found
    alone = Matcher(SCHEMA, engine)
    alone.subscribe_many(enumerate(held))
    assert [alone.match(event) for event in events.to_pylist()] == found
    return found


@pytest.mark.long
@pytest.mark.parametrize("fewest", [0, 8, 1000])
@given(st.lists(texts, min_size=1, max_size=4), st.lists(st.none() | texts, max_size=20))
def test_looked_up_together_or_one_by_one(fewest, patterns, values):
    held = [text for pattern in patterns for text in filters(pattern)]
    columns = {"s": pa.array(values, pa.string()), "t": pa.array(values[::-1], pa.string())}
    events = pa.table(columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attribute_tests, "FEWEST_TEXTS", fewest)
        patch.setattr(attribute_tests, "FEWEST_SOUGHT", fewest)
        assert answers("sliced", held, events) == answers("naive", held, events)


@pytest.mark.long
@pytest.mark.parametrize("longest", [2, 1000])
@given(st.lists(texts, min_size=1, max_size=4), st.lists(st.none() | texts, max_size=20))
def test_tests_that_texts_do_not_decide(longest, patterns, values):
    held = [
        *(text for pattern in patterns for text in filters(pattern)),
        *(f"s {test} {quoted(pattern)}" for pattern in patterns
          for test in ("LIKE", "NOT LIKE", "ILIKE")),
        *(f"s {test} {quoted('a' + pattern.replace('%', '.*').replace(chr(0), 'b?'))}"
          for pattern in patterns for test in ("RLIKE", "NOT RLIKE")),
    ]  # fmt: skip
    events = pa.table({name: pa.array(values, pa.string()) for name in SCHEMA})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attribute_tests, "FEWEST_TEXTS", 0)
        patch.setattr(attribute_tests, "FEWEST_SOUGHT", 0)
        patch.setattr(text_index, "LONGEST_TEXT", longest)
        patch.setattr(text_index, "LONGEST_CONSTANT", longest)
        assert answers("sliced", held, events) == answers("naive", held, events)


def count_run(monkeypatch):
    """A list to which the number of tests is added that are run together."""
    asked, real = [], AttributeTests._run

    def run(self, tests, value):
        asked.append(len(tests))
        return real(self, tests, value)

    monkeypatch.setattr(AttributeTests, "_run", run)
    return asked


def test_few_tests_are_run_where_few_may_be_true(monkeypatch):
    matcher = Matcher(SCHEMA, "sliced")
    matcher.subscribe_many({n: f"s LIKE 'w{n}x%_'" for n in range(500)})
    asked = count_run(monkeypatch)
    assert matcher.match({"s": "w17xy"}) == [17]
    assert matcher.match({"s": "w17x"}) == matcher.match({"s": "w"}) == []
    assert asked == [1, 1]


def test_no_test_is_run_that_its_text_decides(monkeypatch):
    matcher = Matcher(SCHEMA, "sliced")
    matcher.subscribe_many(
        {n: f"s LIKE '%w{n}x%'" for n in range(50)}
        | {n + 100: f"contains('w{n}x-{'x' * 600 if n == 7 else ''}', s)" for n in range(50)}
        | {200: "s RLIKE '^w3x$'"}
    )  # fmt: skip
    asked = count_run(monkeypatch)
    values = [*(f"w{n}x" for n in range(50)), None]
    found = matcher.match_batch(pa.table({"s": values}), "lists")["subscriptions"].to_pylist()
    expected = [[n, n + 100] for n in range(50)]
    expected[3].append(200)
    assert found == [*expected, []]
    # The long constant with each string, the regular expression where its text is, none of null.
    assert asked == [1] * 3 + [2] + [1] * 46 + [0]


def test_values_of_an_enumeration():
    schema = {"side": "enum('buy', 'sell', 'é')"}
    held = [f"side LIKE '{text}%'" for text in ("b", "s", "é", "")]
    held += [f"NOT contains('buyer {k}', side)" for k in range(20)]
    events = [{"side": "buy"}, {"side": "sell"}, {"side": "é"}, {"side": None}] * 3
    found = []
    for engine in ("sliced", "naive"):
        matcher = Matcher(schema, engine)
        matcher.subscribe_many(enumerate(held))
        found.append(matcher.match_batch(events, "lists")["subscriptions"].to_pylist())
        assert [matcher.match(event) for event in events] == found[-1]
    assert found[0] == found[1]


@pytest.mark.parametrize("most", [1, 1_500, 4_000])
def test_few_strings_are_remembered(monkeypatch, most):
    monkeypatch.setattr(segment_tests, "MOST_REMEMBERED", most)
    monkeypatch.setattr(attribute_tests, "FEWEST_TEXTS", 2)
    matcher = Matcher(SCHEMA, "sliced")
    matcher.subscribe_many({n: f"contains(s, '{n}')" for n in range(10)} | {10: "s LIKE '_1_%_'"})
    for start in (0, 3, 30, 0):
        values = [str(n) for n in range(start, start + 10)]
        found = matcher.match_batch(pa.table({"s": values}), "lists")["subscriptions"].to_pylist()
        assert found == [sorted({int(digit) for digit in value}) for value in values]
