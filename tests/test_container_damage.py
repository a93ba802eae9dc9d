"""Files of arrays that others made or damaged: they are refused, or read as they were."""

import zlib
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from containers import contents, entry, forged, refusal, small
from tamis import FileError
from tamis.container import (
    DTYPES,
    MAX_HEADER,
    open_container,
    text_array,
    text_sections,
    write,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rules.tamis"


# --- headers made by others


def test_a_forged_file_that_is_right(path):
    forged(path, {"meta": {}, "sections": [entry()]}, 16)
    assert contents(path) == ({}, {"a": [0, 0, 0, 0]})


@pytest.mark.parametrize(
    "header",
    [
        b"", b"{", b"\xff", b"[]", b"null", b"1", b'"x"', b"{}", b"[" * 100_000, b"9" * 5000,
        b'{"meta": {}}', b'{"sections": []}',
        {"meta": [], "sections": []}, {"meta": None, "sections": []},
        {"meta": {}, "sections": {"a": entry()}},
        {"meta": {}, "sections": None}, {"meta": {}, "sections": "ab"},
        {"meta": {}, "sections": [None]}, {"meta": {}, "sections": [[]]},
        {"meta": {}, "sections": [1]}, {"meta": {}, "sections": [{}]},
    ],
    ids=lambda header: str(header)[:40],
)  # fmt: skip
def test_headers_that_are_none(path, header):
    assert refusal(forged(path, header, 16)) == (
        f"{path} is damaged in its header; copy it again, or save it again"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": 64}, {"offset": 2**70}, {"offset": -64}, {"offset": 1}, {"offset": 0.0},
        {"offset": None}, {"offset": True}, {"offset": "0"},
        {"length": 15}, {"length": -16}, {"length": 2**63}, {"length": 16.0}, {"length": None},
        {"shape": [5]}, {"shape": [-4]}, {"shape": [-2, -2]}, {"shape": 4}, {"shape": [4.0]},
        {"shape": "4"}, {"shape": [[4]]}, {"shape": None}, {"shape": [2, 2] + [1] * 100},
        {"shape": [2**64]}, {"shape": [True] * 2 + [4]},
        {"shape": [0, 2**62], "length": 0}, {"shape": [0, 2**70], "length": 0},
        {"shape": [0, 2**31, 2**31, 2**31], "length": 0},
        {"shape": [2**32], "length": 2**34}, {"shape": [32], "length": 128},
        {"dtype": "O"}, {"dtype": "u3"}, {"dtype": "<u4"}, {"dtype": "f4"}, {"dtype": "S4"},
        {"dtype": "u4,u4"}, {"dtype": ""}, {"dtype": None}, {"dtype": ["u4"]}, {"dtype": {}},
        {"name": None}, {"name": 1}, {"name": ["a"]},
        {"crc32": None}, {"crc32": -1}, {"crc32": "x"}, {"crc32": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_sections_that_cannot_be(path, changes):
    forged(path, {"meta": {}, "sections": [entry(**changes)]}, 16)
    assert "is damaged in its header" in refusal(path)


@pytest.mark.parametrize("field", sorted(entry()))
def test_sections_that_lack_something(path, field):
    fields = entry()
    del fields[field]
    assert "in its header" in refusal(forged(path, {"meta": {}, "sections": [fields]}, 16))


def test_sections_that_overlap(path):
    twice = [entry(), entry(name="b")]
    assert "in its header" in refusal(forged(path, {"meta": {}, "sections": twice}, 16))
    same = [entry(), entry(offset=64)]
    assert "in its header" in refusal(forged(path, {"meta": {}, "sections": same}, 80))
    apart = [entry(), entry(offset=64, name="b")]
    assert list(open_container(forged(path, {"meta": {}, "sections": apart}, 80))) == ["a", "b"]


def test_a_checksum_beyond_32_bits_fits_nothing(path):
    forged(path, {"meta": {}, "sections": [entry(crc32=2**32 + 1)]}, 16)
    with pytest.raises(FileError, match="section 'a'"):
        open_container(path).array("a")


def test_lengths_that_cannot_be(path):
    header = {"meta": {}, "sections": []}
    size = forged(path, header).stat().st_size
    for changes in (
        {"header": MAX_HEADER + 1, "total": size}, {"header": 2**64 - 1, "total": size},
        {"header": size, "total": size}, {"total": 0}, {"total": size - 1},
    ):  # fmt: skip
        forged(path, header, **changes)
        assert "is damaged in its header" in refusal(path)
    assert "the file ends after" in refusal(forged(path, header, total=2**64 - 1))


def test_a_header_that_is_too_large_is_not_written(path):
    with pytest.raises(FileError, match=r"its header would have 16,.* at most 16,000,000"):
        write(path, {"x": "x" * MAX_HEADER}, {})
    assert not path.exists()


# --- damage of any kind


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    path = small(tmp_path_factory.mktemp("container") / "sound.tamis")
    return path.read_bytes(), contents(path), path.with_name("damaged.tamis")


def is_refused_or_the_same(sound, damaged):
    _, expected, path = sound
    path.write_bytes(damaged)
    try:
        found = contents(path)
    except FileError:
        return
    assert found == expected


@given(st.data())
def test_flipped_bytes(sound, data):
    content = bytearray(sound[0])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
    is_refused_or_the_same(sound, content)


def test_every_single_byte(sound):
    for place in range(len(sound[0])):
        content = bytearray(sound[0])
        content[place] ^= 0xFF
        is_refused_or_the_same(sound, content)


@given(st.data())
def test_cut_and_continued_files(sound, data):
    content = sound[0]
    length = data.draw(st.integers(0, len(content) - 1))
    _, _, path = sound
    path.write_bytes(content[:length])
    assert refusal(path)
    path.write_bytes(content[:length] + data.draw(st.binary(max_size=len(content))))
    is_refused_or_the_same(sound, path.read_bytes())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b"]) | json_values,
        "dtype": st.sampled_from([*sorted(DTYPES), "O"]) | json_values,
        "shape": st.lists(st.integers(-1, 3) | st.sampled_from([2**31, 2**63])) | json_values,
        "offset": st.sampled_from([-64, 0, 64, 2**63]) | json_values,
        "length": st.integers(-1, 40) | json_values,
        "crc32": st.just(zlib.crc32(b"\0" * 16)) | json_values,
    }
)


@given(st.lists(entries, max_size=3) | json_values, st.integers(0, 200))
@example([entry(shape=[0] * 8, length=0, crc32=0)], 0)
def test_any_header(sound, sections, room):
    path = forged(sound[2], {"meta": {}, "sections": sections}, room)
    with suppress(FileError):
        contents(path)


# --- strings


@given(st.lists(st.text()), st.booleans(), st.integers(0, 3))
def test_strings(sound, words, is_large, cut):
    kind = pa.large_string() if is_large else pa.string()
    column = pa.array(["cut", *words], kind)[cut:]
    write(sound[2], {}, text_sections("words", column))
    opened = open_container(sound[2])
    read = text_array(opened.array, "words", len(column))
    assert read.equals(column)
    assert read.type == kind
    read.validate(full=True)
    with pytest.raises(FileError, match=r"the parts of 'words.offsets' do not fit together"):
        text_array(opened.array, "words", len(column) + 1)
    stored = sum(len(word.as_py().encode()) for word in column)
    assert opened.array("words").nbytes == stored
