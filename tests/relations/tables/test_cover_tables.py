"""Tables of subscriptions: all searches against entailment pair by pair, as filters come and go."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cases import each
from coverings import (
    SEMANTICS,
    Oracle,
    any_boxes,
    boxes,
    check_table,
    generals,
    read,
    semantics_of,
    subscriptions,
)
from tamis import parse
from tamis.errors import OptionError, SubscriptionError
from tamis.relations.tables import SEARCHES, CoverTable, Insertion
from tamis.semantics import Semantics
from tamis.workloads import workload

every_search = pytest.mark.parametrize("search", SEARCHES)


def table_of(texts, search="candidates", semantics="sql", **options):
    table = CoverTable(semantics_of(semantics), search, **options)
    for key, text in texts.items():
        table.insert(key, read(text))
    return table


# --- what it does


@every_search
def test_a_covered_filter_hangs_under_its_root(search):
    table = CoverTable(semantics_of("sql"), search)
    assert table.insert("wide", read("i > 1")) == Insertion(None, [])
    assert table.insert("narrow", read("i > 5 AND n = 2")) == Insertion("wide", [])
    assert table.insert("narrower", read("i > 5 AND n = 2 AND x > 1")) == Insertion("wide", [])
    assert table.roots == ["wide"]
    assert table.cover_of("narrower") == "wide"
    assert table.cover_of("wide") is None
    assert table.covered_by("wide") == ["narrow", "narrower"]
    assert table.expression("narrow") == read("i > 5 AND n = 2")
    assert "narrow" in table
    assert "wider" not in table


@every_search
def test_a_wider_filter_takes_roots_with_all_below_them(search):
    table = table_of({1: "i = 5", 2: "i = 5 AND n = 1", 3: "i = 6", 4: "n = 1"}, search)
    assert table.insert(5, read("i > 2")) == Insertion(None, [1, 3])
    assert table.roots == [4, 5]
    assert table.covered_by(5) == [1, 2, 3]
    assert table.covered_by(1) == []


@every_search
def test_of_equal_filters_the_first_is_the_root(search):
    table = table_of({1: "i >= 3 AND i <= 3"}, search)
    assert table.insert(2, read("i = 3")) == Insertion(1, [])
    assert table.remove(1) == [2]
    assert table.roots == [2]


@every_search
def test_removing_a_root_restores_what_no_other_covers(search):
    texts = {1: "i > 0", 2: "i > 3", 3: "i > 3 AND n = 1", 4: "i > 1 AND x > 1", 5: "n = 1"}
    table = table_of(texts, search)
    assert table.roots == [1, 5]
    assert table.remove(1) == [2, 4]
    assert table.roots == [2, 4, 5]
    assert table.cover_of(3) in {2, 5}


@every_search
def test_a_restored_filter_may_cover_another_restored_one(search):
    table = table_of({1: "i > 0", 2: "i > 3", 3: "i > 2"}, search)
    assert table.remove(1) == [3]
    assert table.cover_of(2) == 3


@every_search
def test_removing_a_covered_filter_changes_nothing_else(search):
    table = table_of({1: "i > 0", 2: "i > 3"}, search)
    assert table.remove(2) == []
    assert table.roots == [1]
    assert table.covered_by(1) == []
    assert len(table) == 1


@every_search
def test_a_filter_that_can_never_be_true_is_kept_apart(search):
    table = table_of({1: "i > 0"}, search)
    for key, text in enumerate(
        ["i > 1 AND i < 1", "s LIKE 'a%' AND s LIKE 'b%'", "i > n AND n > i"]
    ):
        assert table.insert(-key - 1, read(text)) == Insertion(None, [], never=True)
        assert table.cover_of(-key - 1) is None
    assert table.roots == [1]
    assert table.remove(1) == []
    assert table.roots == []
    assert table.remove(-1) == []
    assert len(table) == 2


@every_search
def test_a_filter_that_is_always_true_covers_all(search):
    table = table_of({1: "i > 0", 2: "n > i", 3: "1 = 2"}, search)
    assert table.insert("all", read("1 = 1")) == Insertion(None, [1, 2])
    assert table.insert(4, read("x > 1")) == Insertion("all", [])
    assert table.insert(5, read("x > i OR b")) == Insertion("all", [])
    assert table.insert(6, read("TRUE")) == Insertion("all", [])
    assert table.remove("all") == [6]
    assert table.remove(6) == [1, 2, 4, 5]


@every_search
def test_general_filters_and_boxes_cover_each_other(search):
    table = table_of({1: "i = 1 OR n = 1"}, search)
    assert table.insert(2, read("n = 1 AND x > 2")) == Insertion(1, [])
    assert table.insert(3, read("n = 2")) == Insertion(None, [])
    assert table.insert(4, read("n = 2 AND i > n")) == Insertion(3, [])
    assert table.insert(5, read("i = 1 OR n < 3")) == Insertion(None, [1, 3])
    assert table.insert(6, read("i IS NOT NULL")) == Insertion(None, [])
    assert table.insert(7, read("i IS NOT NULL OR n IS NOT NULL")) == Insertion(None, [5, 6])


@pytest.mark.parametrize(("semantics", "covered"), [("sql", True), ("strict", False)])
def test_strict_filters_ask_for_all_attributes_of_their_text(semantics, covered):
    table = table_of({1: "i > 0 OR n > 3"}, semantics=semantics)
    assert (table.insert(2, read("i > 0")).covered_by == 1) == covered


def test_what_cannot_be_missing_needs_no_presence():
    assert table_of({1: "x IS NOT NULL"}, semantics="total").insert(2, read("i = 1")) == Insertion(
        1, []
    )
    assert table_of({1: "x IS NOT NULL"}, semantics="sql").insert(2, read("i = 1")) == Insertion(
        None, []
    )


# --- errors


def test_a_key_that_is_there_is_refused_and_nothing_changes():
    table = table_of({1: "i > 0", 2: "i > 3"})
    with pytest.raises(SubscriptionError, match="1 is in the table already"):
        table.insert(1, read("n = 1"))
    assert table.roots == [1]
    assert table.expression(1) == read("i > 0")


@each("method", ["remove", "cover_of", "covered_by", "expression", "is_root"])
def test_an_unknown_key_is_refused(method):
    table = table_of({1: "i > 0"})
    with pytest.raises(SubscriptionError, match="'no' is not in the table"):
        getattr(table, method)("no")
    assert table.roots == [1]


def test_an_unknown_search_is_refused():
    with pytest.raises(OptionError, match="candidates"):
        CoverTable(semantics_of("sql"), "guess")


# --- against the oracle


@pytest.mark.long
@every_search
@pytest.mark.parametrize("semantics", SEMANTICS)
@given(texts=st.lists(subscriptions, max_size=8))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])  # tables, drawn whole
def test_a_table_agrees_with_entailment(search, semantics, texts):
    texts = dict(enumerate(texts))
    oracle = Oracle(semantics_of(semantics))
    check_table(table_of(texts, search, semantics), texts, oracle)


@given(texts=st.lists(boxes(), max_size=40))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])  # tables, drawn whole
def test_all_searches_have_the_same_roots(texts):
    texts = dict(enumerate(texts))
    tables = [table_of(texts, search) for search in SEARCHES]
    tables.append(table_of(texts, "one-pass", cache=False))
    assert len({tuple(table.roots) for table in tables}) == 1


@pytest.mark.long
@each("name", ["mbd-a", "mbd-b", "stock", "bdd"])
def test_all_searches_have_the_same_roots_on_workloads(name):
    made = workload(name)
    count = 150 if name == "bdd" else 600
    expressions = [
        parse(text, made.schema) for text in made.subscriptions(count)["filter"].to_pylist()
    ]
    roots, survivors = [], []
    for search in SEARCHES:
        table = CoverTable(Semantics("sql", made.schema), search)
        for key, expression in enumerate(expressions):
            table.insert(key, expression)
        roots.append(table.roots)
        for key in table.roots[::2]:
            table.remove(key)
        survivors.append(table.roots)
    assert roots[0] == roots[1] == roots[2]
    assert survivors[0] == survivors[1] == survivors[2]


class TableMachine(RuleBasedStateMachine):
    """Filters come and go."""

    def __init__(self):
        super().__init__()
        self.texts = {}
        self.made = 0

    @initialize(
        search=st.sampled_from([*SEARCHES, "one-pass without cache"]),
        semantics=st.sampled_from(SEMANTICS),
    )
    def start(self, search, semantics):
        chosen = semantics_of(semantics)
        self.table = CoverTable(chosen, search.split()[0], cache=" " not in search)
        self.oracle = Oracle(chosen)

    @rule(text=st.one_of(any_boxes, any_boxes, any_boxes, generals))
    def insert(self, text):
        before = self.table.roots
        self.made += 1
        self.texts[self.made] = text
        found = self.table.insert(self.made, read(text))
        assert found.never == self.oracle.never(text)
        assert found.covered_by == self.table.cover_of(self.made)
        own = [self.made] if found.covered_by is None and not found.never else []
        assert self.table.roots == [k for k in before if k not in found.covers] + own
        assert all(self.table.cover_of(key) == self.made for key in found.covers)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def remove(self, data):
        key = data.draw(st.sampled_from(list(self.texts)))
        before = self.table.roots
        del self.texts[key]
        restored = self.table.remove(key)
        assert restored == sorted(restored)
        assert self.table.roots == sorted({*before, *restored} - {key})
        assert key not in self.table

    @invariant()
    def holds(self):
        if self.texts:
            check_table(self.table, self.texts, self.oracle)


TestTableMachine = TableMachine.TestCase
TestTableMachine.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow],  # each step draws a filter
)
