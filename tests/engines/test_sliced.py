"""The sliced engine in its own ways: batches of every size, long lives, and bounded memory.

`test_conformance.py` has what all engines share.
"""

import gc
import math
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from strategies import DOUBLES, INTS, MOMENTS, SCHEMA, STRINGS, delicate_rows, filters, rows
from tamis import EventError, ExpressionError, Matcher, Schema, parse
from tamis.columns import plain_type
from tamis.engines import make_engine
from tamis.engines.sliced import blocks, engine, segment
from tamis.predicates.batches import batch_of_rows
from tamis.semantics import NAMES, Semantics

DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip
OUTPUTS = ("pairs", "lists", "counts")
SMALL = Schema(
    {"i": "int", "x": "double", "s": "string", "b": "bool", "side": "enum('sell', 'buy')"}
)

# Every way through the engine, whatever the numbers of subscriptions and matches.
WAYS = {
    "as it is": {},
    "rows one by one": {(blocks, "SEARCH"): 0},
    "rows in one pass": {(blocks, "SEARCH"): 10**9},
    "by matrix": {(blocks, "DENSE"): -1},
    "by lists": {(blocks, "DENSE"): 10**9},
    "all clusters": {(segment, "SELECTIVE"): 0.0},
    "clusters of events": {(segment, "SELECTIVE"): 0.4},
    "many segments": {(engine, "GROWTH"): 0},
    "marks": {(segment, "SPREAD"): 10**6},
    "no marks": {(segment, "SPREAD"): 0},
}


