"""Folders of small files: written whole or not at all."""

import pytest

from tamis import FileError
from tamis.spark.files.folders import Folder


def test_what_is_written_is_read(tmp_path):
    folder = Folder(tmp_path / "new")
    folder.make("inner")
    folder.write("inner/a.json", b"1")
    folder.write("inner/a.json", b"22")
    assert folder.read("inner/a.json") == b"22"
    assert folder.names("inner") == ["a.json"]
    assert folder.exists("inner/a.json")
    assert not folder.exists("inner/b.json")
    assert sorted(path.name for path in (tmp_path / "new/inner").iterdir()) == ["a.json"]


def test_hidden_files_and_folders_are_not_names(tmp_path):
    for name in (".a", "_b", "c", "a"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder").mkdir()
    assert Folder(tmp_path).names() == ["a", "c"]
    assert Folder(tmp_path).entries() == [".a", "_b", "a", "c", "folder"]


def test_files_are_copied_both_ways(tmp_path):
    here = tmp_path / "here.bin"
    here.write_bytes(b"\0" * 100_000)
    folder = Folder(tmp_path / "there")
    folder.make()
    folder.put("copy", here)
    folder.get("copy", tmp_path / "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == here.read_bytes()
    assert folder.entries() == ["copy"]


def test_deleting_twice_is_as_good_as_once(tmp_path):
    folder = Folder(tmp_path)
    folder.write("a", b"")
    folder.delete("a")
    folder.delete("a")
    assert folder.names() == []


def test_a_uri_names_a_folder_too(tmp_path):
    folder = Folder(tmp_path.as_uri())
    folder.write("a", b"1")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert folder.is_local
    assert folder.local == tmp_path


@pytest.mark.parametrize("path", ["unknown://somewhere", "s4://bucket/key"])
def test_a_system_that_nobody_knows_is_an_error(path):
    with pytest.raises(FileError, match="cannot be reached"):
        Folder(path)


def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path):
    folder = Folder(tmp_path)
    with pytest.raises(FileError, match=r"absent\.json cannot be read"):
        folder.read("absent.json")
    with pytest.raises(FileError, match="cannot be read"):
        Folder(tmp_path / "absent").names()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        Folder(tmp_path / "file").make("inner")
    with pytest.raises(FileError, match="cannot be written"):
        Folder(tmp_path / "file").write("a", b"")
