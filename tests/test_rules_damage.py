"""Files of rules that are damaged, foreign or of another time: a clear error, never an answer."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stocks import SMALL, stock_filters, stock_rows
from tamis import FileError, Matcher
from tamis.container import MAGIC, open_container, write

EVENTS = [dict(zip(SMALL, row, strict=True)) for row in stock_rows(5, 25)]
TEXTS = [*stock_filters(5, 120), "TRUE", "FALSE", "s LIKE '%7' OR x > i", "NOT i IN (1, 2, 3)"]


def made(texts, kind=str):
    matcher = Matcher(SMALL)
    matcher.subscribe_many({kind(n): text for n, text in enumerate(texts)})
    return matcher


def view(matcher):
    """All that is in the file."""
    return (
        len(matcher),
        list(matcher),
        [str(matcher.get(name)) for name in matcher],
        [matcher.match(event) for event in EVENTS[:5]],
        matcher.match_batch(EVENTS).to_pydict(),
        [str(matcher.why(name, EVENTS[0])) for name in list(matcher)[:3]],
    )


@pytest.fixture(scope="module", params=[str, int])
def sound(request, tmp_path_factory):
    """A file that has a bit of everything, its bytes, what it says, and room for another."""
    path = tmp_path_factory.mktemp("rules") / "sound.tamis"
    made(TEXTS, request.param).save(path)
    return path.read_bytes(), view(Matcher.load(path)), path.with_name("damaged.tamis"), path


def asked(path, ask):
    """An answer, or else an error that names the file: two, of which one is None."""
    try:
        return ask(), None
    except FileError as error:
        message = str(error)
    assert str(path) in message
    return None, message


def look(path):
    """What a file says, part by part, None for what it cannot say; or why it is refused."""
    matcher, refusal = asked(path, lambda: Matcher.load(path))
    if matcher is None:
        return [refusal]
    names = list(matcher)
    asks = (
        lambda: [matcher.match(event) for event in EVENTS[:5]],
        lambda: matcher.match_batch(EVENTS).to_pydict(),
        lambda: [str(matcher.get(name)) for name in names],
        lambda: [str(matcher.why(name, EVENTS[0])) for name in names[:3]],
    )
    matches, batch, filters, reasons = (asked(path, ask)[0] for ask in asks)
    return [len(matcher), names, filters, matches, batch, reasons]


def is_refused_or_the_same(sound, damaged):
    content, expected, path, _ = sound
    assert damaged != content
    path.write_bytes(damaged)
    found = look(path)
    if len(found) > 1:
        assert all(a in (None, b) for a, b in zip(found, expected, strict=True))
    return found


# --- damage


def test_a_byte_of_every_section(sound):
    opened = open_container(sound[3])
    seen = set()
    for name in opened:
        array = opened.array(name)
        if not array.nbytes:
            continue
        for place in {0, array.nbytes // 2, array.nbytes - 1}:
            content = bytearray(sound[0])
            content[at(opened, name) + place] ^= 0x41
            found = is_refused_or_the_same(sound, content)
            if len(found) == 1:
                assert f"is damaged in its section '{name}'" in found[0]
            else:  # not read before somebody asks for a filter
                assert name.startswith("subscriptions.filters")
                assert found[2] is None
            seen.add(name.split(".")[0])
    assert seen == {"subscriptions", "always", "segment"}


def at(opened, name):
    """Where a section is in the file."""
    return opened._base + opened._sections[name].offset


def test_bytes_of_the_header(sound):
    end = open_container(sound[3])._base
    for place in range(0, end, 17):
        content = bytearray(sound[0])
        content[place] ^= 0x41
        found = is_refused_or_the_same(sound, content)
        assert len(found) == 1 or not any(sound[0][place:end])  # padding says nothing


@given(st.data())
def test_flipped_bytes(sound, data):
    content = bytearray(sound[0])
    for place in data.draw(st.sets(st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        content[place] ^= data.draw(st.integers(1, 255))
    is_refused_or_the_same(sound, content)


def test_truncated_files(sound):
    content, _, path, _ = sound
    for length in {*range(40), *range(40, len(content), 499), len(content) - 1}:
        path.write_bytes(content[:length])
        (message,) = look(path)
        assert "copy it again, or save it again" in message or length == 0
    path.write_bytes(content + b"\0")
    assert len(look(path)) == 1


def test_damaged_filters_do_no_harm_elsewhere(tmp_path):
    """What needs no text goes on; what needs one says why it cannot; nothing is lost by that."""
    path = tmp_path / "rules.tamis"
    made([f"i > {n}" for n in range(100)]).save(path)
    opened = open_container(path)
    content = bytearray(path.read_bytes())
    content[at(opened, "subscriptions.filters")] ^= 1
    path.write_bytes(content)
    matcher = Matcher.load(path)
    assert len(matcher.match({"i": 50})) == 50
    matcher.unsubscribe("3")
    matcher.subscribe("new", "i > 3")
    for ask in (
        lambda: matcher.get("7"),
        lambda: matcher.why("7", {}),
        lambda: matcher.save(path),
        lambda: matcher.save(tmp_path / "other.tamis"),
    ):
        with pytest.raises(FileError, match=r"rules.tamis is damaged in its section 'subscrip"):
            ask()
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
    assert str(matcher.get("new")) == "i > 3"
    assert len(matcher.match({"i": 50})) == 50
    matcher.subscribe("7", "i > 1000")
    assert len(matcher.match({"i": 50})) == 49
    assert str(matcher.get("7")) == "i > 1000"


# --- foreign files


def test_other_files(tmp_path):
    path = tmp_path / "rules.tamis"
    with pytest.raises(FileError, match=f"{path} does not exist"):
        Matcher.load(path)
    with pytest.raises(FileError, match="is a folder"):
        Matcher.load(tmp_path)
    for content in (b"", b"PAR1" * 100, b"{}", b"id,filter\na,b\n"):
        path.write_bytes(content)
        with pytest.raises(FileError, match=str(path)):
            Matcher.load(path)


@pytest.mark.parametrize(
    ("meta", "what"),
    [({"kind": "a diary"}, "a diary"), ({}, "something else"), ({"kind": None}, "")],
)
def test_a_container_of_something_else(tmp_path, meta, what):
    path = tmp_path / "diary.tamis"
    write(path, meta, {"pages": b"dear diary"})
    with pytest.raises(FileError, match=f"{path} does not hold tamis rules, but {what}"):
        Matcher.load(path)


@pytest.mark.parametrize(("version", "age"), [(2, "newer"), (10**6, "newer"), (0, "older")])
def test_a_format_of_another_time(sound, version, age):
    content, _, path, _ = sound
    path.write_bytes(MAGIC + struct.pack("<I", version) + content[12:])
    with pytest.raises(FileError, match=f"{path} was written by an? {age} tamis; format"):
        Matcher.load(path)


def rewritten(sound, change, **sections):
    """The file with other words about itself, all checksums right."""
    opened, path = open_container(sound[3]), sound[2]
    meta = dict(opened.meta)
    change(meta)
    arrays = {name: opened.array(name) for name in opened} | sections
    write(path, meta, {name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize("layout", [0, 1, "2", None])
def test_a_layout_of_another_time(sound, layout):
    def change(meta):
        meta["segment"] = meta["segment"] | {"layout": layout}

    path = rewritten(sound, change)
    with pytest.raises(FileError, match=str(path)):
        Matcher.load(path)


def test_the_rewritten_file_is_sound(sound):
    assert look(rewritten(sound, lambda _: None)) == list(sound[1])


SETTINGS = ["schema", "semantics", "defaults", "unknown", "engine", "subscriptions", "segment"]


def with_setting(sound, key, value):
    def change(meta):
        meta[key] = value
        if value == "missing":
            del meta[key]

    return look(rewritten(sound, change))


def test_settings_that_are_missing(sound):
    for key in SETTINGS:
        assert len(with_setting(sound, key, "missing")) == 1


@pytest.mark.parametrize("key", ["semantics", "unknown", "engine"])
def test_settings_of_another_time(sound, key):
    """A later tamis may have more choices."""
    assert len(with_setting(sound, key, "stranger")) == 1


@pytest.mark.parametrize("key", ["semantics", "unknown", "engine", "subscriptions", "segment"])
def test_settings_of_another_kind(sound, key):
    """Such a file is refused, or says the same: a setting may not matter."""
    for value in (None, 5, "stranger", [], {}, [1, 2]):
        found = with_setting(sound, key, value)
        assert len(found) == 1 or found == list(sound[1])


def test_sections_that_are_missing(sound):
    for name in open_container(sound[3]):
        found = look(rewritten(sound, lambda _: None, **{name: None}))
        assert len(found) == 1 or found[2] is None, name


def test_a_file_with_other_subscriptions_than_programs(sound):
    def change(meta):
        meta["segment"] = None

    path = rewritten(sound, change)
    with pytest.raises(FileError, match=f"{path} is damaged, or of another version"):
        Matcher.load(path)
