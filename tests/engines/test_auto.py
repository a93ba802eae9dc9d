"""The engine that chooses: a few filters are asked, many compiled, and nobody can tell."""

import subprocess
import sys
from itertools import pairwise

import pyarrow as pa
import pytest

from cases import each
from oracles import Both
from stocks import SMALL, stock_filters, stock_rows
from tamis import LimitError, Matcher, OptionError, parse
from tamis.engines import auto, few_filters, make_engine
from tamis.engines.sliced import blocks
from tamis.language import negations
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import NAMES, Semantics

EVER = 10**9
# From the first filter on something else happens.
LIMITS = {
    "compiled at once": {"MOST_UNCOMPILED": 0, "MOST_LIVE": 0},
    "one is asked": {"MOST_UNCOMPILED": 0, "MOST_LIVE": 1},
    "the last few are asked": {"MOST_UNCOMPILED": 5, "MOST_LIVE": 7, "MOST_LIVE_EVALUATIONS": EVER},
    "all are asked": {"MOST_UNCOMPILED": EVER, "MOST_EVALUATIONS": EVER},
    "compiled by the first event": {"MOST_EVALUATIONS": 0, "MOST_LIVE": 3},
    "compiled by some event": {
        "MOST_EVALUATIONS": 200,
        "MOST_LIVE": 3,
        "MOST_LIVE_EVALUATIONS": 10,
    },
    "compiled by every batch": {
        "MOST_UNCOMPILED": 0,
        "MOST_LIVE": EVER,
        "MOST_LIVE_EVALUATIONS": 0,
    },
}
DEFAULTS = {"i": 3, "x": None, "s": "T7", "b": True, "side": None}


def limit(monkeypatch, **limits):
    for name, value in limits.items():
        monkeypatch.setattr(auto, name, value)


@pytest.fixture(params=LIMITS.values(), ids=LIMITS)
def limits(request, monkeypatch):
    limit(monkeypatch, **request.param)
    return request.param


def both_of(name):
    return Both("auto", SMALL, name, DEFAULTS if name == "default" else None)


# --- the choice


def test_few_filters_are_asked_and_many_compiled(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=4)
    both = Both("auto").put(stock_filters(1, 4))
    assert both.tested.name == "naive"
    both.put(stock_filters(2, 1), 4)
    assert both.tested.name == "sliced"
    both.check_all(stock_rows(1, 20))


def test_compiled_once_asking_has_cost_as_much(monkeypatch):
    limit(monkeypatch, MOST_EVALUATIONS=50)
    tested = Both("auto").put(stock_filters(1, 5)).tested
    row = stock_rows(1, 1)[0]
    for _ in range(10):
        tested.match(row)
    assert tested.name == "naive"
    tested.match(row)
    assert tested.name == "sliced"


@pytest.mark.parametrize("ask", ["match_batch", "count_batch"])
def test_events_of_batches_count_too(monkeypatch, ask):
    limit(monkeypatch, MOST_EVALUATIONS=50)
    tested = Both("auto").put(stock_filters(1, 5)).tested
    for size, name in ((10, "naive"), (0, "naive"), (1, "sliced")):
        getattr(tested, ask)(batch_of_rows(stock_rows(1, size), SMALL))
        assert tested.name == name


@each("is_loaded, name", [(False, "naive"), (True, "sliced")])
def test_kernels_that_are_loaded_are_used_sooner(is_loaded, name):
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, MOST_EVALUATIONS_LOADED=20)
        patch.setattr(auto, "kernels_are_loaded", lambda: is_loaded)
        tested = Both("auto").put(stock_filters(1, 5)).tested
        tested.count_batch(batch_of_rows(stock_rows(1, 5), SMALL))
        assert tested.name == name


LOADING = """
from tamis import Matcher
from tamis.engines import auto
for engine in ("auto", "sliced"):
    Matcher({"i": "int"}, engine=engine).subscribe(1, "i < 5")
    print(auto.kernels_are_loaded())
"""


