"""Who is subscribed to what, against plain dicts."""

import itertools
import sys
import threading
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

from cases import each
from tamis import FileError, Schema, subscriptions
from tamis.container import open_container, write
from tamis.language.expression import parse_with
from tamis.subscriptions import Subscriptions, order_of

SCHEMA = Schema({"x": "int", "s": "string"})
WORDS = [
    "", "a", "b", "ab", "a'b", 'a"b', "a\nb", "\0", "\x7f", "\x80", "é", "e\u0301", "日本",
    "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff", "x" * 100, "1", "NULL",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 7, 10, 11, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), *range(100, 111)]
STRANGERS = ["nobody", "\ud800", "a\udfff", 5, -(2**63) - 1, 2**63, 10**100, True, 1.0, None, b"a"]
LISTED = pytest.mark.parametrize("names", [WORDS, NUMBERS], ids=["words", "numbers"])


def parse(text):
    return parse_with(text, SCHEMA)


def texts_of(numbers):
    return pa.array([f"x = {number} AND s <> 'é'" for number in numbers], pa.string())


def filled(names, kind=None):
    """All in one page."""
    found = Subscriptions(parse)
    ids = pa.array(names, kind)
    assert found.add_page(ids, texts_of(range(len(ids)))) == range(len(ids))
    return found


def many(count, name=str):
    return [name(number) for number in range(count)]


def reloaded(found, path=None):
    meta, sections, _ = found.to_sections()
    if path is None:
        return Subscriptions.from_sections(meta, sections.__getitem__, parse)
    write(path, meta, sections)
    opened = open_container(path)
    return Subscriptions.from_sections(opened.meta, opened.array, parse)


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
            self.patch.setattr(subscriptions, name, value)
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
            assert tested.id_of(handle) == by_handle.get(handle)
            if handle in by_handle:
                assert tested.expression(handle) == parse(held[by_handle[handle]][1])
            else:
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


def test_a_page_of_which_most_is_gone_is_written_anew():
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
    monkeypatch.setattr(subscriptions, "OBJECTS", objects)
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
    monkeypatch.setattr(subscriptions, "MAX_TEXT", limit)
    expected = pa.string() if limit > 1000 else pa.large_string()
    for kind in (pa.string(), pa.large_string()):
        found = filled(many(100), kind)
        found.add("live", parse("x = 1"))
        assert found.column().none().type.value_type == expected
        assert reloaded(found).column().none().type.value_type == expected
        assert found.split(pa.array(["1", "live"], kind)).handles.tolist() == [1, 100]


# --- files


@LISTED
def test_a_file(names, tmp_path, monkeypatch):
    monkeypatch.setattr(subscriptions, "SMALL", 1)
    found = filled(names)
    found.replace(1, parse("x = 99"))
    found.remove(names[2])
    one = type(names[0])(5)
    found.add(one, parse("s = 'live'"))
    path = tmp_path / "rules.tamis"
    again = reloaded(found, path)
    path.unlink()
    left = [*names[:2], *names[3:], one]
    assert list(again) == left
    assert again.ids_of(np.arange(len(left))) == left
    assert again.column().take(np.arange(len(left))).to_pylist() == left
    assert str(again.expression(1)) == "x = 99"
    assert str(again.expression(len(left) - 1)) == "s = 'live'"
    assert again.next_handle == len(left)
    assert again.find(names[2]) is None
    assert again.find(one) == len(left) - 1


def test_arrays_of_a_file_are_used_as_they_are():
    sections = filled(many(1000)).to_sections().sections
    asked = []
    again = Subscriptions.from_sections(
        {"count": 1000, "ids": "string"}, lambda name: asked.append(name) or sections[name], parse
    )
    assert again.find("7") == 7
    assert not any("filters" in name for name in asked)
    assert str(again.expression(7)) == "x = 7 AND s <> 'é'"
    assert str(again.expression(8)) == "x = 8 AND s <> 'é'"
    assert sorted(asked) == sorted(sections)
    page = again._pages[0]
    assert page.order is sections["subscriptions.order"]
    for name, column in (("ids", page.ids), ("filters", page.texts())):
        _, offsets, data = column.buffers()
        assert offsets.address == sections[f"subscriptions.{name}.offsets"].ctypes.data
        assert data.address == sections[f"subscriptions.{name}"].ctypes.data
    stored = again.to_sections()
    assert np.shares_memory(stored.sections["subscriptions.ids"], sections["subscriptions.ids"])


def test_whole_numbers_of_a_file_are_used_as_they_are(tmp_path):
    write(tmp_path / "x", {}, filled(range(1000)).to_sections().sections)
    opened = open_container(tmp_path / "x")
    again = Subscriptions.from_sections({"count": 1000, "ids": "int"}, opened.array, parse)
    address = opened.array("subscriptions.ids").ctypes.data
    assert again._pages[0].ids.buffers()[1].address == address
    assert again.ids_of(np.array([5, 7])) == [5, 7]


def test_no_subscriptions_in_a_file(tmp_path):
    again = reloaded(Subscriptions(parse), tmp_path / "rules.tamis")
    assert (len(again), again.next_handle, list(again)) == (0, 0, [])


