"""Files of rules: what is saved is loaded, and goes on living; whatever else there is, is refused.

`test_rules_damage.py` has the files that are damaged or foreign.
"""

import contextlib
import json
import os
import subprocess
import sys
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    run_state_machine_as_test,
)

from offers import event_of
from saved_matchers import (
    DEFAULTS,
    TEXTS,
    WIDE,
    kept,
    life_of,
    semantics_of,
    stock_table,
    view,
    wide_events,
)
from stocks import SMALL, stock_filters
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import (
    CapacityError,
    ExpressionError,
    FileError,
    Matcher,
    OptionError,
    SubscriptionError,
)
from tamis.engines import ENGINES
from tamis.semantics import NAMES
from tamis.subscribed_filters import SubscribedFilters


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rules.tamis"


# --- there and back


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "auto") for name in NAMES), ("default", "sliced")]
)
def test_every_semantics(path, name, engine):
    matcher = Matcher(WIDE, engine, **semantics_of(name))
    for number, text in enumerate(TEXTS):
        matcher.subscribe(f"s{number}", text)
    loaded = kept(matcher, path, wide_events(complete=name == "total"))
    assert loaded.engine == "sliced"
    assert type(loaded._held.engine) is type(matcher._held.engine)
    again = kept(loaded, str(path), wide_events(complete=name == "total"))
    assert len(again) == len(TEXTS)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=8), some=st.lists(rows(), max_size=4))
@settings(max_examples=12)
def test_any_filters(tmp_path_factory, name, texts, some):
    path = tmp_path_factory.getbasetemp() / f"any-{name}.tamis"
    row = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {"x": None, "at": "2024-01-01"}
    defaults = row | {"until": None} if name == "default" else None
    matcher = Matcher(SCHEMA, semantics=name, defaults=defaults)
    for number, text in enumerate(texts):
        try:
            matcher.subscribe(number, text)
        except ExpressionError:
            continue
    matcher.save(path)
    loaded = Matcher.load(path)
    assert [(n, loaded.get(n)) for n in loaded] == [(n, matcher.get(n)) for n in matcher]
    whole = delicate_rows()[3]
    events = [
        event_of(tuple(w if v is None and name == "total" else v for v, w in zip(row, whole)))  # noqa: B905 - both are of the schema
        for row in [*some, *delicate_rows()[:6]]
    ]
    lists = matcher.match_batch(events, "lists").to_pydict()
    assert loaded.match_batch(events, "lists").to_pydict() == lists
    assert [loaded.match(event) for event in events] == lists["subscriptions"]


def test_defaults_of_every_type_are_kept(tmp_path):
    schema = {
        "d": "decimal(30, 2)",
        "a": "array<int>",
        "m": "map<string, double>",
        "t": "timestamp",
    }
    defaults = {
        "d": Decimal("12345678901234567890.05"), "a": [1, None], "m": {"k": 0.5}, "t": "2024-01-31",
    }  # fmt: skip
    matcher = Matcher(schema, semantics="default", defaults=defaults)
    matcher.subscribe("all", "d > 12345678901234567890.04 AND a[0] = 1 AND m['k'] = 0.5")
    matcher.save(tmp_path / "rules.tamis")
    loaded = Matcher.load(tmp_path / "rules.tamis")
    assert loaded.match({}) == ["all"]
    assert loaded.meaning.defaults == matcher.meaning.defaults
    again = Matcher(schema, semantics="default", defaults=defaults)
    again.absorb(tmp_path / "rules.tamis")
    assert again.match({"d": 1}) == []