def test_kernels_are_loaded_once_either_engine_has_compiled_filters():
    command = [sys.executable, "-c", LOADING]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "True"]


def test_new_filters_are_compiled_once_asking_them_has_cost_as_much(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=4, MOST_LIVE=5, MOST_LIVE_EVALUATIONS=20)
    monkeypatch.setattr(few_filters, "FEW_FILTERS", 0)
    both = Both("auto").put(stock_filters(1, 9))
    row = stock_rows(1, 1)[0]
    for number in range(1, 8):
        both.tested.match(row)
        assert live(both.tested) == (4 if number <= 5 else 0), number
    both.check_all(stock_rows(2, 20))


def test_what_others_compile_is_seen_by_single_events(monkeypatch):
    limit(monkeypatch, MOST_EVALUATIONS=0, MOST_EVALUATIONS_LOADED=0)
    both = Both("auto").put(["i > 1"]).check_all(stock_rows(1, 20))
    both.tested.compile()
    both.put_many({n: f"i = {n}" for n in range(1, 90)}).check_all(stock_rows(1, 20))


def test_an_engine_that_holds_nothing_compiles_nothing(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=0, MOST_EVALUATIONS=0)
    tested = Both("auto").check_all(stock_rows(1, 600)).tested
    assert tested.name == "naive"
    assert tested.compiled is None


def live(tested):
    return tested.statistics()["subscriptions"] - tested.compiled.statistics()["subscriptions"]


def test_only_the_last_filters_are_asked(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=2, MOST_LIVE=5)
    both = Both("auto").put(stock_filters(1, 3))
    assert live(both.tested) == 0
    for number in range(3, 20):
        both.put(stock_filters(number, 1), number).check_all(stock_rows(number, 8))
        assert live(both.tested) == (number - 3) % 5 + 1


@each("events, left", [(10, 10), (11, 0)])
def test_large_batches_compile_all(events, left):
    with pytest.MonkeyPatch.context() as patch:
        limit(patch, MOST_UNCOMPILED=2, MOST_LIVE=50, MOST_LIVE_EVALUATIONS=100)
        both = Both("auto").put(stock_filters(1, 13))
        assert live(both.tested) == 10
        both.tested.count_batch(batch_of_rows(stock_rows(1, events), SMALL))
        assert live(both.tested) == left
        both.check_all(stock_rows(3, 30))


def test_a_new_filter_is_not_compiled_by_the_next_event(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=0)
    both = Both("auto").put(stock_filters(1, 3))
    compiled = both.tested.compile()
    before = both.check_all(stock_rows(1, 3)).tested.compiled.segments
    both.put(["i > 0", "i < 5", "TRUE"], 10).check_all(stock_rows(1, 3)).drop([11])
    both.check_all(stock_rows(1, 3))
    assert both.tested.compiled is compiled
    assert all(a is b for a, b in zip(compiled.segments, before, strict=True))


def test_compiling_by_hand():
    both = Both("auto")
    assert both.tested.name == "naive"
    both.tested.compile()
    assert both.tested.name == "sliced"
    both.check_all(stock_rows(1, 10)).put(stock_filters(1, 10)).check_all(stock_rows(1, 10))
    compiled = both.tested.compile()
    assert live(both.tested) == 0
    assert both.tested.compile() is compiled
    both.check_all(stock_rows(1, 10))


