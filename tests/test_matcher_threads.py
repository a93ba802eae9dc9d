"""Threads: whoever matches sees one moment, whole, whatever others change meanwhile."""

import sys
import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest

from cases import each
from tamis import Matcher, SubscriptionError
from tamis.engines import auto
from tamis.engines.sliced import segment_merges

KINDS = {"i": "int", "s": "string"}
HERE, THERE = {"i": 5, "s": "a"}, {"i": -5, "s": "b"}
TABLE = pa.table({"i": [5, -5], "s": ["a", "b"]})
ENGINES = {
    "auto": ("auto", {}),
    "sliced": ("sliced", {}),
    "sliced, in the background": ("sliced", {"background": True}),
    "auto, in the background": ("auto", {"background": True}),
    "naive": ("naive", {}),
    "counting-list": ("counting-list", {}),
}
COMPILING = [name for name in ENGINES if "auto" in name or "sliced" in name]
PATIENCE = 60  # seconds until a thread that should have ended is given up


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(auto, "MOST_UNCOMPILED", 30)
    monkeypatch.setattr(auto, "MOST_LIVE", 8)


def made(engine):
    kind, options = ENGINES[engine]
    return Matcher(KINDS, kind, options=options)


def ended(work):
    """Whether some work ends in a thread of its own while this one waits; its error is raised."""
    failures = []

    def run():
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller raises it
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    for error in failures:
        raise error
    return not thread.is_alive()


def lists(matcher):
    """The ids of both events, in every way to ask; each answer is of one moment."""
    yield matcher.match_batch(TABLE, "lists")["subscriptions"].to_pylist()
    yield matcher.match_batch([HERE, THERE], "lists")["subscriptions"].to_pylist()
    pairs = matcher.match_batch(TABLE).to_pylist()
    yield [[pair["subscription"] for pair in pairs if pair["event"] == n] for n in (0, 1)]
    (only,) = matcher.match_batches(TABLE, "lists")
    yield only["subscriptions"].to_pylist()


@contextmanager
def readers(*works):
    """Threads that do their work again and again until the block ends; then nothing has failed."""
    done, failures = threading.Event(), []

    def again(work):
        try:
            while not done.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test fails
            failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=again, args=[work]) for work in works]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(PATIENCE)
        sys.setswitchinterval(before)
    assert failures == []


# --- one moment


@each("engine", ENGINES)
def test_what_stays_is_always_there(engine):
    """Others come, go, are replaced and loaded in bulk."""
    matcher = made(engine)
    matcher.subscribe_many({f"stays {n}": f"i > {-n} OR s LIKE '%{n}'" for n in range(40)})
    stay = list(matcher)

    def stays(found):
        kept = [name for name in found if name.startswith("stays")]
        assert kept == stay
        assert len(set(found)) == len(found)

    def single():
        stays(matcher.match(HERE))

    def many():
        for here, _ in lists(matcher):
            stays(here)
        assert min(matcher.match_batch(TABLE, "counts")["count"].to_pylist()) >= 0

    def look():
        assert str(matcher.get("stays 3")) == "i > -3 OR s LIKE '%3'"
        assert matcher.why("stays 3", HERE).matched
        assert next(iter(matcher)) == "stays 0"
        assert "stays 7" in matcher
        assert len(matcher) >= 40

    with readers(single, many, look):
        for turn in range(6):
            for n in range(30):
                matcher.subscribe(f"other {n}", f"i > {turn}")
            matcher.subscribe_many({f"bulk {n}": f"i > {n % 9}" for n in range(70)})
            for n in range(0, 30, 2):
                matcher.subscribe(f"other {n}", "TRUE" if turn % 2 else f"s = '{turn}'")
            for n in range(30):
                matcher.unsubscribe(f"other {n}")
            for n in range(70):
                matcher.unsubscribe(f"bulk {n}")
    assert list(matcher) == stay
    assert matcher.match(HERE) == stay


@each("engine", ENGINES)
def test_what_is_replaced_is_never_missing_nor_there_twice(engine):
    matcher = made(engine)
    names = [f"r{n}" for n in range(50)]
    matcher.subscribe_many(dict.fromkeys(names, "i > 0"))

    def single():
        assert matcher.match(HERE) == names

    def many():
        for here, there in lists(matcher):
            assert here == names
            assert there == []
        assert matcher.match_batch(TABLE, "counts")["count"].to_pylist() == [50, 0]

    texts = ["i > 1", "i > 2 AND s = 'a'", "i IN (4, 5)", "i = 5 OR s LIKE '%z'", "s LIKE 'a%'"]
    with readers(single, many):
        for turn in range(8):
            for n, name in enumerate(names):
                matcher.subscribe(name, texts[(n + turn) % len(texts)])
            if turn % 2:
                matcher.subscribe_many(dict.fromkeys(names[turn:20], texts[turn % len(texts)]))
    assert matcher.match(HERE) == names