IDS = {
    "strings": ["a", "", "é", "日本 😀", "a\nb\x00", "0", "x" * 1000],
    "integers": [0, -1, 2**63 - 1, -(2**63), 7, 2**53 + 1, 10**6],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
@pytest.mark.parametrize("many", [False, True])
def test_ids_of_both_kinds(path, ids, many):
    matcher = Matcher(SMALL)
    texts = stock_filters(1, len(ids))
    if many:
        kind = type(ids[0])
        rest = [kind(n) for n in range(1000, 1300)]
        matcher.subscribe_many(zip(ids + rest, texts + stock_filters(2, 300), strict=True))
    else:
        for pair in zip(ids, texts, strict=True):
            matcher.subscribe(*pair)
    loaded = kept(matcher, path, stock_table(30))
    assert [type(name) for name in loaded] == [type(ids[0])] * len(matcher)
    with pytest.raises(SubscriptionError, match="the ids of this matcher are"):
        loaded.subscribe(5 if type(ids[0]) is str else "5", "TRUE")


@pytest.mark.parametrize("engine", ["auto", "sliced"])
def test_an_empty_matcher(path, engine):
    loaded = kept(Matcher(SMALL, engine), path, stock_table(5))
    for name in ("a", "b"):
        loaded.subscribe(name, "i > 0")
    assert kept(loaded, path, stock_table(5)).match({"i": 5}) == ["a", "b"]
    loaded.unsubscribe("a")
    loaded.unsubscribe("b")
    kept(loaded, path, stock_table(5)).subscribe(5, "TRUE")


@pytest.mark.parametrize("texts", [["TRUE"], ["FALSE"], ["TRUE", "FALSE", "TRUE"], ["i = i"]])
def test_only_filters_without_predicates(path, texts):
    matcher = Matcher(SMALL)
    matcher.subscribe_many(dict(enumerate(texts)))
    loaded = kept(matcher, path, stock_table(5))
    loaded.unsubscribe(0)
    loaded.subscribe(9, "TRUE")
    kept(loaded, path, stock_table(5))


def test_filters_without_predicates_among_many(path):
    matcher = Matcher(SMALL)
    texts = ["TRUE", *stock_filters(3, 70), "FALSE", *stock_filters(4, 70), "TRUE"]
    matcher.subscribe_many({str(n): text for n, text in enumerate(texts)})
    matcher.unsubscribe("7")  # so that handles have a gap
    kept(matcher, path, stock_table(40))


def test_a_schema_without_attributes(path):
    matcher = Matcher({})
    matcher.subscribe_many({"a": "TRUE", "b": "FALSE"})
    matcher.save(path)
    assert Matcher.load(path).match({}) == ["a"]


@pytest.mark.parametrize("unknown", ["refuse", "ignore"])
def test_unknown_attributes(path, unknown):
    matcher = Matcher(SMALL, unknown=unknown)
    matcher.subscribe("a", "i > 0")
    kept(matcher, path, stock_table(4))


@pytest.mark.parametrize("missing", [False, True])
def test_defaults_of_every_kind(path, missing):
    defaults = dict.fromkeys(WIDE) if missing else DEFAULTS
    matcher = Matcher(WIDE, semantics="default", defaults=defaults)
    texts = ["x > 1e308D", "`odd ``name``.` < -1e308D", "s = '日本\\n😀'", "side = 'é'",
             "r.k IS NULL", "at = TIMESTAMP '2024-02-29 12:00:00.000001'", "b", "i = 7",
             "größe = 0D", "NOT i = 7", "NOT s LIKE '日%'"]  # fmt: skip
    matcher.subscribe_many(dict(enumerate(texts)))
    loaded = kept(matcher, path, wide_events(complete=False))
    assert loaded.match({}) == matcher.match({})
    assert len(matcher.match({})) == (3 if missing else 9)
    assert repr(loaded.meaning.defaults) == repr(matcher.meaning.defaults)
    assert list(map(type, loaded.meaning.defaults)) == list(map(type, matcher.meaning.defaults))


def test_schemas_of_others(path):
    kinds = pa.schema([("a b", pa.int8()), ("r", pa.struct([("x.y", pa.string())]))])
    matcher = Matcher(kinds)
    matcher.subscribe("a", "`a b` > 1 AND r.`x.y` = 'é'")
    matcher.save(path)
    loaded = Matcher.load(path)
    assert loaded.schema == matcher.schema
    assert loaded.match({"a b": 2, "r": {"x.y": "é"}}) == ["a"]


# --- after changes


@pytest.mark.parametrize("engine", ["auto", "sliced"])
def test_after_coming_and_going(path, engine):
    matcher, table = Matcher(SMALL, engine), stock_table(40)
    matcher.subscribe_many({f"s{n}": text for n, text in enumerate(stock_filters(1, 300))})
    for n in range(0, 300, 3):
        matcher.unsubscribe(f"s{n}")
    kept(matcher, path, table)
    for n, text in enumerate(stock_filters(2, 60)):
        matcher.subscribe(f"s{n}", text)
        matcher.subscribe(f"t{n}", text)
    kept(matcher, path, table)
    matcher.subscribe_many({f"s{n}": f"i = {n} OR s LIKE 'T{n}%'" for n in range(100, 250)})
    kept(matcher, path, table)
    for name in list(matcher)[:200]:
        matcher.unsubscribe(name)
    kept(matcher, path, table)


def test_a_test_that_nobody_has_any_more(path):
    matcher = Matcher(SMALL)
    matcher.subscribe_many({"a": "s LIKE 'T1%'", "b": "i > 0"})
    kept(matcher, path, stock_table(20))
    matcher.unsubscribe("a")
    kept(matcher, path, stock_table(20))


@pytest.mark.parametrize("change", ["i > 0", "s LIKE 'T2%' AND i < 3", "TRUE", None])
def test_a_filter_that_goes_before_its_test_was_needed(path, change):
    """Another filter has the same test, and goes on to mean what it meant."""
    matcher, events = Matcher(SMALL), stock_table(60).to_pylist()
    matcher.subscribe_many({"a": "s LIKE 'T1%' AND i > 0", "b": "s LIKE 'T1%' AND i > -3"})
    matcher.save(path)
    for changed, other in ("ab", "ba"):
        loaded = Matcher.load(path)
        if change is None:
            loaded.unsubscribe(changed)
        else:
            loaded.subscribe(changed, change)
        expected = [other in matcher.match(event) for event in events]
        assert [other in loaded.match(event) for event in events] == expected
        kept(loaded, path.with_name("again.tamis"), stock_table(60))


def test_a_loaded_matcher_goes_on(path):
    matcher, table = Matcher(SMALL), stock_table(40)
    matcher.subscribe_many({f"s{n}": text for n, text in enumerate(stock_filters(1, 150))})
    for turn in range(3):
        loaded = kept(matcher, path, table)
        for one in (matcher, loaded):
            one.unsubscribe(f"s{turn + 40}")
            one.subscribe("s7", f"i > {turn} AND s LIKE '%{turn}'")
            one.subscribe(f"new {turn}", "x > i")
            one.subscribe_many({f"s{n}": text for n, text in
                                enumerate(stock_filters(turn, 80), 100)})  # fmt: skip
        assert view(loaded, table) == view(matcher, table)
        matcher = loaded


@pytest.mark.long
@pytest.mark.parametrize("uncompiled", [0, 10**9])
def test_a_long_life(tmp_path, uncompiled):
    run_state_machine_as_test(
        life_of(tmp_path, uncompiled), settings=settings(max_examples=8, stateful_step_count=25)
    )


# --- files


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in {"auto", "sliced"}])
def test_engines_without_a_file(path, engine):
    matcher = Matcher(SMALL, engine)
    matcher.subscribe("a", "i > 0")
    with pytest.raises(
        OptionError, match=f"auto or sliced can be saved to a file, not those with {engine}"
    ):
        matcher.save(path)
    assert list(path.parent.iterdir()) == []
    assert matcher.match({"i": 1}) == ["a"]


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2, "background": True}, {}, None])
def test_options_of_a_loaded_matcher(path, options):
    matcher = Matcher(SMALL, "sliced", options={"threads": 3})
    matcher.subscribe_many(dict(enumerate(stock_filters(1, 100))))
    loaded = kept(matcher, path, stock_table(10), options=options)
    assert (
        loaded._held.engine._options
        == Matcher(SMALL, "sliced", options=options)._held.engine._options
    )


