"""Tables with mergers: what is forwarded covers all filters, whatever comes and goes."""

from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tamis import Schema, parse
from tamis.errors import SubscriptionError
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.merged_tables import MergedTable
from tamis.relations.merging.mergers import MergeOptions, Merger, find_mergers
from tamis.semantics import Semantics

SCHEMA = Schema({"n": "int(1, 4)", "m": "int(1, 3)", "b": "bool"})
SQL = Semantics("sql", SCHEMA)
EVENTS = list(product([None, 1, 2, 3, 4], [None, 1, 2, 3], [None, True, False]))


def exp(text):
    return parse(text, SCHEMA)


def table():
    return MergedTable(SQL)


def merge(merged, options=None):
    """Adopt mergers of the roots, and mergers of these, until nothing is gained; the changes."""
    changes = []
    while change := merged.adopt(find_mergers(dict(merged.roots), SQL, options or MergeOptions())):
        changes.append(change)
    return changes


def shown(change):
    return [
        [("merger" if isinstance(key, Merger) else key, str(each)) for key, each in side]
        for side in change
    ]


def test_the_life_of_a_merger():
    merged = table()
    assert shown(merged.insert(1, exp("n = 1 AND b"))) == [[(1, "n = 1 AND b")], []]
    assert shown(merged.insert(2, exp("n = 2 AND b"))) == [[(2, "n = 2 AND b")], []]
    (change,) = merge(merged)
    assert shown(change) == [
        [("merger", "n <= 2 AND b = TRUE")], [(1, "n = 1 AND b"), (2, "n = 2 AND b")],
    ]  # fmt: skip
    assert not merge(merged)
    assert len(merged) == 2
    # covered by the merger
    assert not merged.insert(3, exp("n < 3 AND b AND m = 1"))
    assert not merged.remove(3)
    # Fig. 9 (b): a part goes
    assert shown(merged.remove(1)) == [
        [(2, "n = 2 AND b")], [("merger", "n <= 2 AND b = TRUE")],
    ]  # fmt: skip
    assert merged.mergers == []


def test_a_merger_goes_when_something_covers_it():
    merged = table()
    merged.insert(1, exp("n = 1 AND b"))
    merged.insert(2, exp("n = 2 AND b"))
    merge(merged)
    assert shown(merged.insert(4, exp("b"))) == [[(4, "b")], [("merger", "n <= 2 AND b = TRUE")]]
    assert merged.mergers == []
    assert shown(merged.remove(4)) == [[(1, "n = 1 AND b"), (2, "n = 2 AND b")], [(4, "b")]]


def test_what_hung_under_a_part_stays_covered():
    merged = table()
    merged.insert(1, exp("n = 1"))
    merged.insert(2, exp("n = 1 AND b"))
    merged.insert(3, exp("n = 2"))
    merge(merged)
    change = merged.remove(1)
    assert [key for key, _ in change.added] == [2, 3]


def test_mergers_of_mergers():
    merged = table()
    for n in (1, 2):
        merged.insert(n, exp(f"n = {n} AND m = 1"))
    merge(merged)
    for n in (1, 2):
        merged.insert(10 + n, exp(f"n = {n} AND m = 2"))
    merge(merged)
    ((key, expression),) = merged.roots
    assert str(expression) == "n <= 2 AND m <= 2"
    assert sorted(key.parts) == [1, 2, 11, 12]
    assert len(merged.mergers) == 1
    assert [k for k, _ in merged.remove(12).added] == [1, 2, 11]


def test_how_many_diagrams_the_roots_would_be():
    merged, counts = table(), []
    for n, text in enumerate(["n = 4 OR m = 3", "n = 2 AND m = 1", "n = 1 AND b", "n = 3 AND b"]):
        merged.insert(n, exp(text))
        counts.append(merged.diagrams)
    assert counts == [1, 2, 3, 3]  # the last two differ in the top attribute only
    merged.remove(0)
    merged.remove(1)
    assert merged.diagrams == 1
    merge(merged)
    assert merged.diagrams == len(merged.roots) == 1


