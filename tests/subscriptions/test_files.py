"""Subscriptions in files, and while several threads change them."""

import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from cases import each
from subscribers import LISTED, filled, many, parse, reloaded, subscriptions_of, texts_of
from tamis import FileError
from tamis.container import open_container, write
from tamis.subscriptions import subscriptions
from tamis.subscriptions.subscriptions import Subscriptions

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
    again = subscriptions_of(
        {"count": 1000, "ids": "string"}, lambda name: asked.append(name) or sections[name]
    )
    assert again.find("7") == 7
    assert not any("filters" in name for name in asked)
    assert str(again.expression(7)) == "x = 7 AND s <> 'é'"
    assert str(again.expression(8)) == "x = 8 AND s <> 'é'"
    assert set(asked) == set(sections)
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
    again = subscriptions_of({"count": 1000, "ids": "int"}, opened.array)
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
    with pytest.raises(FileError, match="do not fit together; save the file again"):
        subscriptions_of(meta, sections.__getitem__)


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
        subscriptions_of(meta, sections.__getitem__).expression(0)


@each("change", [lambda o: o[1:], lambda o: o + 1, lambda o: o - 1, np.int64])
def test_orders_that_do_not_fit(change):
    meta, sections, _ = filled(many(100)).to_sections()
    sections |= {"subscriptions.order": change(sections["subscriptions.order"])}
    with pytest.raises(FileError, match="do not fit together"):
        subscriptions_of(meta, sections.__getitem__)


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
    place = subscriptions if moment == "id_array" else subscriptions.SubscriptionPage
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
                assert found.ids_of(np.array([7])) == [stay[7]]
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