@pytest.mark.parametrize("options", [{"thread": 1}, {"threads": -1}, {"background": 1}])
def test_options_that_are_none(path, options):
    matcher = Matcher(SMALL)
    matcher.save(path)
    with pytest.raises(OptionError):
        Matcher.load(path, options=options)


def test_a_file_that_cannot_be_written(tmp_path):
    matcher = Matcher(SMALL)
    matcher.subscribe("a", "i > 0")
    for place in (tmp_path / "nowhere" / "rules.tamis", tmp_path, "a\0b"):
        with pytest.raises(FileError, match="cannot be written"):
            matcher.save(place)
    assert list(tmp_path.iterdir()) == []
    assert matcher.match({"i": 1}) == ["a"]


def test_what_cannot_be_merged_for_want_of_memory_is_not_lost(path):
    """All is saved, or an error says that it cannot be; the old file is not lost in any case."""
    matcher = Matcher(SMALL, options={"memory": 330_000})
    for first in (0, 1500):
        matcher.subscribe_many({n: f"i > {n}" for n in range(first, first + 1500)})
    with contextlib.suppress(CapacityError):
        matcher.save(path)
        assert list(Matcher.load(path)) == list(range(3000))


def test_a_replaced_file_stays_loaded(path):
    """Who has the old file goes on with it, and also who replaces it."""
    matcher, table = Matcher(SMALL), stock_table(20)
    matcher.subscribe_many({n: f"i > {n % 20} OR s = 'T{n}'" for n in range(200)})
    matcher.save(path)
    old = Matcher.load(path)
    expected = view(matcher, table)
    loaded = Matcher.load(path)
    for n in range(150):
        loaded.unsubscribe(n)
    loaded.save(path)  # the file that it lies in itself
    assert view(old, table) == expected
    assert view(Matcher.load(path), table) == view(loaded, table)
    assert len(Matcher.load(path)) == 50
    path.unlink()
    assert view(old, table) == expected
    assert list(path.parent.iterdir()) == []