@each("size", [40, 90])
@each("engine", ENGINES)
def test_a_bulk_is_seen_whole_or_not_at_all(engine, size):
    """One that replaces others, and one that adds new ones."""
    matcher = made(engine)
    matcher.subscribe_many({f"a{n}": "i > 0" for n in range(size)})
    matcher.subscribe_many({f"z{n}": f"i > {n}" for n in range(40)})
    names = [f"a{n}" for n in range(size)]

    def one_of_both():
        for here, there in lists(matcher):
            mine = [[n for n in found if n.startswith("a")] for found in (here, there)]
            assert mine in ([names, []], [[], names])
            news = {name.split(" ")[0] for name in here if name.startswith("new")}
            for new in news:
                assert sum(name.startswith(f"{new} ") for name in here) == size
        for count in matcher.match_batch(TABLE, "counts")["count"].to_pylist():
            assert count % size in {0, 5}

    with readers(one_of_both, one_of_both):
        for turn in range(6):
            text = "i < 0" if turn % 2 == 0 else "i > 0"
            matcher.subscribe_many(dict.fromkeys(names, text))
            matcher.subscribe_many({f"new{turn} {n}": "i > 0" for n in range(size)})


@each("engine", ENGINES)
def test_every_answer_is_that_of_some_moment(engine):
    """They come and go one behind the other: each answer is a part without gaps."""
    matcher = made(engine)
    last = [[0, 0]] * 2

    def check(found, reader):
        assert found == list(range(found[0], found[-1] + 1)) if found else True
        if found:  # time does not go back
            assert last[reader][0] <= found[0]
            assert last[reader][1] <= found[-1]
            last[reader] = [found[0], found[-1]]

    def single():
        check(matcher.match(HERE), 0)

    def many():
        for here, there in lists(matcher):
            check(here, 1)
            assert here == there

    with readers(single, many):
        for n in range(250):
            matcher.subscribe(n, "i IS NOT NULL" if n % 3 else "TRUE")
            if n >= 60:
                matcher.unsubscribe(n - 60)
    assert matcher.match(HERE) == list(range(190, 250))


@each("engine", COMPILING)
@each("size", [3, 100])
def test_what_goes_while_ids_are_looked_up(engine, size):
    """The answer is that of some moment: before, after, or in between."""
    matcher = made(engine)
    matcher.subscribe_many(dict.fromkeys(range(size), "i > 0"))
    held = matcher._held.subscriptions
    find, moments = held.ids_of, [list(matcher)]

    def change():
        matcher.subscribe(size, "i > 0")
        moments.append(list(matcher))
        for name in range(1, size):
            matcher.unsubscribe(name)
            moments.append(list(matcher))

    def slow(handles):
        held.ids_of = find
        assert ended(change)
        return find(handles)

    held.ids_of = slow
    assert matcher.match(HERE) in moments


@each("engine", COMPILING)
def test_several_who_change(engine):
    """Changes wait for each other; none is lost."""
    matcher = made(engine)

    def change(mine):
        def work():
            for turn in range(3):
                for n in range(20):
                    matcher.subscribe(f"{mine} {n}", f"i > {n - 50}")
                matcher.subscribe_many({f"{mine} {n}": f"i > {n - 200}" for n in range(10, 90)})
                for n in range(0, 90, 2 + turn):
                    matcher.unsubscribe(f"{mine} {n}")

        return work

    threads = [threading.Thread(target=change(name)) for name in "abc"]
    with readers(lambda: matcher.match(HERE), lambda: list(lists(matcher))):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    model = {}
    for turn in range(3):
        model |= {n: n - 50 for n in range(20)} | {n: n - 200 for n in range(10, 90)}
        for n in range(0, 90, 2 + turn):
            del model[n]
    expected = sorted(f"{mine} {n}" for mine in "abc" for n in model)
    assert sorted(matcher) == expected
    assert sorted(matcher.match(HERE)) == expected
    assert sorted(matcher.match_batch(TABLE, "lists")["subscriptions"].to_pylist()[0]) == expected


@pytest.mark.parametrize("engine", COMPILING)
def test_saving_while_others_change_and_match(engine, tmp_path):
    matcher = made(engine)
    matcher.subscribe_many({n: f"i > {n - 300}" for n in range(100)})

    def save():
        matcher.save(tmp_path / "rules.tamis")
        loaded = Matcher.load(tmp_path / "rules.tamis")
        found = loaded.match(HERE)
        assert found == list(loaded)
        assert found == [*range(100), *range(1000, 1000 + len(loaded) - 100)]

    with readers(save, lambda: matcher.match(HERE)):
        for n in range(1000, 1150):
            matcher.subscribe(n, f"i > {n - 2000}")


# --- nobody waits


def ask_everything(matcher):
    assert matcher.match(HERE)
    assert list(lists(matcher))
    assert matcher.match_batch(TABLE, "counts")
    assert list(matcher)
    assert matcher.get(next(iter(matcher))) is not None


