"""Lines of files, compressed or not, and how many come together."""

import bz2
import gzip

import pytest

from cases import each
from tamis import FileError
from tamis.file_tables import lines
from tamis.file_tables.lines import in_groups, lines_of


@each(
    "name, packed",
    [("a.txt", bytes), ("a.gz", gzip.compress), ("a.BZ2", bz2.compress)],
)
def test_lines_have_no_ends_and_are_not_blank(tmp_path, name, packed):
    path = tmp_path / name
    path.write_bytes(packed("\ufeffone\n \n\ntwo\r\n\u00e9".encode()))
    assert list(lines_of(path)) == ["one", "two", "\u00e9"]


def test_a_file_that_cannot_be_read(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"not compressed")
    with pytest.raises(FileError, match="cannot be read"):
        list(lines_of(path))


def test_groups_are_full_at_a_number_of_lines_or_of_characters(monkeypatch):
    monkeypatch.setattr(lines, "LINES", 3)
    monkeypatch.setattr(lines, "CHARACTERS", 10)
    assert list(in_groups(iter("abcdefg"))) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert list(in_groups(iter(["12345", "67890", "1", "2"]))) == [["12345", "67890"], ["1", "2"]]
    assert list(in_groups(iter(["1" * 11, "2"]))) == [["1" * 11], ["2"]]
    assert list(in_groups(iter([]))) == []