def test_filters_are_read_when_they_are_needed(path, monkeypatch):
    matcher = Matcher(SMALL)
    matcher.subscribe_many(
        {n: f"i > {n} AND s LIKE 'T{n}%'" if n == 50 else f"i > {n}" for n in range(100)}
    )
    matcher.save(path)
    read, parse_it = [], SubscribedFilters.parse
    monkeypatch.setattr(
        SubscribedFilters, "parse", lambda held, text: read.append(text) or parse_it(held, text)
    )
    loaded = Matcher.load(path)
    assert str(loaded.get(7)) == "i > 7"
    assert loaded.match({"i": 60, "s": "T501"}) == list(range(60))
    assert len(loaded.match_batch([{"i": 5}])) == 5
    assert set(read) == {"i > 7", "i > 50 AND s LIKE 'T50%'"}


def test_a_loaded_matcher_needs_no_new_code(path):
    """Arrays of a file have the types of others, so no kernel is compiled for them."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("nothing is compiled")
    table = stock_table(600)

    def use(matcher):
        for event in table.to_pylist()[:5]:
            matcher.match(event)
        for output in ("pairs", "counts", "pairs"):
            matcher.match_batch(table, output)
        matcher.unsubscribe(3)
        matcher.match_batch(table.slice(0, 20))
        matcher.match({"i": 3, "s": "T1"})
        matcher.save(path)

    for texts in (stock_filters(1, 400), ["i > -100"] * 30, [f"x = {n}" for n in range(5000)]):
        matcher = Matcher(SMALL)
        matcher.subscribe_many(dict(enumerate(texts)))
        matcher._held.engine.compile()
        matcher.save(path)
        use(matcher)
        before = signatures()
        matcher = Matcher.load(path)
        matcher.subscribe(3, texts[3])
        matcher._held.engine.compile()
        use(matcher)
        assert signatures() == before


def signatures():
    """How many types each kernel was compiled for."""
    from numba.core.dispatcher import Dispatcher

    folder = Path(import_module("tamis.kernels").__file__).parent
    modules = [import_module(f"tamis.kernels.{path.stem}") for path in folder.glob("*.py")]
    return {
        (module.__name__, name): len(kernel.signatures)
        for module in modules
        for name, kernel in vars(module).items()
        if isinstance(kernel, Dispatcher)
    }


SHARING = """
import json, sys
from tamis import Matcher
path = sys.argv[1]
matcher = Matcher.load(path)
found = [len(matcher.match({"i": n, "x": 0.5})) for n in range(10)]
sizes, inside = {}, False
for line in open("/proc/self/smaps"):
    words = line.split()
    if not words[0].endswith(":"):
        inside = line.rstrip().endswith(path)
    elif inside and words[-1] == "kB":
        sizes[words[0]] = sizes.get(words[0], 0) + int(words[1])
print(json.dumps([found, sizes]))
"""


def test_processes_share_the_pages_of_a_file(path):
    if not Path("/proc/self/smaps").exists():
        pytest.skip("this system does not tell")
    matcher = Matcher(SMALL)
    matcher.subscribe_many({n: f"i > {n % 30} AND x < {n}.25" for n in range(10_000)})
    matcher.save(path)
    mine = Matcher.load(path)
    expected = [len(mine.match({"i": n, "x": 0.5})) for n in range(10)]
    answer = subprocess.run(
        [sys.executable, "-c", SHARING, str(path)], capture_output=True, text=True, check=True
    )
    found, size = json.loads(answer.stdout)
    assert found == expected
    # No page is a copy of its own. Which of them both processes have mapped just now is the
    # system's business: it unmaps pages that nobody has used for a while.
    assert size["Anonymous:"] == 0
    assert size["Rss:"] > 0
    assert mine.match({"i": -1}) == []