def test_few_subscriptions_do_not_load_the_compiler():
    code = """
import sys
import pyarrow as pa
from tamis import Matcher
m = Matcher({"i": "int", "s": "string"})
m.subscribe_many({f"{n}": f"i > {n} AND s LIKE '%a'" for n in range(100)})
m.subscribe("a", "i > 5")
m.unsubscribe("3")
m.match({"i": 5, "s": "a"})
table = pa.table({"i": range(600)})
for output in ("pairs", "lists", "counts"):
    m.match_batch(table, output)
    list(m.match_batches(table, output))
print("numba" in sys.modules, m.engine)
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False naive\n"


# --- the same answers


@pytest.mark.long
@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("name", NAMES)
def test_answers_while_switching(name):
    both = both_of(name)
    texts = [*stock_filters(7, 24), "TRUE", "FALSE", "i = i", "NOT (s = s)", "b AND NOT b"]
    some = stock_rows(7, 12)
    for first in range(0, len(texts), 4):
        both.put(texts[first : first + 4], first).check_all(some[first % 7 :][:5])
    both.check_all(some)
    for number in range(0, len(texts) - 1, 7):
        both.put([texts[-number], texts[number]], number).check_all(some[:4])
    for number in range(0, len(texts), 6):
        both.drop([number, number + 2]).check_all(some[:2])
    both.check_all(some).drop(range(len(texts)))
    assert set(both.tested.statistics().values()) == {0}
    both.check_all(some[:2]).put(texts).check_all(some)


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 1300])
def test_batches_of_every_size(monkeypatch, size):
    limit(monkeypatch, MOST_UNCOMPILED=0, MOST_LIVE_EVALUATIONS=EVER)
    both = Both("auto").put(stock_filters(3, 40))
    both.tested.compile()
    both.put([*stock_filters(4, 3), "TRUE"], 40)
    assert live(both.tested) == 4
    both.check_all(stock_rows(size, size))
    assert live(both.tested) == 4


def test_live_filters_that_match_nothing_or_everything(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=0, MOST_LIVE_EVALUATIONS=EVER)
    for text in ("FALSE", "TRUE"):
        both = Both("auto").put(["i > 0", "i <= 0", "TRUE", "FALSE"])
        both.tested.compile()
        both.put([text] * 3, 10).check_all(stock_rows(1, 700))
        both.drop([0, 1, 2, 3]).check_all(stock_rows(1, 700))


@pytest.mark.parametrize("first", [0, 30])
def test_handles_stay_in_order(monkeypatch, first):
    """Whether live ones come before or behind those that are compiled, or between them."""
    limit(monkeypatch, MOST_UNCOMPILED=0)
    both = Both("auto")
    for handle in (10, 20, 40):
        both.put(["i IS NOT NULL OR i IS NULL"], handle)
    both.tested.compile()
    both.put(["i > -100 OR TRUE"] * 2, first).check_all(stock_rows(1, 4))


@pytest.mark.parametrize("most", [64 * 7, 64 * 13, 10_000])
def test_pieces_that_are_not_whole_blocks(monkeypatch, most):
    """Where many match, a piece of compiled filters is not a multiple of 512 events."""
    limit(monkeypatch, MOST_UNCOMPILED=0, MOST_LIVE_EVALUATIONS=EVER)
    monkeypatch.setattr(blocks, "MOST_MATCHES", most)
    both = Both("auto").put(["i > -100"] * 30)
    both.tested.compile()
    both.put(["i > 0"], 30)
    for _ in range(3):  # the first pieces tell how large the next ones may be
        both.check_all(stock_rows(5, 1500))


@pytest.mark.usefixtures("limits")
def test_what_came_later_is_not_seen():
    both = Both("auto").put(stock_filters(8, 12))
    some = stock_rows(8, 600)
    batch = batch_of_rows(some, SMALL)
    expected = [handle for row in some for handle in both.oracle.match(row).tolist()]
    pieces = both.tested.match_batch(batch)
    both.put(["TRUE"] * 20).drop(range(15, 20))
    both.put_many(dict.fromkeys(range(100, 110), "TRUE"))
    assert [handle for _, found in pieces for handle in found.tolist()] == expected
    both.check_all(some[:5])


# --- coming and going


def test_removing_from_both_parts(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=0, MOST_LIVE=50)
    both = Both("auto").put(stock_filters(1, 20))
    both.tested.compile()
    both.put(stock_filters(2, 20), 20).check_all(stock_rows(1, 20))
    both.drop([3, 25]).check_all(stock_rows(1, 20))
    both.put(["i > 0", "TRUE"], 24).put(["i > 0", "TRUE", "b"], 2).check_all(stock_rows(1, 20))
    assert live(both.tested) == 23
    for handle in (60, 19, 39):
        both.drop([handle])
        with pytest.raises(KeyError):
            both.tested.remove(handle)
    both.check_all(stock_rows(1, 20))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_not_held_cannot_go(compiled):
    both = Both("auto").put(["i > 0"])
    if compiled:
        both.tested.compile()
    for handle in (1, -1, 2**40):
        with pytest.raises(KeyError):
            both.tested.remove(handle)
    both.check_all(stock_rows(1, 10))


def test_a_filter_that_was_prepared_before_all_were_compiled(monkeypatch):
    both = Both("auto")
    early = [(n, both.expression(text)) for n, text in enumerate(stock_filters(5, 10))]
    ready = [(handle, one, both.tested.prepare(one)) for handle, one in early]
    limit(monkeypatch, MOST_UNCOMPILED=3, MOST_LIVE=2)
    for handle, one, prepared in ready:
        both.tested.add(handle, prepared)
        both.oracle.add(handle, one)
        both.held.add(handle)
    assert both.tested.name == "sliced"
    both.check_all(stock_rows(5, 20))
    both.tested.compile()
    both.check_all(stock_rows(5, 20))


# --- many at once


@pytest.mark.parametrize("before", [0, 3, 12])
@pytest.mark.parametrize("size", [0, 1, 4, 5, 30])
def test_bulks(monkeypatch, before, size):
    limit(monkeypatch, MOST_UNCOMPILED=4, MOST_LIVE=3)
    both = Both("auto").put([*stock_filters(1, before - 1), "TRUE"][-before:] if before else [])
    texts = [*stock_filters(2, size), "TRUE", "FALSE"][-size:] if size else []
    both.put_many(dict(enumerate(texts, 20))).check_all(stock_rows(1, 30))
    assert both.tested.name == ("sliced" if max(before, size, before + size) > 4 else "naive")


@pytest.mark.parametrize("size", [2, 40])
def test_bulks_replace_what_is_asked_and_what_is_compiled(monkeypatch, size):
    limit(monkeypatch, MOST_UNCOMPILED=4, MOST_LIVE=6)
    both = Both("auto").put([*stock_filters(1, 8), "TRUE", "FALSE"])
    both.tested.compile()
    both.put([*stock_filters(2, 4), "TRUE"], 10)
    assert live(both.tested) == 5
    texts = stock_filters(3, size)
    places = [0, 8, 9, 10, 14, *range(20, 20 + size)][-size if size > 9 else 0 :]
    for turn in (places, places[::-1], [0, 14]):
        both.put_many(dict(zip(turn, texts, strict=False))).check_all(stock_rows(turn[0], 30))


@pytest.mark.parametrize("size", [3, 30])
def test_a_bulk_that_is_not_committed_is_never_seen(monkeypatch, size):
    limit(monkeypatch, MOST_UNCOMPILED=4)
    both = Both("auto").put(["i > 0", "i < 0"])
    bulk = both.tested.bulk(20)
    for handle in range(10, 10 + size):
        bulk.put(handle, both.tested.prepare(both.expression("TRUE")))
        both.check_all(stock_rows(1, 3))
    bulk.finish()
    both.check_all(stock_rows(1, 10))
    del bulk
    both.check_all(stock_rows(1, 10)).put_many({10: "b", 1: "TRUE"}).check_all(stock_rows(1, 10))


def test_changes_while_a_bulk_is_prepared(monkeypatch):
    """Filters that come one by one before the bulk is there are replaced by it."""
    limit(monkeypatch, MOST_UNCOMPILED=4, MOST_LIVE=3)
    both = Both("auto").put(["i > 0"] * 3)
    bulk = both.tested.bulk(20)
    texts = dict(enumerate(stock_filters(4, 20), 2))
    for handle, text in texts.items():
        bulk.put(handle, both.tested.prepare(both.expression(text)))
    both.put(["TRUE"] * 4)
    both.check_all(stock_rows(1, 10))
    bulk.finish()
    bulk.commit([2, 3])
    for handle, text in texts.items():
        if handle in {2, 3}:
            both.oracle.remove(handle)
        both.oracle.add(handle, both.expression(text))
    both.held |= texts.keys()
    both.check_all(stock_rows(1, 30))


# --- what is refused


def too_large(first):
    """Its normal form is, while the limit is low; parts that are known need no normal form."""
    text = "b"
    for number in range(6):
        text = f"({text}) = (i > {first + number})"
    return text


@pytest.mark.parametrize("compiled", [False, True])
def test_what_cannot_be_compiled_is_refused_at_once(monkeypatch, compiled):
    monkeypatch.setattr(negations, "MAX_NORMAL_NODES", 60)
    texts = [too_large(1000 + 100 * compiled + 10 * n) for n in range(3)]
    matcher = Matcher(SMALL)
    matcher.subscribe_many({"a": "i > 0", "c": "i < 0"})
    if compiled:
        matcher._held.engine.compile()
    engine = matcher._held.engine
    before = list(matcher), matcher.engine, matcher.match({"i": 1}), engine.statistics()
    for change in (
        lambda: matcher.subscribe("a", texts[0]),
        lambda: matcher.subscribe("b", parse(texts[1], SMALL)),
        lambda: matcher._held.engine.prepare(parse(texts[2], SMALL)),
    ):
        with pytest.raises(LimitError, match="normal form"):
            change()
        after = list(matcher), matcher.engine, matcher.match({"i": 1})
        assert (*after, matcher._held.engine.statistics()) == before


@each(
    "options",
    [{"threads": -1}, {"threads": 1025}, {"threads": True}, {"threads": 1.0}, {"threads": None},
     {"background": 1}, {"background": None}, {"thread": 1}],
)  # fmt: skip
def test_options_that_are_none(options):
    with pytest.raises(OptionError):
        make_engine("auto", Semantics("sql", SMALL), options)


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 3, "background": True}, {}])
def test_options_are_those_of_the_compiled_part(monkeypatch, options):
    limit(monkeypatch, MOST_UNCOMPILED=0)
    both = Both("auto")
    both.tested = make_engine("auto", both.meaning, options)
    both.put(stock_filters(9, 30)).check_all(stock_rows(9, 40))
    alike = make_engine("sliced", both.meaning, options)
    assert both.tested.compiled._options == alike._options


# --- through the matcher


@pytest.mark.usefixtures("limits")
def test_all_outputs_of_both_parts():
    texts = [*stock_filters(6, 20), "TRUE", "x > i"]
    found = {}
    events = stock_rows(6, 40)
    table = pa.Table.from_pylist([dict(zip(SMALL, row, strict=True)) for row in events])
    for engine in ("auto", "naive"):
        matcher = Matcher(SMALL, engine)
        for number, text in enumerate(texts):
            matcher.subscribe(f"s{number}", text)
        matcher.unsubscribe("s3")
        matcher.subscribe("s5", "i > 0")
        matcher.subscribe("s21", "i < 0")
        found[engine] = [
            *(matcher.match_batch(table, output).to_pydict() for output in
              ("pairs", "lists", "counts")),
            *(matcher.match_batch(table.to_pylist(), output).to_pydict() for output in
              ("pairs", "lists", "counts")),
            [matcher.match(event) for event in table.to_pylist()],
        ]  # fmt: skip
    assert found["auto"] == found["naive"]


def test_limits_as_they_are():
    """So that the tests above test what users have."""
    assert auto.MOST_UNCOMPILED == 1000
    assert auto.MOST_LIVE == 64
    both = Both("auto").put(["i > 0", "b"])
    assert both.tested.name == "naive"
    several = [f"i > {n} AND x < {n}" for n in range(1001)]
    for (low, high), name in zip(pairwise([2, 1000, 1001]), ("naive", "sliced"), strict=True):
        both.put(several[low:high], low)
        assert both.tested.name == name
    both.put(stock_filters(1, 70), 2000).check_all(stock_rows(1, 20))
    assert live(both.tested) == 6
