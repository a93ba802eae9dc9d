"""Who is subscribed to what, against plain dicts."""

import itertools
from typing import ClassVar

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

from subscribers import LISTED, NUMBERS, STRANGERS, WORDS, filled, many, parse, reloaded, texts_of
from tamis.subscriptions import pages, subscriptions
from tamis.subscriptions.pages import order_of
from tamis.subscriptions.subscriptions import Subscriptions

# --- a long life

INDEXES = st.integers(0, len(WORDS) - 1)
TEXTS = st.integers(0, 9).map(lambda number: f"x = {number}")


class Life(RuleBasedStateMachine):
    """Whatever happens, against a dict."""

    names = WORDS
    constants: ClassVar = {}

    @initialize()
    def start(self):
        self.patch = pytest.MonkeyPatch()
        for name, value in self.constants.items():
            home = subscriptions if hasattr(subscriptions, name) else pages
            self.patch.setattr(home, name, value)
        self.tested = Subscriptions(parse)
        self.held = {}  # id: (handle, text)
        self.next = 0

    def teardown(self):
        if hasattr(self, "patch"):
            self.patch.undo()

    def hold(self, name, text):
        handle, _ = self.held.get(name, (self.next, None))
        self.next += name not in self.held
        self.held[name] = handle, text
        return handle

    def ids(self, names, *, large=False):
        if self.names is NUMBERS:
            return pa.array(names, pa.int64())
        return pa.array(names, pa.large_string() if large else pa.string())

    @rule(index=INDEXES, text=TEXTS)
    def put(self, index, text):
        name = self.names[index]
        known = self.tested.find(name)
        if known is None:
            known = self.tested.add(name, parse(text))
        else:
            self.tested.replace(known, parse(text))
        assert known == self.hold(name, text)

    @rule(
        rows=st.lists(st.tuples(INDEXES, TEXTS), max_size=12),
        large=st.booleans(),
        cut=st.integers(0, 2),
    )
    def put_many(self, rows, large, cut):
        rows = [(self.names[index], text) for index, text in rows]
        names = [name for name, _ in rows]
        ids = self.ids([*self.names[:cut], *names], large=large)[cut:]  # with an offset
        texts = pa.array([text for _, text in rows], pa.string())
        split = self.tested.split(ids)
        last = {name: row for row, name in enumerate(names)}
        new = [name for name in last if name not in self.held]
        known = [name for name in last if name in self.held]
        assert split.new.tolist() == [last[name] for name in new]
        assert split.known.tolist() == [last[name] for name in known]
        assert split.handles.tolist() == [self.held[name][0] for name in known]
        taken = pa.array(split.known)
        self.tested.replace_page(split.handles, ids.take(taken), texts.take(taken))
        taken = pa.array(split.new)
        given = self.tested.add_page(ids.take(taken), texts.take(taken))
        for name, text in rows:
            self.hold(name, text)
        assert list(given) == [self.held[name][0] for name in new]

    @rule(index=INDEXES)
    def drop(self, index):
        name = self.names[index]
        if name in self.held:
            assert self.tested.remove(name) == self.held.pop(name)[0]
        else:
            with pytest.raises(KeyError):
                self.tested.remove(name)

    @rule(step=st.sampled_from([1, 2, 3]))
    def drop_many(self, step):
        for index in range(0, len(self.names), step):
            self.drop(index)

    @rule()
    def store(self):
        stored = self.tested.to_sections()
        ordered = sorted(self.held, key=lambda name: self.held[name][0])
        assert stored.handles.tolist() == [self.held[name][0] for name in ordered]
        self.tested = reloaded(self.tested)
        self.held = {name: (row, self.held[name][1]) for row, name in enumerate(ordered)}
        self.next = len(ordered)

    @invariant()
    def all_is_found(self):
        tested, held = self.tested, self.held
        by_handle = {handle: name for name, (handle, _) in held.items()}
        assert len(tested) == len(held)
        assert tested.next_handle == self.next
        assert tested.kind is (type(self.names[0]) if held else None)
        assert list(tested) == [by_handle[handle] for handle in sorted(by_handle)]
        for name in self.names:
            assert tested.find(name) == held.get(name, (None,))[0]
            assert (name in tested) == (name in held)
        for handle in range(max(0, self.next - 40), self.next + 2):
            ids = tested.ids_of(np.array([handle]))
            if handle in by_handle:
                assert ids == [by_handle[handle]]
                assert tested.expression(handle) == parse(held[by_handle[handle]][1])
            else:
                assert ids == []
                with pytest.raises(KeyError):
                    tested.expression(handle)

    @invariant()
    def answers_are_right(self):
        by_handle = {handle: name for name, (handle, _) in self.held.items()}
        asked = range(self.next + 2)
        for some in (asked, sorted(by_handle), asked[::2], []):
            for kind in (np.int64, np.int32):
                handles = np.array(some, kind)
                expected = [by_handle[handle] for handle in some if handle in by_handle]
                answer = self.tested.ids_of(handles)
                assert answer == expected
                assert {*map(type, answer)} <= {type(self.names[0])}
                assert self.tested.column().take(handles).to_pylist() == expected

    @invariant()
    def pages_are_in_order(self):
        for page in self.tested._pages:
            assert (np.diff(page.handles(None)) > 0).all()
            in_order = page.ids.take(pa.array(page.order)).to_pylist()
            assert in_order == sorted(set(in_order))
            assert 2 * page.size >= len(page.ids)
            assert page.size > 0