def test_keys():
    merged = table()
    merged.insert("a", exp("n = 1"))
    with pytest.raises(SubscriptionError):
        merged.insert("a", exp("n = 2"))
    with pytest.raises(SubscriptionError):
        merged.remove("b")
    assert "a" in merged
    assert "b" not in merged
    assert merged.expression("a") == exp("n = 1")
    assert merged.cover_of("a") is None


def test_what_never_matches_is_not_forwarded():
    merged = table()
    assert not merged.insert(1, exp("n = 1 AND n = 2"))
    assert merged.roots == []
    assert not merged.remove(1)


# --- whatever comes and goes


@st.composite
def texts(draw):
    found = []
    for name, most in (("n", 4), ("m", 3)):
        if draw(st.booleans()):
            op = draw(st.sampled_from(["=", "<=", ">=", "="]))
            found.append(f"{name} {op} {draw(st.integers(1, most))}")
    found += draw(st.sampled_from([[], ["b"], ["NOT b"]]))
    return " AND ".join(found) or draw(st.sampled_from(["n = m", "n = 1 OR b", "m = 2"]))


class Forwarding(RuleBasedStateMachine):
    """What a neighbour was told, by changes alone, covers all filters, and is what `roots` says."""

    @initialize(
        imperfect=st.sampled_from([None, None, 0.1, 0.5]), rules=st.sampled_from(["paper", "full"])
    )
    def begin(self, imperfect, rules):
        self.perfect = imperfect is None
        self.options = MergeOptions(rules=rules, imperfect=imperfect, measure=Uniform(SCHEMA))
        self.merged = table()
        self.filters = {}
        self.told = {}
        self.next = 0

    def hear(self, change):
        for key, expression in change.removed:
            assert self.told.pop(key) == expression
        for key, expression in change.added:
            assert key not in self.told
            self.told[key] = expression

    @rule(text=texts())
    def insert(self, text):
        self.filters[self.next] = exp(text)
        self.hear(self.merged.insert(self.next, exp(text)))
        self.next += 1

    @precondition(lambda self: self.filters)
    @rule(data=st.data())
    def remove(self, data):
        key = data.draw(st.sampled_from(list(self.filters)))
        del self.filters[key]
        self.hear(self.merged.remove(key))

    @rule()
    def merge(self):
        before = len(self.told)
        for change in merge(self.merged, self.options):
            self.hear(change)
        assert len(self.told) <= before

    @invariant()
    def what_was_told_covers_all(self):
        if not hasattr(self, "told"):
            return
        assert len(self.merged) == len(self.filters)
        assert dict(self.merged.roots) == self.told
        told = self.matched(self.told.values())
        wanted = self.matched(self.filters.values())
        assert told >= wanted
        if self.perfect:
            assert told == wanted

    @invariant()
    def mergers_have_all_their_parts(self):
        for merger in self.merged.mergers if hasattr(self, "merged") else ():
            assert merger in self.told
            assert set(merger.parts) <= set(self.filters)

    def matched(self, expressions):
        conditions = [SQL.condition(each) for each in expressions]
        return {n for n, e in enumerate(EVENTS) if any(holds(e) for holds in conditions)}

    def teardown(self):
        if not hasattr(self, "filters"):
            return
        for key in list(self.filters):
            del self.filters[key]
            self.hear(self.merged.remove(key))
        assert self.told == {}
        assert self.merged.mergers == []


Forwarding.TestCase.settings = settings(max_examples=30, stateful_step_count=30)
TestForwarding = Forwarding.TestCase


def test_mergers_that_were_found_elsewhere():
    merged = table()
    for n in (1, 2, 3):
        merged.insert(n, exp(f"n = {n} AND b"))
    found = find_mergers(dict(merged.roots), SQL)
    merged.remove(3)
    assert not merged.adopt(found)  # one of its parts is not there any more
    (again,) = find_mergers(dict(merged.roots), SQL)
    kept = merged.restored(again.expression, again.parts, again.degree)
    assert kept.boxes == again.boxes
    change = merged.adopt([kept])
    assert shown(change)[0] == [("merger", str(again.expression))]
    assert len(change.removed) == 2
    assert merged.dissolve(merged.mergers).removed[0][1] == again.expression
    assert sorted(key for key, _ in merged.roots) == [1, 2]
