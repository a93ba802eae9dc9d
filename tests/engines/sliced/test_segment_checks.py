"""Arrays of a file that do not fit together are refused before anything is indexed with them."""

import numpy as np
import pytest

from cases import each
from stocks import SMALL, stock_filters
from tamis import FileError, Matcher, Schema
from tamis.container import open_container, write
from tamis.engines.sliced.segment_checks import are_bounds, is_rising, is_within

FILTERS = [
    *stock_filters(3, 60), "s IN ('T1', 'T2') AND i > 3", "NOT i IN (1, 2, 3)", "s LIKE '%7'",
    *(f"s = 'T{n % 30}' AND x < {n}.25" for n in range(60)),
    *(f"i < {n % 7} AND x > {n % 5}.25" for n in range(200)),  # so references have names
]  # fmt: skip


def saved(path):
    matcher = Matcher(SMALL)
    matcher.subscribe_many(dict(enumerate(FILTERS)))
    matcher.save(path)
    opened = open_container(path)
    return path, opened.meta, {name: opened.array(name) for name in opened}


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("rules") / "rules.tamis")


@pytest.fixture(scope="module")
def nameless(tmp_path_factory):
    """A file in which no reference has a name, as in large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tamis.engines.sliced.layout.NAMED", 0)
        return saved(tmp_path_factory.mktemp("rules") / "rules.tamis")


def refusal(sections, trusted, name, change):
    """What loading says after a section was changed; `trusted` are those of other files."""
    path, meta, arrays = sections
    array = arrays[name].copy()
    changed = change(array)
    write(path, meta, arrays | {name: array if changed is None else changed})
    trusted.clear()
    with pytest.raises(FileError) as caught:
        Matcher.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def put(place, value):
    def change(array):
        array[place] = value

    return change


@pytest.fixture
def trusted(monkeypatch):
    """No file is trusted, though this process writes it."""
    found = {}
    monkeypatch.setattr("tamis.container._trusted", found)
    return found


@each(
    ("name", "change"),
    [
        ("segment.programs.refs", put(0, -1)),
        ("segment.programs.refs", put(3, 2**30)),
        ("segment.programs.refs", lambda a: a[:-1].copy()),
        ("segment.programs.named", put(-1, 2**30)),
        ("segment.programs.named", put(1, 0)),
        ("segment.programs.subs", put(1, 10**9)),
        ("segment.programs.subs", lambda a: a[:-1].copy()),
        ("segment.programs.chunk_subs", put(-1, 10**9)),
        ("segment.programs.chunk_subs", put(1, 0)),
        ("segment.programs.chunk_bounds", put((0, 1), 10**9)),
        ("segment.programs.chunk_bounds", put((0, 0), -1)),
        ("segment.programs.shared", put(slice(None), 255)),
        ("segment.programs.slots", put(0, 10**9)),
        ("segment.programs.slots", put(0, -1)),
        ("segment.programs.slots", lambda a: np.full_like(a, a[0])),
        ("segment.programs.access", put(0, 2**30)),
        ("segment.programs.access_chunks", put(0, 10**6)),
        ("segment.programs.access_shapes", put(0, 10**6)),
        ("segment.masks", put(0, 255)),
        ("segment.handles", put(0, -1)),
        ("segment.handles", lambda a: a[:0].copy()),
        ("segment.handles", put(-1, 10**9)),
        ("segment.cuts.at", put((1, 0), 10**9)),
        ("segment.cuts.at", put((0, 2), -1)),
        ("segment.cuts.keys", lambda a: a[::-1].copy()),
        ("segment.cuts.offsets", put(-1, 10**9)),
        ("segment.cuts.offsets", put(1, 10**9)),
        ("segment.cuts.data", lambda a: np.flip(a).copy()),
        ("segment.in.members", put(0, 10**6)),
        ("segment.in.members", put(0, -1)),
        ("segment.in.attributes", put(0, 99)),
        ("segment.in.at", put(-1, 10**6)),
        ("segment.out.attributes", put(0, -2)),
        ("segment.tests.attributes", put(0, 99)),
        ("segment.tests.sources", put(0, 10**6)),
        ("segment.tests.sources", put(1, -1)),
        ("subscriptions.order", put(0, -1)),
        ("subscriptions.order", put(slice(None), 0)),
        ("subscriptions.order", lambda a: a[::-1].copy()),
    ],
)
def test_indexes_that_lead_elsewhere(sections, trusted, name, change):
    assert "do not fit together" in refusal(sections, trusted, name, change)


@each(
    ("name", "change"),
    [
        ("segment.programs.refs", put(0, -1)),
        ("segment.programs.refs", put(5, 2**30)),
        ("segment.programs.refs", lambda a: a + 1),
        ("segment.programs.signatures", put(slice(None), 0)),
        ("segment.programs.signatures", put(0, 10**6)),
        ("segment.programs.signatures", put(0, -2)),
        ("segment.programs.signatures", lambda a: a[:-1].copy()),
    ],
)
def test_references_without_names(nameless, trusted, name, change):
    assert "do not fit together" in refusal(nameless, trusted, name, change)


def test_files_without_names_are_read(nameless, trusted):
    path, meta, arrays = nameless
    write(path, meta, arrays)
    trusted.clear()
    assert len(Matcher.load(path)) == len(FILTERS)


def test_what_this_process_wrote_is_trusted(sections, trusted):
    path, meta, arrays = sections
    write(path, meta, arrays)
    assert open_container(path).is_trusted
    assert len(Matcher.load(path)) == len(FILTERS)
    trusted.clear()
    assert not open_container(path).is_trusted
    assert len(Matcher.load(path)) == len(FILTERS)


def test_ids_that_are_not_text(tmp_path, trusted):
    path = tmp_path / "rules.tamis"
    matcher = Matcher(Schema({"i": "int"}))
    matcher.subscribe_many({f"name {n}": "i > 1" for n in range(70)})
    matcher.save(path)
    opened = open_container(path)
    arrays = {name: opened.array(name) for name in opened}
    arrays["subscriptions.ids"] = np.full_like(arrays["subscriptions.ids"], 0xFF)
    write(path, opened.meta, arrays)
    trusted.clear()
    with pytest.raises(FileError, match=f"{path} is damaged, or of another version: Invalid UTF8"):
        Matcher.load(path)


def test_orders_and_ranges():
    numbers = np.array([0, 3, 5, 1, 2])
    assert is_within(numbers, 6)
    assert not is_within(numbers, 5)
    assert not is_within(-numbers, 6)
    assert is_rising(numbers, [0, 3])
    assert is_rising(numbers, [0, 3, 5])
    assert not is_rising(numbers)
    assert are_bounds(numbers[:3], 5)
    assert not are_bounds(numbers[:3], 6)
    assert not are_bounds(numbers[1:3], 5)
    assert not are_bounds(numbers[:0], 0)