SOON = {"SMALL": 2, "PAGES": 2, "CHUNK": 3}  # everything happens early


@pytest.mark.long
@LISTED
@pytest.mark.parametrize(
    "constants",
    [
        {},
        SOON | {"BISECTION": 0},
        SOON | {"BISECTION": 1000, "OBJECTS": 3},
        SOON | {"MAX_TEXT": 30, "PAGES": 3},
    ],
    ids=str,
)
def test_a_long_life(names, constants):
    life = type("Life", (Life,), {"names": names, "constants": constants})
    count = settings().max_examples  # 100, or what `make fuzz` asks for
    run_state_machine_as_test(
        life, settings=settings(max_examples=count // 4, stateful_step_count=20)
    )


# --- pages


@LISTED
def test_a_page(names, monkeypatch):
    monkeypatch.setattr(subscriptions, "SMALL", 1)
    found = filled(names)
    assert len(found._pages) == 1
    assert list(found) == names
    assert [found.find(name) for name in names] == list(range(len(names)))
    assert str(found.expression(3)) == "x = 3 AND s <> 'é'"
    assert all(name not in found for name in STRANGERS)
    assert all(found.find(name) is None for name in STRANGERS)


def test_arrow_sorts_strings_as_python_does():
    around = [chr(base + step) for base in (0xD7FF, 0xE000, 0xFFFF, 0x10000) for step in (-1, 0, 1)]
    words = [*WORDS, *(w for w in around if not "\ud800" <= w <= "\udfff")]
    words = [
        a + b for a, b in itertools.product(dict.fromkeys(words), ["", "\ue000", "\U00010000"])
    ]
    words = list(dict.fromkeys(words))
    column = pa.array(words)
    assert column.take(pa.array(order_of(column))).to_pylist() == sorted(words)


@given(st.lists(st.text(), unique=True) | st.lists(st.integers(-(2**63), 2**63 - 1), unique=True))
def test_order(names):
    column = pa.array(names, None if names else pa.string())
    assert [names[row] for row in order_of(column)] == sorted(names)
    ascending = pa.array(sorted(names), column.type)
    assert order_of(ascending).tolist() == list(range(len(names)))


def test_small_bulks_make_no_pages():
    found = Subscriptions(parse)
    for start in range(0, 1000, 50):
        found.add_page(pa.array(range(start, start + 50)), texts_of(range(50)))
    assert found._pages == ()
    assert list(found) == list(range(1000))
    assert found.expression(60) == parse("x = 10 AND s <> 'é'")


def test_pages_stay_few():
    """However bulks and single ones come, an id is sought in few pages."""
    found = Subscriptions(parse)
    for start in range(0, 20_000, 100):
        found.add_page(pa.array(range(start, start + 99)), texts_of(range(99)))
        found.add(start + 99, parse("x = 1"))
        assert len(found._pages) <= 12
    assert list(found) == list(range(20_000))
    assert found.ids_of(np.arange(20_000)) == list(range(20_000))
    for name in range(0, 20_000, 997):
        assert found.find(name) == name


def test_a_page_of_which_most_is_gone_is_rewritten():
    found = filled(many(1000))
    for name in many(500):
        found.remove(name)
    assert len(found._pages[0].ids) == 1000
    found.remove("500")
    assert len(found._pages[0].ids) == 499
    assert list(found) == many(1000)[501:]
    assert found.find("501") == 501
    for name in many(1000)[501:]:
        found.remove(name)
    assert found._pages == ()
    assert (len(found), found.kind, list(found)) == (0, None, [])
    assert found.column().none().to_pylist() == []


def test_after_all_have_gone_ids_may_be_of_another_kind():
    found = filled(many(100))
    for name in many(100):
        found.remove(name)
    assert found.add(7, parse("x = 1")) == 100
    assert (found.kind, found.ids_of(np.array([5, 100]))) == (int, [7])
    assert found.column().take(np.array([5, 100])).to_pylist() == [7]
    assert "7" not in found


def test_replacing_in_bulk_makes_no_objects():
    names = many(1000)
    found = filled(names)
    found.replace(3, parse("x = 3"))
    for shift in (1, 2):
        taken = np.arange(0, 1000, shift)[::-1]
        ids = pa.array([names[row] for row in taken])
        found.replace_page(taken, ids, pa.array([f"x = {row + shift}" for row in taken]))
    assert found._filters == {}
    assert found._ids == {}
    assert [str(found.expression(row)) for row in (3, 4)] == ["x = 4", "x = 6"]
    assert list(found) == names
    assert found.ids_of(np.arange(1000)) == names


@pytest.mark.parametrize("objects", [10, 10**6])
def test_ids_of_large_and_small_pages(monkeypatch, objects):
    monkeypatch.setattr(pages, "OBJECTS", objects)
    found = filled(many(1000))
    asked = np.arange(0, 1000, 7)
    assert found.ids_of(asked) == many(1000)[::7]
    found.remove("7")
    assert found.ids_of(asked) == ["0", *many(1000)[14::7]]
    assert found.ids_of(np.array([7])) == []
    assert found.ids_of(np.array([1000, 2**40])) == []


# --- bulks


def test_of_the_same_ids_the_last_one_counts_and_the_first_one_places():
    found = filled([*many(100), "x"])
    found.add("live", parse("x = 1"))
    split = found.split(pa.array(["b", "x", "a", "b", "live", "7", "a", "x", "c"]))
    assert split.new.tolist() == [3, 6, 8]
    assert split.known.tolist() == [7, 4, 5]
    assert split.handles.tolist() == [100, 101, 7]


def test_a_bulk_of_none():
    for found in (Subscriptions(parse), filled(many(100)), filled(range(100))):
        kind = pa.int64() if found.kind is int else pa.string()
        assert [part.tolist() for part in found.split(pa.array([], kind))] == [[], [], []]
        before = found.next_handle
        assert found.add_page(pa.array([], kind), texts_of([])) == range(before, before)
        found.replace_page(np.empty(0, np.int64), pa.array([], kind), texts_of([]))
        assert found.next_handle == before


# --- the column


def test_the_column_is_kept_until_ids_change():
    found = filled(many(100))
    column = found.column()
    found.replace(3, parse("x = 1"))
    assert found.column() is column
    found.remove("3")
    assert found.column() is not column
    column = found.column()
    found.add("3", parse("x = 1"))
    assert found.column() is not column
    encoded = found.column().take(np.array([2, 3, 4, 100]))
    assert encoded.to_pylist() == ["2", "4", "3"]
    assert len(set(encoded.dictionary.to_pylist())) == len(encoded.dictionary) == 100


@pytest.mark.parametrize("limit", [2**31 - 1, 100])
def test_the_type_of_strings(monkeypatch, limit):
    """Offsets of 64 bits are used when they are needed, whatever came."""
    monkeypatch.setattr(pages, "MAX_TEXT", limit)
    expected = pa.string() if limit > 1000 else pa.large_string()
    for kind in (pa.string(), pa.large_string()):
        found = filled(many(100), kind)
        found.add("live", parse("x = 1"))
        assert found.column().none().type.value_type == expected
        assert reloaded(found).column().none().type.value_type == expected
        assert found.split(pa.array(["1", "live"], kind)).handles.tolist() == [1, 100]