def test_a_page_that_was_cut_out_of_another_is_stored_alone():
    ids, texts = pa.array(many(1000)), texts_of(range(1000))
    found = Subscriptions(parse)
    found.add_page(ids[100:300], texts[200:400])
    stored = found.to_sections().sections
    assert len(stored["subscriptions.ids"]) == 600
    again = reloaded(found)
    assert again.find("100") == 0
    assert str(again.expression(0)) == "x = 200 AND s <> 'é'"


@each(
    "meta",
    [
        {}, {"count": None}, {"count": -1, "ids": "int"}, {"count": 1.0, "ids": "int"},
        {"count": True, "ids": "int"}, {"count": 100}, {"count": 100, "ids": []},
        {"count": 100, "ids": "x"}, {"count": 99, "ids": "string"}, {"count": 100, "ids": "int"},
        {"count": 2**70, "ids": "string"},
    ],
)  # fmt: skip
def test_descriptions_that_do_not_fit(meta):
    sections = filled(many(100)).to_sections().sections
    with pytest.raises(FileError, match="do not fit together; save the file anew"):
        Subscriptions.from_sections(meta, sections.__getitem__, parse)


@each("name", ["ids", "filters"])
@each(
    "change",
    [
        lambda offsets: offsets[:-1],
        lambda offsets: offsets.reshape(1, -1),
        lambda offsets: offsets.astype(np.uint32),
        lambda offsets: offsets + 1,
        lambda offsets: offsets - 1,
        lambda offsets: np.append(offsets[:-1], offsets[-1] + 1),
        lambda offsets: np.where(np.arange(len(offsets)) == 50, -1, offsets),
        lambda offsets: np.where(np.arange(len(offsets)) == 50, 2**31 - 1, offsets),
    ],
)
def test_offsets_that_do_not_fit(name, change):
    meta, sections, _ = filled(many(100)).to_sections()
    place = f"subscriptions.{name}.offsets"
    sections |= {place: change(sections[place])}
    with pytest.raises(FileError, match=f"'subscriptions.{name}.*' do not fit together"):
        Subscriptions.from_sections(meta, sections.__getitem__, parse).expression(0)


@each("change", [lambda o: o[1:], lambda o: o + 1, lambda o: o - 1, np.int64])
def test_orders_that_do_not_fit(change):
    meta, sections, _ = filled(many(100)).to_sections()
    sections |= {"subscriptions.order": change(sections["subscriptions.order"])}
    with pytest.raises(FileError, match="do not fit together"):
        Subscriptions.from_sections(meta, sections.__getitem__, parse)


# --- threads


def test_going_through_the_ids_while_they_change():
    for found in (filled(many(200)), Subscriptions(parse)):
        for name in ("a", "b", "c"):
            found.add(name, parse("x = 1"))
        before = list(found)
        ids = iter(found)
        assert next(ids) == before[0]
        found.add("later", parse("x = 1"))
        assert list(ids) == before[1:]


@pytest.mark.parametrize("moment", ["mask", "id_array"])
def test_changes_while_a_column_is_made(monkeypatch, moment):
    """A subscription that goes and comes back is there once, whatever the column has seen."""
    found = filled(many(200))
    found.add("live", parse("x = 1"))
    place = subscriptions if moment == "id_array" else subscriptions.Page
    plain, turns = getattr(place, moment), iter(range(3))

    def meanwhile(*args):
        if next(turns, None) is not None:
            found.remove("7")
            found.add("7", parse("x = 1"))
        return plain(*args)

    monkeypatch.setattr(place, moment, meanwhile)
    for _ in range(2):  # the second one is not the first one kept
        taken = found.column().take(np.arange(210))
        assert sorted(taken.to_pylist()) == sorted([*many(200), "live"])
        assert len(set(taken.dictionary.to_pylist())) == len(taken.dictionary)
    monkeypatch.undo()
    assert found.column().take(np.array([7, found.next_handle - 1])).to_pylist() == ["7"]


@LISTED
def test_looking_up_while_others_change(names, monkeypatch):
    """Those that stay are found all the time, as they are; nothing fails."""
    monkeypatch.setattr(subscriptions, "SMALL", 4)
    kind = type(names[0])
    stay, go = [kind(n) for n in range(1000, 1200)], [kind(n) for n in range(2000, 2200)]
    expression = parse("x = 5")
    found = Subscriptions(lambda _: expression)
    found.add_page(pa.array(stay + go), texts_of(range(400)))
    handles, everything = np.arange(200), np.arange(5000)
    done, failures = threading.Event(), []

    def look():
        try:
            while not done.is_set():
                assert found.ids_of(handles) == stay
                assert found.ids_of(everything)[:200] == stay
                assert found.column().take(handles).to_pylist() == stay
                taken = found.column().take(everything)
                if kind is str:
                    assert len(set(taken.dictionary.to_pylist())) == len(taken.dictionary)
                assert found.find(stay[7]) == 7
                assert found.expression(7) is expression
                assert found.id_of(7) == stay[7]
                assert next(iter(found)) == stay[0]
                found.find(go[7])
        except BaseException as error:
            failures.append(error)
            raise

    def change():
        for turn in range(6):
            for name in go:
                found.remove(name)
            for name in go[:100]:
                found.add(name, expression)
            found.add_page(pa.array(go[100:]), texts_of(range(100)))
            found.replace_page(
                np.arange(turn, 150), pa.array(stay[turn:150]), texts_of(range(150 - turn))
            )
            for handle in range(0, 200, 3):
                found.replace(handle, expression)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=look) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        change()
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert failures == []
    assert sorted(found) == sorted(stay + go)