@contextmanager
def taken(way):
    """The engine goes one way."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in WAYS[way].items():
            patch.setattr(module, name, value)
        yield


def semantics_of(name):
    return Semantics(name, SCHEMA, DEFAULTS if name == "default" else None)


def total(row):
    """A row without missing values, for the semantics that allows none."""
    return tuple(d if v is None else v for v, d in zip(row, delicate_rows()[3], strict=True))


def table_of(some, schema=SCHEMA):
    """Rows as a table; a timestamp is a number of microseconds in a row."""
    columns = {}
    for n, attribute in enumerate(schema.attributes):
        column = pa.array([row[n] for row in some], plain_type(attribute))
        if str(attribute.type) == "timestamp":
            column = column.cast(pa.timestamp("us", "UTC"))
        columns[".".join(attribute.path)] = column
    return pa.table(columns)


def many_rows(seed, size):
    """Rows with many ties and gaps, and every delicate value."""
    chance = np.random.default_rng(seed)
    pools = {"int": INTS, "double": DOUBLES, "string": STRINGS, "bool": [True, False],
             "timestamp": MOMENTS}  # fmt: skip
    columns = []
    for attribute in SCHEMA.attributes:
        pool = [*pools[str(attribute.type)], None, None]
        columns.append([pool[k] for k in chance.integers(0, len(pool), size)])
    return list(zip(*columns, strict=True))


def readable(texts, schema=SCHEMA):
    for text in texts:
        try:
            yield parse(text, schema)
        except ExpressionError:
            continue


def answers(matcher, table):
    """All three outputs; what they say of each other is checked on the way."""
    lists = matcher.match_batch(table, "lists").to_pydict()
    assert lists["event"] == list(range(table.num_rows))
    found = lists["subscriptions"]
    pairs = matcher.match_batch(table, "pairs").to_pydict()
    assert pairs["event"] == [n for n, one in enumerate(found) for _ in one]
    assert pairs["subscription"] == [name for one in found for name in one]
    counts = matcher.match_batch(table, "counts").to_pydict()
    assert counts == {"event": lists["event"], "count": [len(one) for one in found]}
    return found


def two_matchers(schema=SCHEMA, name="sql"):
    defaults = DEFAULTS if name == "default" else None
    return (
        Matcher(schema, "sliced", name, defaults=defaults),
        Matcher(schema, "naive", name, defaults=defaults),
    )


# --- batches


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=8), some=st.lists(rows(), max_size=8))
@settings(max_examples=25)
def test_any_filters_and_events(name, texts, some):
    sliced, naive = two_matchers(name=name)
    for number, expression in enumerate(readable(texts)):
        sliced.subscribe(number, expression)
        naive.subscribe(number, expression)
    some = [*some, *delicate_rows()[:6], (None,) * len(SCHEMA)]
    if name == "total":
        some = [total(row) for row in some]
    table = table_of(some)
    expected = answers(naive, table)
    assert answers(sliced, table) == expected
    prepared = [sliced.meaning.prepare(row) for row in some]
    rows_again = sliced.match_rows(prepared, "lists")["subscriptions"].to_pylist()
    assert rows_again == expected


@pytest.mark.parametrize("way", WAYS)
@given(texts=st.lists(filters(), min_size=1, max_size=12), seed=st.integers(0, 999))
@settings(max_examples=6)
def test_every_way(way, texts, seed):
    sliced, naive = two_matchers()
    batch = many_rows(seed, 60) + delicate_rows()[:6]
    with taken(way):
        for number, expression in enumerate(readable(texts)):
            sliced.subscribe(number, expression)
            naive.subscribe(number, expression)
            if number % 3 == 0:
                sliced.match_rows(batch[:1])
        table = table_of(batch)
        expected = answers(naive, table)
        assert answers(sliced, table) == expected
        for row, names in list(zip(batch, expected, strict=True))[::9]:
            assert sliced._engine.match(row).tolist() == names  # handles are numbered like these


TICKERS = [f"T{n}" for n in range(40)]


def stock_filters(seed, size):
    """What is selective, what is not, and what is no conjunction; on SMALL."""
    chance = np.random.default_rng(seed)
    made = []
    for _ in range(size):
        ticker, low, high = TICKERS[chance.integers(40)], *sorted(chance.integers(-9, 9, 2))
        made.append(
            [
                f"s = '{ticker}' AND i BETWEEN {low} AND {high}",
                f"i = {low} AND x < {high}",
                f"i = {low}",
                f"x >= {low} AND x < {high} AND side = 'buy'",
                f"s IN ('{ticker}', 'T1', 'T2') AND x > {low}",
                f"s = '{ticker}' OR i > {high} AND b",
                f"NOT (i < {low} OR x > {high}) AND side <> 'sell'",
                f"s LIKE 'T{abs(low)}%' AND i <> {high}",
                f"x > i AND b IS NULL AND i >= {low}",
                f"(i = {low} OR i = {high}) AND (b OR x IS NULL)",
            ][chance.integers(10)]
        )
    return made


def stock_rows(seed, size):
    chance = np.random.default_rng(seed)
    pools = [
        [*range(-10, 10), None], [*np.arange(-10, 10, 0.5).tolist(), math.nan, None],
        [*TICKERS, None], [True, False, None], ["buy", "sell", None],
    ]  # fmt: skip
    columns = [[pool[k] for k in chance.integers(0, len(pool), size)] for pool in pools]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 511, 512, 513, 1025])
def test_batches_of_any_size(size):
    sliced, naive = two_matchers(SMALL)
    subscriptions = {f"n{n}": text for n, text in enumerate(stock_filters(size, 60))}
    subscriptions |= {"always": "TRUE", "never": "1 > 2", "ever": "NULL IS NULL"}
    sliced.subscribe_many(subscriptions)
    naive.subscribe_many(subscriptions)
    table = table_of(stock_rows(size, size), SMALL)
    expected = answers(naive, table)
    assert answers(sliced, table) == expected
    assert answers(sliced, table.slice(1)) == expected[1:]
    chunked = pa.concat_tables([table.slice(0, size // 3), table.slice(size // 3)])
    assert answers(sliced, chunked) == expected


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=4, max_size=12))
@settings(max_examples=2)
def test_more_events_than_a_block_holds(name, texts):
    sliced, naive = two_matchers(name=name)
    for number, expression in enumerate(readable(texts)):
        sliced.subscribe(number, expression)
        naive.subscribe(number, expression)
    some = many_rows(len(texts), 530)
    table = table_of([total(row) for row in some] if name == "total" else some)
    assert answers(sliced, table) == answers(naive, table)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", ["a name", 17])
def test_a_life_between_batches(way, first):
    """Subscriptions come, are replaced and go; ids keep their age."""
    names = [f"{first} {n}" if isinstance(first, str) else first + 7 * n for n in range(60)]
    sliced, naive = two_matchers(SMALL)
    chance = np.random.default_rng(5)
    texts = [*stock_filters(3, 400), "TRUE", "FALSE", "TRUE"] * 2
    table = table_of(stock_rows(9, 70), SMALL)
    for step in range(12):
        for _ in range(25):
            name = names[chance.integers(len(names))]
            if name in naive and chance.random() < 0.4:
                sliced.unsubscribe(name)
                naive.unsubscribe(name)
            else:
                text = texts[chance.integers(len(texts))]
                sliced.subscribe(name, text)
                naive.subscribe(name, text)
        event = {"i": int(chance.integers(-9, 9)), "s": "T3", "b": True}
        with taken(way):
            assert answers(sliced, table) == answers(naive, table), step
            assert sliced.match(event) == naive.match(event)
    for name in list(naive):
        sliced.unsubscribe(name)
    assert answers(sliced, table) == [[]] * 70
    assert set(sliced._engine.statistics().values()) == {0}


def test_several_segments():
    sliced, naive = two_matchers(SMALL)
    table = table_of(stock_rows(1, 100), SMALL)
    number = 0
    for size in (120, 25, 5, 1):
        for text in stock_filters(size, size):
            sliced.subscribe(number, text)
            naive.subscribe(number, text)
            number += 1
        assert answers(sliced, table) == answers(naive, table)
    assert sliced._engine.statistics()["segments"] == 4
    for gone in range(0, number, 2):
        sliced.unsubscribe(gone)
        naive.unsubscribe(gone)
    assert answers(sliced, table) == answers(naive, table)


def test_a_segment_that_every_event_matches_and_then_none():
    """It writes a matrix once it was dense, also when nothing is left to write."""
    sliced, naive = two_matchers(SMALL)
    for n in range(70):
        for matcher in (sliced, naive):
            matcher.subscribe(n, f"i > {n % 7}")
    full, empty = ([(i, None, None, None, None)] * 130 for i in (100, -1))
    for some in (full, empty, full, full[:1], empty[:3], full * 9):
        table = table_of(some, SMALL)
        assert answers(sliced, table) == answers(naive, table)


# --- filters without predicates


@pytest.mark.parametrize("held", [[], ["i > 0"]])
def test_filters_that_are_always_true_keep_their_order(held):
    sliced, naive = two_matchers(SMALL)
    table = table_of([(1, None, None, None, None), (None,) * 5], SMALL)
    for matcher in (sliced, naive):
        for name, text in [("a", "TRUE"), ("b", "TRUE"), ("c", "FALSE"), ("d", "1 = 1")]:
            matcher.subscribe(name, text)
        for text in held:
            matcher.subscribe("e", text)
        matcher.subscribe("a", "2 = 2")  # its handle is the oldest, its entry the newest
        matcher.subscribe("c", "TRUE")
    assert answers(sliced, table) == answers(naive, table)
    assert sliced.match({"i": 1}) == naive.match({"i": 1})
    for matcher in (sliced, naive):
        matcher.unsubscribe("b")
        matcher.subscribe("b", "TRUE")
        matcher.subscribe("d", "FALSE")
    assert answers(sliced, table) == answers(naive, table)
    assert sliced.match({}) == naive.match({})


def test_a_schema_without_attributes():
    sliced = Matcher({}, "sliced")
    sliced.subscribe_many({"a": "TRUE", "b": "FALSE"})
    assert sliced.match({}) == ["a"]
    assert answers(sliced, pa.table({"z": [1, 2]})) == [["a"], ["a"]]
    assert answers(sliced, pa.table({})) == []


def test_an_empty_matcher():
    sliced = Matcher(SMALL, "sliced")
    table = table_of(stock_rows(0, 600), SMALL)
    assert answers(sliced, table) == [[]] * 600
    assert sliced.match({"i": 1}) == []


# --- values and constants at the edges


@pytest.mark.parametrize(
    "text",
    [
        "side LIKE 'sell'", "side LIKE 'other'", "NOT side LIKE 'other'", "side LIKE ''",
        "side IS NULL OR side LIKE 'other'", "side IN ('buy', 'sell')", "NOT side IN ('buy')",
        "side > 'buy'", "side <= 'buy'", "lower(side) = 'buy'", "side RLIKE 'l{2}'",
        "x IN (1, 1e308 * 10D)", "x < 1e308 * 10D", "x = 1e308 * 10D - 1e308 * 10D",
        "x IN (1, 1e308 * 10D - 1e308 * 10D)", "x NOT IN (1, 1e308 * 10D - 1e308 * 10D)",
        "x IN (0, 5)", "x = -0.0D", "x <> 0", "i = 9223372036854775807",
        "i >= 9223372036854775807", "i < -9223372036854775807", "i IN (1, -9223372036854775808)",
        "s = ''", "s IN ('', 'a')", "s <> 'a'", "b", "NOT b", "b IS NULL", "b <=> NULL",
        "i <=> 1", "x <=> NULL",
    ],
)  # fmt: skip
def test_the_edges_of_values(text):
    sliced, naive = two_matchers(SMALL)
    some = [
        (i, x, s, b, side)
        for i, b in ((None, None), (1, True), (2**63 - 1, False), (-(2**63), None))
        for x, s in ((None, None), (0.0, ""), (-0.0, "a"), (math.nan, "b"), (math.inf, "a\x00"),
                     (-math.inf, "é"), (1.0, "A"))
        for side in (None, "buy", "sell")
    ]  # fmt: skip
    for matcher in (sliced, naive):
        matcher.subscribe("tested", text)
        matcher.subscribe("both", f"({text}) AND i >= 1")
        matcher.subscribe("either", f"({text}) OR x > 0")
    table = table_of(some, SMALL)
    assert answers(sliced, table) == answers(naive, table)
    for row in some[::5]:
        assert sliced._engine.match(row).tolist() == naive._engine.match(row).tolist()


def test_an_equality_that_nobody_uses_any_more():
    """A set is as selective as the constants its attribute is compared with; there may be none."""
    sliced = Matcher(SMALL, "sliced")
    sliced.subscribe("a", "i = 5")
    sliced.unsubscribe("a")
    sliced.subscribe("b", "i IN (1, 2) AND x > 0")
    assert sliced.match({"i": 1, "x": 1}) == ["b"]


# --- errors


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "table",
    [
        pa.table({"side": ["buy", "bye"]}),
        pa.table({"i": ["a"]}),
        pa.table({"i": [1, None]}),
        pa.table({"stranger": pa.array([], pa.int64())}),
        pa.table({"i": [1], "stranger": [2]}),
    ],
)
@pytest.mark.parametrize("unknown", ["ignore", "refuse"])
def test_errors_are_those_of_naive(name, table, unknown):
    defaults = dict.fromkeys(SMALL, None) if name == "default" else None

    def outcome(kind):
        matcher = Matcher(SMALL, kind, name, defaults=defaults, unknown=unknown)
        matcher.subscribe("a", "i IS NULL OR i > 0")
        try:
            return answers(matcher, table)
        except EventError as error:
            return str(error), error.row

    assert outcome("sliced") == outcome("naive")


def test_a_bad_batch_changes_nothing():
    sliced = Matcher(SMALL, "sliced")
    sliced.subscribe("a", "i > 0")
    with pytest.raises(EventError):
        sliced.match_batch(pa.table({"side": ["bye"]}))
    assert sliced.match({"i": 1}) == ["a"]


def test_nothing_is_lost_when_compiling_fails(monkeypatch):
    """Memory may run out: what waited still waits."""
    sliced, naive = two_matchers(SMALL)
    table = table_of(stock_rows(2, 40), SMALL)
    for number, text in enumerate(stock_filters(2, 30)):
        for matcher in (sliced, naive):
            matcher.subscribe(number, text)
        if number == 20:
            answers(sliced, table)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine, "Segment", fail)
        with pytest.raises(MemoryError):
            sliced.match_batch(table)
    assert answers(sliced, table) == answers(naive, table)


# --- a long life

TEXTS = st.sampled_from(stock_filters(11, 80)) | st.sampled_from(["TRUE", "FALSE", "1 = 1"])
EVENTS = st.sampled_from(stock_rows(11, 60))


def life_of(growth):
    class Life(RuleBasedStateMachine):
        @initialize()
        def start(self):
            meaning = Semantics("sql", SMALL)
            self.patch = pytest.MonkeyPatch()
            self.patch.setattr(engine, "GROWTH", growth)
            self.tested, self.oracle = make_engine("sliced", meaning), make_engine("naive", meaning)
            self.held = set()

        def teardown(self):
            if hasattr(self, "patch"):
                self.patch.undo()

        @rule(handle=st.integers(0, 25), text=TEXTS)
        def put(self, handle, text):
            self.drop(handle)
            expression = parse(text, SMALL)
            self.tested.add(handle, self.tested.prepare(expression))
            self.oracle.add(handle, expression)
            self.held.add(handle)

        @rule(handle=st.integers(0, 25))
        def drop(self, handle):
            if handle in self.held:
                self.tested.remove(handle)
                self.oracle.remove(handle)
                self.held.remove(handle)

        @rule(first=st.integers(0, 25), size=st.integers(0, 20))
        def drop_many(self, first, size):
            for handle in range(first, first + size):
                self.drop(handle)

        @rule(row=EVENTS)
        def match(self, row):
            assert self.tested.match(row).tolist() == self.oracle.match(row).tolist()

        @rule(some=st.lists(EVENTS, max_size=5))
        def match_many(self, some):
            expected = [found.tolist() for found in self.oracle.match_many(some)]
            assert [found.tolist() for found in self.tested.match_many(some)] == expected
            counts = self.tested.count_batch(batch_of_rows(some, SMALL))
            assert counts.tolist() == [len(found) for found in expected]
            assert counts.dtype == np.int64

        @invariant()
        def counts_what_it_holds(self):
            if not hasattr(self, "held"):
                return
            statistics = self.tested.statistics()
            assert statistics["subscriptions"] == len(self.held)
            if not self.held:
                assert set(statistics.values()) == {0}
                assert not self.tested.predicates.ids
                assert not self.tested.segments

    return Life


@pytest.mark.parametrize("growth", [0, 1, 2, 4])
def test_a_long_life(growth):
    run_state_machine_as_test(
        life_of(growth), settings=settings(max_examples=15, stateful_step_count=30)
    )


# --- memory


def footprint(thing):
    """The bytes of all that an engine holds, but for the code and the schema it shares."""
    shared = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Schema)
    seen, stack, size = {id(thing)}, [thing], 0
    while stack:
        one = stack.pop()
        size += one.nbytes if isinstance(one, np.ndarray) else sys.getsizeof(one)
        for part in gc.get_referents(one):
            if id(part) not in seen and not isinstance(part, shared):
                seen.add(id(part))
                stack.append(part)
    return size


def places(tested):
    """How many subscriptions the segments have room for."""
    return sum(len(one.handles) for one in tested.segments)


@pytest.fixture
def tested():
    return make_engine("sliced", Semantics("sql", SMALL))


def prepared(tested, texts):
    return [tested.prepare(parse(text, SMALL)) for text in texts]


def test_a_moving_window_stays_small(tested):
    """The oldest go while new ones come, and events in between."""
    ready = prepared(tested, stock_filters(21, 500))
    row, window = stock_rows(3, 1)[0], 100
    sizes = []
    for handle in range(3000):
        tested.add(handle, ready[handle % len(ready)])
        if handle >= window:
            tested.remove(handle - window)
        if handle % 3 == 0:
            tested.match(row)
            assert places(tested) <= 4 * window
            assert len(tested.segments) <= 8
        if handle in {1500, 2999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]
    assert tested.predicates.size < 10 * window


def test_replacing_one_again_and_again(tested):
    ready = prepared(tested, stock_filters(22, 200))
    for handle, one in enumerate(ready):
        tested.add(handle, one)
    row = stock_rows(4, 1)[0]
    sizes = []
    for turn in range(2000):
        tested.remove(turn % 7)
        tested.add(turn % 7, ready[turn % len(ready)])
        if turn % 2:
            tested.match(row)
            assert places(tested) <= 3 * len(ready)
        if turn in {500, 1999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_coming_and_going_without_any_event(tested):
    """Nobody asks: even so nothing piles up."""
    sizes = []
    for turn in range(3000):
        (one,) = prepared(tested, [f"i = {turn} AND x > {turn} AND s = 'T{turn}'"])
        tested.add(0, one)
        tested.remove(0)
        if turn in {300, 2999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_what_is_gone_is_left_out_in_the_end(tested):
    """Also of a segment that has another one behind it."""
    ready = prepared(tested, [f"i > {n} AND x < {n}" for n in range(1100)])
    row = stock_rows(5, 1)[0]
    for handle in range(1000):
        tested.add(handle, ready[handle])
    tested.match(row)
    for handle in range(1000, 1100):
        tested.add(handle, ready[handle])
    tested.match(row)
    assert len(tested.segments) == 2
    for handle in range(999):
        tested.remove(handle)
    tested.match(row)
    assert tested.statistics()["subscriptions"] == 101
    assert places(tested) <= 2 * 101


def test_many_values_are_not_kept_for_ever(tested, monkeypatch):
    """Strings that never come again are forgotten."""
    monkeypatch.setattr("tamis.predicates.classes.MOST_REMEMBERED", 100)
    monkeypatch.setattr("tamis.predicates.index.MOST_VALUES", 100)
    (one,) = prepared(tested, ["s LIKE '%7_' AND i > 0"])
    tested.add(0, one)
    sizes = []
    for turn in range(60):
        some = [(1, None, f"{turn} {n}", None, None) for n in range(50)]
        assert len(list(tested.match_many(some))) == 50
        tested.match(some[0])
        if turn in {20, 59}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_everything_goes(tested):
    """Predicates, segments and sizes; and the engine still works."""
    ready = prepared(tested, [*stock_filters(23, 300), "TRUE", "FALSE"])
    some = stock_rows(6, 40)
    for turn in range(3):
        for handle, one in enumerate(ready):
            tested.add(handle, one)
            if handle % 50 == turn:
                list(tested.match_many(some[:3]))
        first = [found.tolist() for found in tested.match_many(some)]
        assert any(first)
        for handle in range(len(ready)):
            tested.remove(handle)
        assert tested.statistics() == {"subscriptions": 0, "predicates": 0, "segments": 0}
        assert [found.tolist() for found in tested.match_many(some)] == [[]] * 40
        assert tested.match(some[0]).tolist() == []


# --- results


def test_matches_are_not_changed_by_later_ones(tested):
    """Scratch is used again; answers are not scratch."""
    for handle, one in enumerate(prepared(tested, stock_filters(24, 50))):
        tested.add(handle, one)
    some = stock_rows(7, 600)
    pieces = list(tested.match_batch(batch_of_rows(some, SMALL)))
    before = [(counts.tolist(), handles.tolist()) for counts, handles in pieces]
    several = list(tested.match_many(some))
    copies = [found.tolist() for found in several]
    list(tested.match_batch(batch_of_rows(some[::-1], SMALL)))
    tested.match(some[0])
    assert [(counts.tolist(), handles.tolist()) for counts, handles in pieces] == before
    assert [found.tolist() for found in several] == copies
    assert all(found.dtype == np.int64 for found in [*several, tested.match(some[0])])


def test_the_same_batch_twice_and_another_engine_between():
    """Engines share no scratch."""
    meaning = Semantics("sql", SMALL)
    one, other = make_engine("sliced", meaning), make_engine("sliced", meaning)
    for handle, text in enumerate(stock_filters(25, 60)):
        one.add(handle, one.prepare(parse(text, SMALL)))
    other.add(0, other.prepare(parse("i > 0", SMALL)))
    batch = batch_of_rows(stock_rows(8, 520), SMALL)
    first = [[part.tolist() for part in piece] for piece in one.match_batch(batch)]
    pieces = zip(one.match_batch(batch), other.match_batch(batch), strict=True)
    assert [[part.tolist() for part in piece] for piece, _ in pieces] == first


def test_ids_with_gaps_and_their_types():
    for names, kind in ((["a", "b", "c"], str), ([30, 10, 20], int)):
        sliced = Matcher(SMALL, "sliced")
        for name in names:
            sliced.subscribe(name, "i > 0")
        sliced.unsubscribe(names[1])
        found = answers(sliced, pa.table({"i": [1, 0, 2]}))
        assert found == [[names[0], names[2]], [], [names[0], names[2]]]
        assert all(type(name) is kind for one in found for name in one)
        sliced.subscribe(names[1], "i > 1")
        assert answers(sliced, pa.table({"i": [1, 2]})) == [
            [names[0], names[2]], [names[0], names[2], names[1]],
        ]  # fmt: skip


def test_two_threads_may_ask_at_once():
    """The kernels let go of the interpreter's lock, so scratch must not be shared."""
    sliced = Matcher(SMALL, "sliced")
    chance = np.random.default_rng(3)
    for n, (low, high) in enumerate(chance.integers(-50, 50, (2000, 2)).tolist()):
        sliced.subscribe(n, f"i > {low} AND x < {high}")
    tables = [
        pa.table({"i": chance.integers(-50, 50, 2000), "x": chance.normal(0, 30, 2000)})
        for _ in range(2)
    ]
    expected = [sliced.match_batch(table, "counts") for table in tables]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda table: sliced.match_batch(table, "counts"), tables * 8))
    assert found == expected * 8
