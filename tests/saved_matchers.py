"""What tests of files ask of a matcher before it is saved and after it was loaded."""

import math

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from stocks import SMALL, stock_filters, stock_rows
from tamis import (
    Matcher,
    parse,
)
from tamis.engines import auto

WIDE = {
    "i": "int", "x": "double", "s": "string", "b": "bool", "at": "timestamp",
    "level": "int(-2, 3)", "side": "enum('sell', 'é', 'it''s', '')", "r.k": "int",
    "r.q.name": "string", "`odd ``name``.`": "double", "größe": "double",
}  # fmt: skip
DEFAULTS = {
    "i": 7, "x": math.nan, "s": "日本\n😀", "b": True, "at": "2024-02-29T12:00:00.000001",
    "level": -2, "side": "é", "r.k": None, "r.q.name": "", "`odd ``name``.`": -math.inf,
    "größe": -0.0,
}  # fmt: skip
TEXTS = [
    "i > 3", "i = 3 AND x < 2.5", "x >= 0.1 AND x < 10", "s = 'a'", "s < 'é'", "s <> '日本'",
    "b", "NOT b", "b IS NULL", "at >= TIMESTAMP '2024-01-01'", "level = 3", "level < 0",
    "side = 'é'", "side = 'it''s' OR side = ''", "side <> 'sell'", "r.k > 1",
    "r.q.name = 'ß' AND r.k IS NOT NULL", "`odd ``name``.` > 1", "größe < 100D",
    "i IN (1, 2, 3)", "NOT i IN (1, 2, 3)", "s IN ('a', 'b', 'é')", "s NOT IN ('a', '😀')",
    "x IN (0.5D, 2.5D) AND i > 0", "side IN ('é', '')", "level NOT IN (0, 1)",
    "s LIKE 'a%'", "NOT s LIKE '%é%'", "s LIKE '_b%' OR s RLIKE '^a+$'", "s RLIKE '[0-9]'",
    "x > i", "lower(s) = 'abc'", "upper(r.q.name) = s", "i + 1 > r.k", "length(s) = 2 AND x > 0",
    "abs(i) = 3", "contains(s, 'b') AND startswith(s, 'a')", "s IS NULL OR x IS NULL",
    "(i = 1 OR i = 2) AND (x > 1 OR s = 'a') AND NOT (b AND i > 2)",
    "TRUE", "FALSE", "i = i", "NULL", "1 = 1", "i > 3 AND i < 2", "x = x OR TRUE",
]  # fmt: skip


def semantics_of(name):
    return {"semantics": name, "defaults": DEFAULTS if name == "default" else None}


def wide_events(complete):
    pools = {
        "i": [3, 1, -3, None], "x": [0.1, 2.5, math.nan, math.inf, None],
        "s": ["a", "ab", "abc", "ABC", "é", "日本", "a1", None], "b": [True, False, None],
        "at": [0, 1_704_067_200_000_000, None], "level": [3, -2, 0, None],
        "side": ["é", "it's", "", "sell", None], "k": [0, 5, None], "name": ["ß", "a", None],
        "odd `name`.": [2.0, -math.inf, None], "größe": [-0.0, 1e300, None],
    }  # fmt: skip
    kinds = {"at": pa.timestamp("us", "UTC")}
    size = 40
    columns = {
        name: pa.array([pool[row % (len(pool) - complete)] for row in range(size)], kinds.get(name))
        for name, pool in pools.items()
    }
    name, k = columns.pop("name"), columns.pop("k")
    inner = pa.StructArray.from_arrays([name], ["name"])
    return pa.table(columns | {"r": pa.StructArray.from_arrays([k, inner], ["k", "q"])})


def view(matcher, table):
    """All that a user can see of a matcher, but for what engine is at work."""
    events = table.to_pylist()
    names = list(matcher)
    return {
        "len": len(matcher),
        "ids": names,
        "filters": [matcher.get(name) for name in names],
        "texts": [str(matcher.get(name)) for name in names],
        "contains": [name in matcher for name in [*names, "stranger", 10**9]],
        "settings": (matcher.schema, matcher.semantics, repr(matcher.meaning.defaults)),
        "unknown": matcher.reader.refuse_unknown,
        "match": [matcher.match(event) for event in events[:12]],
        "batch": [
            matcher.match_batch(events, output).to_pydict() for output in ("lists", "counts")
        ],
        "table": [
            matcher.match_batch(table, output).to_pydict()
            for output in ("pairs", "lists", "counts")
        ],
        "why": [str(matcher.why(name, events[2])) for name in names[:5] + names[-15:]],
    }


def kept(matcher, path, table, **load):
    """What comes back from a file, after all has been compared."""
    before = view(matcher, table)
    matcher.save(path)
    assert view(matcher, table) == before
    loaded = Matcher.load(path, **load)
    after = view(loaded, table)
    for part, seen in before.items():
        assert after[part] == seen, part
    return loaded


def stock_table(size, seed=3):
    return pa.Table.from_pylist([dict(zip(SMALL, row, strict=True)) for row in
                                 stock_rows(seed, size)])  # fmt: skip


def life_of(folder, uncompiled):
    class Life(RuleBasedStateMachine):
        """A matcher beside a dict, which is saved and loaded now and then."""

        @initialize()
        def begin(self):
            self.patch = pytest.MonkeyPatch()
            self.patch.setattr(auto, "MOST_UNCOMPILED", uncompiled)
            self.patch.setattr(auto, "MOST_LIVE", 3)
            self.patch.setattr("tamis.subscribed_filters.FEWEST_AT_ONCE", 3)
            self.patch.setattr("tamis.subscriptions.subscriptions.SMALL", 2)
            self.matcher, self.model = Matcher(SMALL), {}

        def teardown(self):
            if hasattr(self, "patch"):
                self.patch.undo()

        @rule(name=st.integers(0, 9), text=st.sampled_from(LIFE))
        def subscribe(self, name, text):
            self.matcher.subscribe(name, text)
            self.model[name] = text

        @rule(pairs=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(LIFE)), max_size=6))
        def subscribe_many(self, pairs):
            self.matcher.subscribe_many(pairs)
            self.model.update(pairs)

        @rule(name=st.integers(0, 9))
        def unsubscribe(self, name):
            if self.model.pop(name, None) is not None:
                self.matcher.unsubscribe(name)

        @rule(names=st.sets(st.integers(0, 9)))
        def unsubscribe_many(self, names):
            gone = names & set(self.model)
            self.matcher.unsubscribe_many(gone)
            self.model = {name: text for name, text in self.model.items() if name not in gone}

        @rule()
        def clear(self):
            self.matcher.clear()
            self.model.clear()

        @rule()
        def reload(self):
            self.matcher.save(folder / "life.tamis")
            self.matcher = Matcher.load(folder / "life.tamis")

        @rule(row=st.sampled_from(stock_rows(9, 30)))
        def match(self, row):
            expected = [n for n, text in self.model.items() if CONDITIONS[text](row)]
            assert self.matcher.match(dict(zip(SMALL, row, strict=True))) == expected

        @invariant()
        def holds_what_the_model_holds(self):
            if hasattr(self, "model"):
                assert [(n, str(self.matcher.get(n))) for n in self.matcher] == [
                    (n, str(parse(text, SMALL))) for n, text in self.model.items()
                ]

    return Life


LIFE = [*stock_filters(8, 30), "TRUE", "FALSE"]
CONDITIONS = {text: Matcher(SMALL, "naive").meaning.condition(parse(text, SMALL)) for text in LIFE}