@each("engine", ENGINES)
@each("size", [50, 200])
def test_matching_goes_on_while_a_bulk_is_read(engine, size):
    matcher = made(engine)
    matcher.subscribe_many(dict.fromkeys(range(40), "i > 0"))
    seen = []

    def meanwhile(_):
        assert ended(lambda: ask_everything(matcher))
        seen.append(len(matcher.match(HERE)))

    matcher.subscribe_many(dict.fromkeys(range(30, 30 + size), "i > 1"), meanwhile)
    assert seen == [40]
    assert len(matcher.match(HERE)) == 30 + size


def while_merging(monkeypatch, work):
    """Do some work during the next merge of segments; what it gives."""
    plain, seen = segment_merges.compiled, []

    def slow(*args, **settings):
        made = plain(*args, **settings)
        if not seen:
            seen.append(None)
            seen[0] = work()
        return made

    monkeypatch.setattr(segment_merges, "compiled", slow)
    return seen


def merge_soon(matcher):
    """Bring about a merge, and wait for it."""
    matcher.subscribe_many({n: f"i > {n - 900}" for n in range(200, 400)})
    matcher.match(HERE)
    engine = getattr(matcher._held.engine, "compiled", matcher._held.engine)
    thread = engine._merger._thread
    if thread is not None:
        thread.join(PATIENCE)


@pytest.mark.parametrize("engine", [name for name in COMPILING if "background" in name])
def test_matching_goes_on_while_segments_are_merged(monkeypatch, engine):
    matcher = made(engine)
    matcher.subscribe_many({n: f"i > {n - 300}" for n in range(100)})
    seen = while_merging(monkeypatch, lambda: ended(lambda: ask_everything(matcher)))
    merge_soon(matcher)
    assert seen == [True]


def test_matching_goes_on_while_all_is_merged_for_a_file(monkeypatch, tmp_path):
    matcher = made("auto")
    matcher.subscribe_many({n: f"i > {n - 300}" for n in range(1000)})
    matcher.subscribe_many({n: f"i > {n - 900}" for n in range(2000, 2050)})
    seen = while_merging(monkeypatch, lambda: ended(lambda: ask_everything(matcher)))
    matcher.save(tmp_path / "rules.tamis")
    assert seen == [True]


@pytest.mark.parametrize("engine", ["sliced", "auto"])
def test_matching_goes_on_while_another_thread_merges(monkeypatch, engine):
    """Also where no thread of its own does it: nobody merges who holds the lock."""
    matcher = made(engine)
    matcher.subscribe_many({n: f"i > {n - 300}" for n in range(100)})
    seen = while_merging(monkeypatch, matcher._held.lock._is_owned)
    merge_soon(matcher)
    assert seen == [False]


def test_what_is_compiled_while_segments_are_merged_is_there_once(monkeypatch):
    """New subscriptions are compiled together with small segments, one of which is being merged."""
    matcher = made("sliced")

    def more():
        for n in range(1000, 1004):
            matcher.subscribe(n, "i > 0")
        return bool(matcher.match(HERE))

    for first, size in ((0, 100), (100, 10), (110, 3)):
        for n in range(first, first + size):
            matcher.subscribe(n, "i > 0")
        matcher.match(HERE)
    seen = while_merging(monkeypatch, lambda: ended(more))
    matcher._held.engine.merge_all()
    assert seen == [True]
    expected = [*range(113), *range(1000, 1004)]
    assert list(matcher) == expected
    assert matcher.match(HERE) == expected
    assert matcher._held.engine.statistics()["subscriptions"] == len(expected)
    for name in expected:
        matcher.unsubscribe(name)
    assert matcher._held.engine.match((5, "a")).tolist() == []


def between(matcher, change, call=2):
    """Let somebody else change something right after an id was looked up."""
    held = matcher._held.subscriptions
    find, calls = held.find, []

    def slow(subscription):
        found = find(subscription)
        calls.append(subscription)
        if len(calls) == call:
            assert ended(change)
        return found

    held.find = slow


@each("call", [1, 2])
@each("ask", ["get", "why"])
def test_looking_up_what_goes_in_this_moment(call, ask):
    """It is there or not; nothing else can be said."""
    matcher = made("auto")
    matcher.subscribe_many({"a": "i > 0", "b": "i > 0"})
    between(matcher, lambda: matcher.unsubscribe("a"), call)
    if ask == "get":
        assert str(matcher.get("a", "nothing")) in {"i > 0", "nothing"}
        return
    try:
        assert matcher.why("a", HERE).matched
    except SubscriptionError as error:
        assert str(error).startswith("no subscription 'a'")  # noqa: PT017 - it need not be raised


@each("engine", ["counting-list", "tree", "bdd"])
def test_a_plan_is_of_one_moment(engine):
    """The engines of the papers are not made for threads, so the lock is held."""
    matcher = Matcher(KINDS, engine)
    matcher.subscribe("a", "i > 0")
    plain, seen = matcher._held.engine.statistics, []
    matcher._held.engine.statistics = lambda: seen.append(matcher._held.lock._is_owned()) or plain()
    matcher.explain()
    assert seen == [True]
